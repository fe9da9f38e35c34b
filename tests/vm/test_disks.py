"""Disks in a guest: the models' speed against their figures, bcache, btrfs on two disks. Three boots."""

import os
import shutil

import pytest
from bench import CORE, NEW, NFILES, OLD, Bench, experiment

from fsexp import config, disk, plan, run
from fsexp.vm import guest
from fsexp.vm.guest import Guest

pytestmark = pytest.mark.vm

HDD, SSD = {"model": "hdd"}, {"model": "ssd", "mib": 300}


def test_a_stack_of_two_speeds(prepared):
    kernel = guest.read_kernel(prepared.kernel(NEW))
    layout = disk.layout(config.Disk(bcache="writeback", backing=HDD, cache=SSD), 256)
    made = Guest(kernel, CORE)
    made.disks(layout)
    made.calibrate()
    made.image(prepared.image("ext4", NEW))
    made.mount("ext4", "")
    made.umount()
    result, files = run.start(prepared.config, run.described(prepared.config, made, layout, seed=1))
    console = (files / "console.log").read_text()
    shutil.rmtree(files)
    assert (result["outcome"], result["reason"]) == ("ok", "")
    # docs/disks.md: 8 ms and 512 KiB a request; 100 us, and what the kernel adds, and 500 MiB/s.
    slow, fast = [record for record in result["records"] if record["type"] == "calibration"]
    for what in ("read_ns", "write_ns"):
        assert slow[what] / slow["requests"] == pytest.approx(8_000_000, rel=0.1)
        assert 100_000 < fast[what] / fast["requests"] < 140_000
    assert slow["sequential_bytes"] / 2**20 / (slow["sequential_ns"] / 1e9) == pytest.approx(62.5, rel=0.1)
    assert fast["sequential_bytes"] / 2**20 / (fast["sequential_ns"] / 1e9) == pytest.approx(500, rel=0.1)
    (mount,) = [record for record in result["records"] if record["type"] == "mount"]
    assert mount["device"] == "/dev/bcache0"
    assert "Caching nullb0 as bcache0" in console


def test_btrfs_on_two_disks(prepared, tmp_path):
    workload = {"name": "create-unlink", "nfiles": NFILES}
    two = experiment(workload, [OLD], ["btrfs"]) | {"disks": ["both"]}
    bench = Bench.new(tmp_path / "study", {"two": two}, disks={"both": {"devices": [HDD, SSD]}})
    for name in ("kernels", "maker", "userland"):
        shutil.copytree(prepared.results / name, bench.results / name, copy_function=os.link)
    (image,) = plan.images(bench.config).values()
    bench.fsexp("image", image.key)
    bench.make_ops()
    one = bench.planned("two")
    bench.fsexp("run", "--run", one.folder)
    result, _ = bench.result(one)
    assert (result["outcome"], result["reason"]) == ("ok", "")
    space = next(record for record in result["records"] if record["type"] == "space")
    # 256 MiB and 300 MiB: statfs's blocks of btrfs are those of all its devices.
    assert space["blocks"] * space["block_bytes"] == (256 + 300) * 2**20
    phases = [record for record in result["records"] if record["type"] == "phase"]
    assert [list(phase["disks"]) for phase in phases] == [["nullb0", "nullb1"]] * len(phases)
