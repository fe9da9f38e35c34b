"""Operations that do more in a guest than on a host: caches that are dropped, a filesystem that is mounted again."""

import os

import pytest
from bench import Bench, experiment

from fsexp import ops
from fsexp.pattern import Pattern

pytestmark = pytest.mark.vm

SIZE = 3 * 2**20


def reading(phase):
    """Open, read, close."""
    yield ops.phase(phase)
    yield ops.open(1, "d/file", os.O_RDONLY)
    yield ops.read_data(1, 2 * SIZE)
    yield ops.close(1)
    yield ops.phase_end()


def stream():
    yield ops.mkdir("d", 0o755)
    yield ops.phase("write")
    yield ops.open(0, "d/file", os.O_WRONLY | os.O_CREAT)
    yield ops.write_data(0, Pattern.RANDOM, 1, SIZE)
    yield ops.fallocate(0, 0, 0, SIZE)
    yield ops.fsync(0)
    yield ops.close(0)
    yield ops.phase_end()
    yield ops.chdir("d")
    yield ops.remount()  # to the top directory
    yield from reading("mounted again")
    yield from reading("warm")
    yield ops.drop_caches()
    yield from reading("dropped")
    yield ops.command(["/fsexp/modprobe", "no-such-module"])


def test_caches_and_programs_of_a_guest(prepared, tmp_path):
    bench = Bench(prepared.folder, {"all": experiment({"name": "create-unlink"}, filesystems=["btrfs"])}, "all.yaml")
    ops.write(tmp_path / "ops", stream())
    one = bench.planned("all")
    bench.fsexp("run", "--run", one.folder, "--ops", tmp_path / "ops")
    result, _ = bench.result(one)
    assert result["outcome"] == "workload-failed"
    assert result["reason"] == "status '/fsexp/modprobe': it ended with status 1"
    phases = {record["name"]: record for record in result["records"] if record["type"] == "phase"}
    assert {name: record["bytes"] for name, record in phases.items()} == dict.fromkeys(
        ("write", "mounted again", "warm", "dropped"), SIZE
    )
    # In KiB, as the block layer counts them: a file is read from the disk once it is in no cache, and not before.
    read_kib = {name: record["vmstat"]["pgpgin"] for name, record in phases.items()}
    assert read_kib["warm"] == 0
    assert read_kib["mounted again"] >= SIZE / 1024
    assert read_kib["dropped"] >= SIZE / 1024
    assert phases["write"]["vmstat"]["pgpgout"] >= SIZE / 1024
    caches = [(record["operation"], record["dropped"]) for record in result["records"] if record["type"] == "caches"]
    assert caches == [("remount", 1), ("drop-caches", 1)]
    space = {record["phase"]: record for record in result["records"] if record["type"] == "space"}
    before, after = ({row["kind"]: row for row in space[phase]["btrfs"]} for phase in ("", "mounted again"))
    assert after["data"]["used_bytes"] - before["data"]["used_bytes"] == SIZE
    # What `btrfs filesystem df` prints of mkfs.btrfs's defaults on one device.
    assert {kind: row["profile"] for kind, row in before.items()} == {
        "data": "single",
        "metadata": "DUP",
        "system": "DUP",
    }
    [command] = [record for record in result["records"] if record["type"] == "command"]
    assert (command["phase"], command["argv"], command["status"]) == ("", ["/fsexp/modprobe", "no-such-module"], 1)
