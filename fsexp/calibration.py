"""A disk's model against what a guest measures of it: latency and bandwidth of each device, without a filesystem."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fsexp import disk, run
from fsexp.config import Config
from fsexp.errors import MachineError
from fsexp.kernel import ModuleMissing
from fsexp.vm import guest
from fsexp.vm.guest import Guest

# A device is as fast as a larger one: nothing here depends on a place.
_MIB = 64
# How far from its nominal figure a device may be.
TOLERANCE = 0.1


@dataclass(frozen=True)
class Figure:
    """One figure of one device. nominal: None where the model has none."""

    kernel: str
    disk: str
    device: str
    what: str
    nominal: float | None
    measured: float
    unit: str

    @property
    def good(self) -> bool | None:
        """Whether it is within the tolerance; None where there is nothing to compare with."""
        return None if self.nominal is None else abs(self.measured / self.nominal - 1) <= TOLERANCE


@dataclass(frozen=True)
class Unsupported:
    """A disk that a kernel can't make, and why."""

    kernel: str
    disk: str
    reason: str


def measure(config: Config, label: str, kernel: str, path: Path, core: Path) -> list[Figure | Unsupported]:
    """The figures of the disk `label` on a kernel, by its kernel.json. One boot. Raises MachineError where it fails."""
    wanted = disk.layout(config.disks[label], _MIB)
    # Each device for itself.
    wanted = disk.Layout(tuple(replace(device, mib=_MIB) for device in wanted.devices))
    made = Guest(guest.read_kernel(path), core)
    try:
        made.disks(wanted)
    except (disk.Unsupported, ModuleMissing) as error:
        return [Unsupported(kernel, label, str(error))]
    made.slow()
    made.calibrate()
    result, files = run.start(config, run.described(config, made, wanted, seed=1))
    shutil.rmtree(files)
    if result["outcome"] == "unsupported":
        return [Unsupported(kernel, label, result["reason"])]
    if result["outcome"] != "ok":
        raise MachineError(f"calibrating {label} on {kernel} ended {result['outcome']}: {result['reason']}")
    records = [record for record in result["records"] if record["type"] == "calibration"]
    return [
        Figure(kernel, label, node.removeprefix("/dev/"), what, nominal, measured, unit)
        for node, device, record in zip(made.nodes, wanted.devices, records, strict=True)
        for what, nominal, measured, unit in _figures(device, record)
    ]


def _figures(device: disk.Device, record: dict[str, Any]) -> Iterator[tuple[str, float | None, float, str]]:
    for what in ("read", "write"):
        yield f"random {what}, 4 KiB", device.latency_us, record[f"{what}_ns"] / record["requests"] / 1000, "us"
    # No model has a write cache, so nothing is sent.
    yield "flush after a write", None, record["flush_ns"] / record["requests"] / 1000, "us"
    measured = record["sequential_bytes"] / disk.MIB / (record["sequential_ns"] / 1e9)
    yield "sequential read, 1 MiB", device.mib_per_s, measured, "MiB/s"


def lines(figures: list[Figure | Unsupported]) -> Iterator[str]:
    """A table for the terminal."""
    yield f"{'kernel':<18}{'disk':<14}{'device':<8}{'what':<24}{'nominal':>10}{'measured':>12}  unit"
    for one in figures:
        if isinstance(one, Unsupported):
            yield f"{one.kernel:<18}{one.disk:<14}unsupported: {one.reason}"
            continue
        nominal = "-" if one.nominal is None else f"{one.nominal:.1f}"
        verdict = "" if one.good is not False else f"  more than {TOLERANCE:.0%} off"
        yield (
            f"{one.kernel:<18}{one.disk:<14}{one.device:<8}{one.what:<24}{nominal:>10}{one.measured:>12.1f}  "
            f"{one.unit}{verdict}"
        )
