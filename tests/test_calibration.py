"""Calibration: what is made of a guest's records, and what is told of a kernel that can't make a disk."""

import copy
import json
import shutil

import inputs
import pytest
from test_config import GOOD

from fsexp import calibration, cli, config, plan, run
from fsexp.errors import MachineError, UserError

RECORD = {
    "type": "calibration", "device": "/dev/ram0", "requests": 64, "request_bytes": 4096, "read_ns": 64 * 8_020_000,
    "write_ns": 64 * 9_000_000, "flush_ns": 64 * 1_500, "sequential_bytes": 2**28, "sequential_ns": 4_096_000_000,
}  # fmt: skip


class Study:
    """A study in a folder, whose guests answer as the test says."""

    def __init__(self, folder, monkeypatch, disks):
        data = copy.deepcopy(GOOD) | {"disks": disks}
        self.config = config.validate(data)
        self.folder = folder
        monkeypatch.chdir(folder)
        (folder / "config.yaml").write_text(json.dumps(data))
        self.name = next(iter(self.config.kernels))
        self.kernel = folder / "results" / "kernels" / plan.slug(self.name)
        inputs.kernel(self.kernel)
        self.core = inputs.core(folder / "core")
        self.result = {"outcome": "ok", "reason": "", "records": [RECORD]}
        self.booted = []
        monkeypatch.setattr(run, "start", self.start)

    def start(self, _config, booting):
        self.booted.append(booting)
        files = self.folder / "files"
        files.mkdir()
        return self.result, files

    def built_in(self, *names, release="6.1.0"):
        path = self.kernel / "kernel.json"
        described = json.loads(path.read_text())
        described["builtin"] += names
        described["release"] = release
        path.write_text(json.dumps(described))

    def measure(self, label):
        return calibration.measure(self.config, label, self.name, self.kernel / "kernel.json", self.core)


@pytest.fixture
def study(tmp_path, monkeypatch):
    return Study(tmp_path, monkeypatch, {"slow": {"model": "hdd"}, "big": {"model": "ssd", "mib": 65536}})


def test_figures(study):
    study.built_in("null_blk")
    figures = study.measure("slow")
    assert [(one.device, one.what, one.nominal, one.measured, one.unit) for one in figures] == [
        ("nullb0", "random read, 4 KiB", 8000, 8020, "us"),
        ("nullb0", "random write, 4 KiB", 8000, 9000, "us"),
        ("nullb0", "flush after a write", None, 1.5, "us"),
        ("nullb0", "sequential read, 1 MiB", 62.5, 62.5, "MiB/s"),
    ]
    assert [one.good for one in figures] == [True, False, None, True]
    lines = list(calibration.lines(figures))
    assert [line.endswith("more than 10% off") for line in lines[1:]] == [False, True, False, False]


def test_a_small_device_is_enough(study):
    study.built_in("null_blk")
    study.measure("big")
    assert b"nullb0/size\t64\n" in study.booted[0].initramfs
    assert study.booted[0].settings["memory_mib"] == study.config.machine.memory_mib + 64


def test_a_kernel_that_can_not(study):
    study.built_in("null_blk", release="3.2.7")
    (told,) = study.measure("big")
    assert told.reason.startswith("the disk model ssd is made by null_blk, which can since Linux 4.14")
    assert "unsupported: the disk model ssd" in list(calibration.lines([told]))[1]
    assert not study.booted


def test_a_kernel_without_the_driver(study):
    (told,) = study.measure("slow")
    assert "null_blk" in told.reason
    assert not study.booted


def test_a_guest_that_fails(study):
    study.built_in("null_blk")
    study.result |= {"outcome": "panic", "reason": "it did"}
    (told,) = study.measure("slow")
    assert (told.outcome, told.reason) == ("panic", "it did")
    study.result |= {"outcome": "infrastructure", "reason": "the disk is full"}
    shutil.rmtree(study.folder / "files", ignore_errors=True)
    with pytest.raises(MachineError, match=r"calibrating slow on .* failed: the disk is full"):
        study.measure("slow")


def test_a_kernel_that_can_not_be_had(study):
    (study.kernel / "kernel.json").write_text(json.dumps({"format": 1, "unavailable": "no such package"}))
    (told,) = study.measure("slow")
    assert (told.outcome, told.reason) == ("no-kernel", "no such package")
    assert not study.booted


def test_files(study, tmp_path):
    study.built_in("null_blk")
    figures = [*study.measure("slow"), calibration.Unmeasured("k", "slow", "unsupported", "it can't")]
    calibration.write(figures, tmp_path / "figures.json")
    assert calibration.read(tmp_path / "figures.json") == figures
    assert calibration.read(tmp_path / "none.json") == []
    (tmp_path / "figures.json").write_text("{}")
    with pytest.raises(UserError, match="is damaged"):
        calibration.read(tmp_path / "figures.json")


def test_command(study, capsys):
    study.built_in("null_blk")
    assert cli.main(["calibrate", "--kernel", study.name, "--disk", "slow", "--core", str(study.core)]) == 0
    assert "sequential read, 1 MiB" in capsys.readouterr().out
    kept = calibration.read(study.folder / "results" / calibration.place(study.name, "slow"))
    assert [one.measured for one in kept] == [8020, 9000, 1.5, 62.5]
    shutil.rmtree(study.folder / "files", ignore_errors=True)
    assert cli.main(["calibrate", "--disk", "fast"]) == 1
    assert "no disk 'fast' in the configuration; known are ram, slow, big" in capsys.readouterr().err
