"""Ladders: which kernels of a suite they have, and what becomes of the configuration."""

import copy
from pathlib import Path

import pytest

from fsexp import apt, config, lock
from fsexp.errors import MachineError, UserError
from fsexp.kernel import debian, ladder

INDEXES = Path(__file__).parents[1] / "data" / "indexes"
FLAVOUR = "linux-image-amd64"


def index(suite):
    """Names and versions of a real suite's kernel packages, as of December 2026."""
    rows = [line.split() for line in (INDEXES / suite).read_text().splitlines()]
    return [{"Package": name, "Version": version} for name, version in rows]


def versions(rungs):
    return [rung["version"] for rung in rungs]


BACKPORTS = [
    "6.16.3",
    "6.16.12",
    "6.17.8",
    "6.17.13",
    "6.18.5",
    "6.18.9",
    "6.18.12",
    "6.18.15",
    "6.19.6",
    "6.19.8",
    "6.19.10",
    "6.19.11",
    "6.19.13",
    "6.19.14",
    "7.0.4",
    "7.0.7",
    "7.0.9",
    "7.0.10",
    "7.0.12",
    "7.0.13",
    "7.1.3",
    "7.1.7",
    "7.1.8",
    "7.1.13",
    "7.2.6",
    "7.2.9",
    "7.2.11",
    "7.2.12",
    "7.3.4",
]


@pytest.mark.parametrize(
    ("first", "last", "each", "expected"),
    [
        ("6.16", "7.3", "release", BACKPORTS),
        ("6.16.12", "6.18.5", "release", ["6.16.12", "6.17.8", "6.17.13", "6.18.5"]),
        ("6.16.4", "6.16", "release", ["6.16.12"]),
        ("6.16", "7.3", "minor", ["6.16.12", "6.17.13", "6.18.15", "6.19.14", "7.0.13", "7.1.13", "7.2.12", "7.3.4"]),
        ("7.1", "7.2.9", "minor", ["7.1.13", "7.2.9"]),
        ("5.0", "6.15", "release", []),
        ("7.3.5", "9.9", "release", []),
    ],
)
def test_the_kernels_of_trixie_backports(first, last, each, expected):
    assert versions(debian.rungs(index("trixie-backports"), FLAVOUR, first, last, each)) == expected


def test_each_is_a_package_of_the_flavour_asked_for():
    found = debian.rungs(index("trixie-backports"), FLAVOUR, "7.2.12", "7.3")
    assert [r["package"] for r in found] == ["linux-image-7.2.12+deb13-amd64", "linux-image-7.3.4+deb13-amd64"]
    found = debian.rungs(index("trixie-backports"), "linux-image-cloud-amd64", "7.3", "7.3")
    assert [r["package"] for r in found] == ["linux-image-7.3.4+deb13-cloud-amd64"]


def test_of_builds_of_one_version_the_newest_counts():
    # linux-image-6.1.0-55-amd64, -56 and -57 are 6.1.192-1, -2 and -3; nothing of -dbg or -unsigned
    found = debian.rungs(index("bookworm"), FLAVOUR, "6.1.190", "6.1")
    assert found == [
        {"version": "6.1.190", "package": "linux-image-6.1.0-54-amd64"},
        {"version": "6.1.192", "package": "linux-image-6.1.0-57-amd64"},
    ]


def test_a_candidate_comes_before_its_release_and_after_the_one_before():
    offered = [
        {"Package": "linux-image-6.12-rc7-amd64", "Version": "6.12~rc7-1~exp1"},
        {"Package": "linux-image-6.12-amd64", "Version": "6.12-1~exp1"},
        {"Package": "linux-image-6.11.9-amd64", "Version": "6.11.9-1"},
        {"Package": "linux-image-6.12.3-amd64", "Version": "6.12.3-1"},
    ]
    assert versions(debian.rungs(offered, FLAVOUR, "6.11", "6.12")) == ["6.11.9", "6.12-rc7", "6.12", "6.12.3"]
    assert versions(debian.rungs(offered, FLAVOUR, "6.12", "6.12")) == ["6.12", "6.12.3"]
    assert versions(debian.rungs(offered, FLAVOUR, "6.0", "6.11")) == ["6.11.9"]


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("linux-image-2.6.32-5-amd64", "2.6.32-48squeeze20"),
        ("linux-image-4.19.0-27-amd64", "4.19.316-1"),
        ("linux-image-6.1.0-0.deb11.22-amd64", "6.1.94-1~deb11u1"),
        ("linux-image-5.14.0-0.bpo.2-amd64", "5.14.9-2~bpo11+1"),
    ],
)
def test_names_of_other_times(name, version):
    assert [r["package"] for r in debian.rungs([{"Package": name, "Version": version}], FLAVOUR, "2.6", "9.9")] == [
        name
    ]


STUDY = {
    "kernels": {
        "old": {"debian": {"suite": "bookworm"}},
        "newest": {"debian": {"suite": "trixie-backports", "ladder": {"from": "7.2.12", "to": "7.3"}}},
    },
    "filesystems": {"ext4": {"type": "ext4"}},
    "experiments": {
        "a": {
            "title": "t", "question": "q", "workload": {"name": "create-unlink"}, "filesystems": ["ext4"], "seeds": 1,
            "kernels": ["newest", "old"],
        },
        "b": {
            "title": "t", "question": "q", "workload": {"name": "create-unlink"}, "filesystems": ["ext4"], "seeds": 1,
            "kernels": ["old"],
        },
    },
}  # fmt: skip


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """The real index of trixie-backports, without apt; what is asked of it is counted."""
    calls = []

    def answer(_, prefix):
        calls.append(prefix)
        return index("trixie-backports")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(apt.PrivateApt, "update", lambda _: True)
    monkeypatch.setattr(apt.PrivateApt, "offered", answer)
    return calls


def test_a_ladder_becomes_its_kernels(offered):
    study = config.resolve(copy.deepcopy(STUDY))
    assert list(study.kernels) == ["old", "newest 7.2.12", "newest 7.3.4"]
    assert study.kernels["newest 7.3.4"].debian.package == "linux-image-7.3.4+deb13-amd64"
    assert study.kernels["newest 7.3.4"].debian.ladder is None
    assert study.kernels["old"] == config.validate(copy.deepcopy(STUDY)).kernels["old"]
    assert study.experiments["a"].kernels == ["newest 7.2.12", "newest 7.3.4", "old"]
    assert study.experiments["b"].kernels == ["old"]


def test_what_was_expanded_is_a_configuration_of_its_own(offered, tmp_path):
    study = config.resolve(copy.deepcopy(STUDY))
    assert config.load([config.snapshot(study, tmp_path)]) == study


def test_the_lock_file_decides_from_then_on(offered, monkeypatch):
    first = config.resolve(copy.deepcopy(STUDY))
    assert list(lock.read(Path("kernels.lock"))) == [
        "debian:trixie-backports:linux-image-amd64 7.2.12..7.3 release",
    ]

    def refuse(*_):
        raise AssertionError("apt was asked")

    monkeypatch.setattr(apt.PrivateApt, "update", refuse)
    monkeypatch.setattr(apt.PrivateApt, "offered", refuse)
    assert config.resolve(copy.deepcopy(STUDY)) == first


def test_a_bad_configuration_is_refused_before_anything_is_looked_up(offered):
    data = copy.deepcopy(STUDY)
    data["experiments"]["a"]["workload"]["nfiles"] = "many"
    with pytest.raises(UserError, match="nfiles"):
        config.resolve(data)
    assert not offered


def test_a_study_without_a_ladder_asks_nothing(offered):
    data = copy.deepcopy(STUDY)
    data["kernels"]["newest"]["debian"].pop("ladder")
    assert config.resolve(copy.deepcopy(data)) == config.validate(data)
    given = config.validate(data).model_dump()
    assert ladder.expand(given) is given
    assert not offered


def test_a_ladder_without_a_kernel(offered):
    data = copy.deepcopy(STUDY)
    data["kernels"]["newest"]["debian"]["ladder"] = {"from": "5.0", "to": "5.9"}
    with pytest.raises(UserError, match=r"kernels\.newest: Debian trixie-backports offers no kernel.* 5\.0 to 5\.9"):
        config.resolve(data)
    assert not Path("kernels.lock").exists()


def test_a_name_that_is_taken(offered):
    data = copy.deepcopy(STUDY)
    data["kernels"]["newest 7.3.4"] = data["kernels"]["old"]
    with pytest.raises(UserError, match=r"kernels\.newest 7\.3\.4: the ladder 'newest' has a kernel of that name"):
        config.resolve(data)


def test_an_index_that_cannot_be_had_is_one_sentence(offered, monkeypatch):
    def fail(_):
        raise MachineError("The package lists of Debian trixie-backports can't be fetched; apt says: no network")

    monkeypatch.setattr(apt.PrivateApt, "update", fail)
    with pytest.raises(MachineError, match=r"^kernels\.newest: The package lists .*no network$"):
        config.resolve(copy.deepcopy(STUDY))


def package(name, version, *depends):
    return {"Package": name, "Version": version, "Depends": ", ".join(f"{other} (= {version})" for other in depends)}


def test_a_kernel_whose_modules_are_gone_from_the_archive_is_no_rung():
    """As trixie-backports was in December 2026: of 6.18.15 only linux-base is gone, of 6.19.14 the modules too."""
    offered = [
        package("linux-image-6.18.15+deb13-amd64", "6.18.15-1~bpo13+1", "linux-base-6.18.15+deb13-amd64"),
        package("linux-image-6.19.14+deb13-amd64", "6.19.14-1~bpo13+1", "linux-binary-6.19.14+deb13-amd64"),
        package("linux-binary-6.19.14+deb13-amd64", "6.19.14-1~bpo13+1", "linux-modules-6.19.14+deb13-amd64"),
        package("linux-image-7.2.12+deb13-amd64", "7.2.12-1~bpo13+1", "linux-binary-7.2.12+deb13-amd64"),
        package("linux-binary-7.2.12+deb13-amd64", "7.2.12-1~bpo13+1", "linux-modules-7.2.12+deb13-amd64"),
        package("linux-modules-7.2.12+deb13-amd64", "7.2.12-1~bpo13+1"),
    ]
    assert versions(debian.rungs(debian.complete(offered), FLAVOUR, "6.18", "7.3")) == ["6.18.15", "7.2.12"]
