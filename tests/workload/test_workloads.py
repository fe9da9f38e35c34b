"""Workloads: what they do, counted by hand from the mails and sources that they come from."""

from collections import Counter

import pytest

from fsexp import ops, workload
from fsexp.workload import tree


def stream(name, **given):
    data = b"".join(workload.ops(name, workload.parameters(name, given)))
    whole = ops.MAGIC + ops.VERSION.to_bytes(4, "little") + data + bytes([ops.TABLE["end"][0]])
    return list(ops.read(whole))[:-1]


def count(operations):
    return Counter(name for name, _ in operations)


CASES = [
    ("create-unlink", {"nfiles": 3}),
    ("inline-small-files", {"nfiles": 3}),
    ("inline-small-files", {"nfiles": 3, "passes": 3}),
    ("inline-small-files", {"nfiles": 3, "synced": True, "passes": 2}),
    ("tree", {"directories": 90}),
    ("tree-walk", {"directories": 90}),
    ("tree-walk", {"directories": 90, "programs": "today, sorted"}),
    ("package-upgrade", {"packages": 3}),
    ("fault", {"kind": "spin"}),
]


@pytest.mark.parametrize(("name", "given"), CASES)
def test_the_phases_are_those_that_are_promised(name, given):
    named = [arguments[0] for operation, arguments in stream(name, **given) if operation == "phase"]
    assert named == workload.phases(name, workload.parameters(name, given))


@pytest.mark.parametrize(("name", "given"), CASES)
def test_the_stream_is_the_same_each_time(name, given):
    assert stream(name, **given) == stream(name, **given)


def test_small_files_are_opened_written_and_closed():
    append = 0o1 | 0o100 | 0o2000  # O_WRONLY, O_CREAT, O_APPEND of Linux on x86
    assert stream("inline-small-files", nfiles=2, size_bytes=7168) == [
        ("phase", ["write"]),
        ("open", [0, "0", append, 0o644]), ("write", [0, 3, 0, 7168]), ("close", [0]),
        ("open", [0, "1", append, 0o644]), ("write", [0, 3, 0, 7168]), ("close", [0]),
        ("phase-end", []), ("phase", ["sync"]), ("sync", []), ("phase-end", []),
    ]  # fmt: skip


def test_a_sync_in_the_timer_is_in_each_pass():
    named = [name for name, _ in stream("inline-small-files", nfiles=1, synced=True, passes=2)]
    assert named == ["phase", "open", "write", "close", "sync", "phase-end"] * 2


def test_the_tree_is_shaped_as_that_of_the_mail():
    made = count(stream("tree", directories=9000))
    assert made["mkdir"] == 9001  # and the folder around it
    assert made["open"] / 9000 == pytest.approx(1_978_149 / 844_008, rel=0.01)


def test_the_sizes_are_those_of_the_distribution():
    below, above = sorted(tree.SIZES)[63:65]
    assert below < 3000 < above < 1.05 * below  # the median
    assert sum(tree.SIZES) / len(tree.SIZES) == pytest.approx(54e9 / 1_978_149, rel=0.02)
    sizes = Counter(arguments[3] for name, arguments in stream("tree", directories=128 * 9) if name == "write")
    # 128 versioned directories, nine files in each and a twin of each: every quantile 18 times.
    assert all(sizes[size] >= 18 for size in tree.SIZES)


def test_each_file_has_a_twin():
    opened = [arguments for name, arguments in stream("tree", directories=9) if name in ("open", "write")]
    files = {path[1]: written[1:] for path, written in zip(opened[::2], opened[1::2], strict=True)}
    twins = [path for path in files if path.endswith(".svn-base")]
    assert len(twins) == 9
    for path in twins:
        folder, name = path.removesuffix(".svn-base").split("/.svn/text-base/")
        assert files[path] == files[f"{folder}/{name}"]


def test_an_administration_is_eight_directories():
    made = [arguments[0] for name, arguments in stream("tree", directories=9) if name == "mkdir"]
    assert sum("/.svn" in path for path in made) == 8


def test_the_walks_are_cold_and_warm():
    named = [(name, arguments[:1]) for name, arguments in stream("tree-walk", directories=9) if name != "write"]
    steps = [step for step in named if step[0] in ("remount", "phase", "walk", "copy", "remove", "sync")]
    assert steps == [
        ("remount", []), ("phase", ["find-dirs"]), ("walk", ["findutils-4.4.2"]),
        ("phase", ["find-dirs-warm"]), ("walk", ["findutils-4.4.2"]),
        ("remount", []), ("phase", ["find-files"]), ("walk", ["findutils-4.4.2"]),
        ("phase", ["find-files-warm"]), ("walk", ["findutils-4.4.2"]),
        ("remount", []), ("phase", ["cp"]), ("copy", ["coreutils-8.12"]), ("sync", []),
        ("remount", []), ("phase", ["rm"]), ("remove", ["coreutils-8.12"]), ("sync", []),
    ]  # fmt: skip


def upgrade(**given):
    whole = stream("package-upgrade", **given)
    names = [name for name, _ in whole]
    return whole[names.index("phase") : names.index("phase-end")]


# The first package has one file and two control files. dpkg then syncs: each control file and their folder, eight
# records and their folder, the file, the list and `info`.
def test_what_dpkg_syncs():
    assert count(upgrade(packages=1))["fsync"] == 2 + 1 + 8 * 2 + 1 + 1 + 1


def test_force_unsafe_io_leaves_only_the_files_of_the_package():
    assert count(upgrade(packages=1, unsafe_io=True))["fsync"] == 2 + 1 + 8 * 2 + 1 + 1
    # The hint to begin writing stays; the wait for it goes.
    assert count(upgrade(packages=1))["sync-file-range"] == 2
    assert count(upgrade(packages=1, unsafe_io=True))["sync-file-range"] == 1


def test_eatmydata_leaves_no_sync():
    assert not {"fsync", "fdatasync", "sync", "sync-file-range"} & set(count(upgrade(packages=8, eatmydata=True)))


def test_files_are_replaced_in_the_order_of_dpkg():
    name = "usr/share/pkg0/file0"
    about = [
        (operation, arguments[-1] if operation == "rename" else "")
        for operation, arguments in upgrade(packages=1)
        if any(str(argument).startswith(name) for argument in arguments)
    ]
    assert [operation for operation, _ in about] == [
        "open", "utimes", "link", "open", "open", "rename", "unlink",
    ]  # fmt: skip
    assert about[5] == ("rename", name)


def test_the_status_is_written_anew_after_250_records():
    # 32 packages change it 8 times each: once.
    renamed = [arguments[1] for name, arguments in upgrade(packages=32) if name == "rename"]
    assert renamed.count("var/lib/dpkg/status") == 1
    removed = [arguments[0] for name, arguments in upgrade(packages=32) if name == "unlink"]
    assert sum("/updates/" in path for path in removed) == 250
