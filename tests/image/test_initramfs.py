"""The initramfs, read back by a parser that shares nothing with what wrote it (and by cpio, where it is installed)."""

import io
import shutil
import stat
import subprocess
import tarfile
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsexp.image.initramfs import Initramfs


@dataclass
class Entry:
    """A header's numbers by their names in Linux's Documentation/driver-api/early-userspace/buffer-format.rst."""

    name: str
    data: bytes
    numbers: dict


NUMBERS = (
    "ino",
    "mode",
    "uid",
    "gid",
    "nlink",
    "mtime",
    "filesize",
    "maj",
    "min",
    "rmaj",
    "rmin",
    "namesize",
    "chksum",
)


def read(archive):
    """The entries, the trailer left out; every byte of the archive is accounted for."""
    entries, at = [], 0
    while True:
        assert archive[at : at + 6] == b"070701"
        numbers = {name: int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i, name in enumerate(NUMBERS)}
        name_end = at + 110 + numbers["namesize"]
        assert archive[name_end - 1] == 0
        name = archive[at + 110 : name_end - 1].decode()
        data_at = name_end + (4 - name_end % 4) % 4
        data_end = data_at + numbers["filesize"]
        at = data_end + (4 - data_end % 4) % 4
        assert not any(archive[name_end:data_at]) and not any(archive[data_end:at])
        if name == "TRAILER!!!":
            assert at == len(archive)
            return entries
        entries.append(Entry(name, archive[data_at:data_end], numbers))


def example():
    made = Initramfs()
    made.file("init", b"\x7fELF" + bytes(range(256)), executable=True)
    made.file("fsexp/modules/ext4.ko", b"12345")
    made.file("fsexp/empty", b"")
    made.link("fsexp/modprobe", "/init")
    made.folder("/mnt")
    made.character_device("dev/console", 5, 1)
    return made


def test_entries_by_hand():
    entries = {entry.name: entry for entry in read(example().pack())}
    modes = {name: entry.numbers["mode"] for name, entry in entries.items()}
    assert modes == {
        "dev": 0o40755,
        "dev/console": 0o20600,
        "fsexp": 0o40755,
        "fsexp/empty": 0o100644,
        "fsexp/modprobe": 0o120777,
        "fsexp/modules": 0o40755,
        "fsexp/modules/ext4.ko": 0o100644,
        "init": 0o100755,
        "mnt": 0o40755,
    }
    assert entries["init"].data == b"\x7fELF" + bytes(range(256))
    assert entries["fsexp/modules/ext4.ko"].data == b"12345"
    assert entries["fsexp/modprobe"].data == b"/init"
    console = entries["dev/console"].numbers
    assert (console["rmaj"], console["rmin"]) == (5, 1)
    for entry in entries.values():
        assert [entry.numbers[name] for name in ("uid", "gid", "mtime", "maj", "min", "chksum")] == [0] * 6
        assert entry.numbers["nlink"] == (2 if stat.S_ISDIR(entry.numbers["mode"]) else 1)


def test_folders_come_before_what_is_in_them():
    seen = set()
    for entry in read(example().pack()):
        parent = entry.name.rpartition("/")[0]
        assert not parent or parent in seen
        seen.add(entry.name)


def test_inode_numbers_differ():
    # Equal numbers with a link count above 1 would be hard links to the kernel's unpacker.
    numbers = [entry.numbers["ino"] for entry in read(example().pack())]
    assert numbers == list(range(1, len(numbers) + 1))


def test_order_of_calls_plays_no_part():
    first, second = Initramfs(), Initramfs()
    names = ["a", "b/c", "b.d", "b/a/x"]
    for name in names:
        first.file(name, name.encode())
    for name in reversed(names):
        second.file(name, name.encode())
    assert first.pack() == second.pack()
    assert first.pack() == first.pack()


def test_later_entry_replaces():
    made = Initramfs()
    made.file("a", b"old", executable=True)
    made.file("/a", b"new")
    (entry,) = read(made.pack())
    assert (entry.data, entry.numbers["mode"]) == (b"new", 0o100644)


@pytest.mark.parametrize("name", ["../a", "a/../../b", "/.."])
def test_nothing_leaves_the_archive(name):
    with pytest.raises(ValueError, match="leaves the archive"):
        Initramfs().file(name, b"")


def test_the_end_is_no_name():
    with pytest.raises(ValueError, match="would end the archive"):
        Initramfs().file("TRAILER!!!", b"")
    made = Initramfs()
    made.file("TRAILER!!!.txt", b"")
    assert len(read(made.pack())) == 1


NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/."), min_size=1, max_size=20
).filter(lambda name: name != "TRAILER!!!")


@given(st.dictionaries(NAMES, st.binary(max_size=50), max_size=8))
def test_any_content_comes_back(files):
    made = Initramfs()
    for name, data in files.items():
        made.file(name, data)
    assert {entry.name: entry.data for entry in read(made.pack())} == files


def test_userland(tmp_path):
    path = tmp_path / "root.tar"
    with tarfile.open(path, "w") as tar:

        def add(name, kind, data=b"", mode=0o644, target=""):
            member = tarfile.TarInfo(name)
            member.type, member.size, member.mode, member.linkname = kind, len(data), mode, target
            tar.addfile(member, io.BytesIO(data))

        add("usr", tarfile.DIRTYPE, mode=0o755)
        add("usr/bin/mkfs", tarfile.REGTYPE, b"program", mode=0o755)
        add("usr/bin/mke2fs", tarfile.LNKTYPE, target="usr/bin/mkfs", mode=0o755)
        add("bin", tarfile.SYMTYPE, target="usr/bin")
        add("etc/mke2fs.conf", tarfile.REGTYPE, b"text")
    made = Initramfs()
    made.tar(path)
    entries = {entry.name: (entry.numbers["mode"], entry.data) for entry in read(made.pack())}
    assert entries == {
        "usr": (0o40755, b""),
        "usr/bin": (0o40755, b""),
        "usr/bin/mkfs": (0o100755, b"program"),
        "usr/bin/mke2fs": (0o100755, b"program"),
        "bin": (0o120777, b"usr/bin"),
        "etc": (0o40755, b""),
        "etc/mke2fs.conf": (0o100644, b"text"),
    }


@pytest.mark.skipif(not shutil.which("cpio"), reason="cpio is not installed")
def test_cpio_reads_it():
    listed = subprocess.run(["cpio", "-it", "--quiet"], input=example().pack(), capture_output=True, check=True)
    assert listed.stdout.decode().split() == [entry.name for entry in read(example().pack())]
