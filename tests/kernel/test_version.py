"""Kernel versions, and what is known of one before the kernel is had."""

import pytest

from fsexp import lock
from fsexp.errors import UserError
from fsexp.kernel import debian, version

# What kernels call themselves (uname -r), and tarballs are called.
TEXTS = {
    "6.1.0-57-amd64": (6, 1, 0),
    "7.3.4+deb13-amd64": (7, 3, 4),
    "2.6.39.4": (2, 6, 39, 4),
    "2.6.32-5-amd64": (2, 6, 32),
    "3.16.0-4-amd64": (3, 16, 0),
    "6.12-rc3": (6, 12),
    "7.3.4-1~bpo13+1": (7, 3, 4),
    "linux-3.2.7": (3, 2, 7),
}


@pytest.mark.parametrize(("text", "numbers"), TEXTS.items())
def test_parse(text, numbers):
    assert version.parse(text) == numbers


@pytest.mark.parametrize("text", ["", "linux", "next-20260101"])
def test_no_version(text):
    with pytest.raises(UserError, match="holds no version of a kernel"):
        version.parse(text)


@pytest.mark.parametrize(
    ("older", "newer"),
    [("2.6.39.4", "3.0"), ("3.2.7", "3.18"), ("3.16.85", "3.18"), ("3.18.140", "4.4"), ("5.9.16", "5.10")],
)
def test_order(older, newer):
    assert version.parse(older) < version.parse(newer)


def test_releases_sort_as_kernels_came():
    ascending = [
        "2.6.35.9", "2.6.39.4", "3.2.7", "3.10.1", "6.1.0-9-amd64", "6.1.0-57-amd64", "6.1.20", "6.12-rc3", "6.12-rc10",
        "6.12", "6.12.0-5-amd64", "6.12.1", "7.3.4+deb13-amd64",
    ]  # fmt: skip
    backwards = ascending[::-1]
    assert sorted(backwards, key=version.rank) == ascending
    assert version.rank("6.12") == version.rank("6.12.0") == version.rank("linux-6.12")


def test_show():
    assert version.show((2, 6, 39, 4)) == "2.6.39.4"


@pytest.fixture
def lock_file(tmp_path):
    return tmp_path / "kernels.lock"


def source(suite, package="linux-image-amd64", **more):
    return {"suite": suite, "package": package, **more}


@pytest.mark.parametrize(
    ("given", "known"),
    [
        # The kernels of Debian's releases: their release notes.
        (source("bookworm"), (6, 1)),
        (source("bullseye"), (5, 10)),
        (source("wheezy"), (3, 2)),
        (source("squeeze"), (2, 6, 32)),
        (source("bookworm") | {"kind": "debian"}, (6, 1)),
        (source("bookworm", "linux-image-6.1.0-57-amd64"), (6, 1)),
        (source("bookworm-backports", "linux-image-6.12.9+bpo-amd64"), (6, 12)),
        (source("squeeze", "linux-image-2.6.32-5-amd64"), (2, 6, 32)),
        (source("trixie", "linux-source-6.12", build=True), (6, 12)),
        (source("trixie-backports"), None),
        (source("sid"), None),
        ({"kind": "tarball", "release": "2.6.39.4"}, (2, 6, 39, 4)),
        ({"kind": "tarball", "url": "https://cdn.kernel.org/pub/linux/kernel/v3.x/linux-3.2.7.tar.xz"}, (3, 2, 7)),
        ({"kind": "tarball", "url": "linux-6.12-rc3.tar.gz"}, (6, 12)),
        ({"kind": "tarball", "url": "mine.tar.gz"}, None),
        ({"kind": "git", "repository": "../linux", "commit": "v3.2"}, None),
        ({"kind": "image", "file": "bzImage"}, None),
    ],
    ids=str,
)
def test_expected(given, known, lock_file):
    assert version.expected(given, lock_file) == known


def pin(lock_file, given, *packages):
    records = [{"package": name, "version": number} for name, number in packages]
    lock.put(lock_file, debian.key(given), {"packages": records})


def test_a_pin_says_more(lock_file):
    pin(lock_file, source("bookworm"), ("linux-image-6.1.0-57-amd64", "6.1.192-3"))
    # As trixie-backports has them; linux-base-* is first in the list.
    packages = ("linux-base", "linux-binary", "linux-image", "linux-modules")
    pin(
        lock_file,
        source("trixie-backports"),
        *((f"{name}-7.3.4+deb13-amd64", "7.3.4-1~bpo13+1") for name in packages),
    )
    assert version.expected(source("bookworm"), lock_file) == (6, 1, 192)
    assert version.expected(source("trixie-backports"), lock_file) == (7, 3, 4)
    assert version.expected(source("trixie-backports"), None) is None


def test_the_mirror_is_part_of_the_pins_name(lock_file):
    given = source("sid", mirror="http://mirror.example.org/debian")
    pin(lock_file, given, ("linux-image-4.19.0-1-amd64", "4.19.16-1"))
    assert version.expected(given, lock_file) == (4, 19, 16)
    assert version.expected(source("sid"), lock_file) is None


@pytest.mark.parametrize(
    ("given", "known"),
    [
        (source("bookworm"), (6, 1)),
        (source("bookworm-backports"), (6, 1)),
        (source("trixie-backports"), (6, 12)),
        (source("sid"), (6, 12)),
        # What a suite was on a day of the past, or on somebody's mirror, is not known.
        (source("sid", snapshot="2012-01-31"), None),
        (source("sid", mirror="http://mirror.example.org/debian"), None),
        ({"kind": "git", "repository": "../linux", "commit": "v3.2"}, None),
        ({"kind": "tarball", "release": "3.2.7"}, (3, 2, 7)),
    ],
    ids=str,
)
def test_least(given, known, lock_file):
    assert version.least(given, lock_file) == known


# The first lines of Makefile in Linux 2.6.39.4 and 6.12-rc3.
MAKEFILES = {
    "VERSION = 2\nPATCHLEVEL = 6\nSUBLEVEL = 39\nEXTRAVERSION = .4\nNAME = Flesh-Eating Bats with Fangs\n": (
        2,
        6,
        39,
        4,
    ),
    "# SPDX-License-Identifier: GPL-2.0\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 0\nEXTRAVERSION = -rc3\n": (6, 12, 0),
    "all:\n": None,
}


@pytest.mark.parametrize(("text", "known"), MAKEFILES.items())
def test_tree(text, known, tmp_path, lock_file):
    (tmp_path / "Makefile").write_text(text)
    (tmp_path / "Kconfig").touch()
    assert version.expected({"kind": "tree", "path": str(tmp_path)}, lock_file) == known


def test_a_tree_that_is_not_there(tmp_path, lock_file):
    assert version.expected({"kind": "tree", "path": str(tmp_path / "none")}, lock_file) is None
