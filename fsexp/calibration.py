"""A disk's model against what a guest measures of it: latency and bandwidth of each device, without a filesystem."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fsexp import disk, plan, run, whole
from fsexp.config import Config
from fsexp.errors import KernelRefused, MachineError, UserError
from fsexp.kernel import ModuleMissing
from fsexp.vm import guest
from fsexp.vm.guest import Guest

FORMAT = 1

# A device is as fast as a larger one: nothing here depends on a place.
_MIB = 64
# How far from its nominal figure a device may be.
TOLERANCE = 0.1


@dataclass(frozen=True)
class Figure:
    """One figure of one device, the disk's `number`th from 1 on. nominal: None where the model has none."""

    kernel: str
    disk: str
    number: int
    model: str
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
class Unmeasured:
    """A disk that gave no figures on a kernel, by the outcome's word and reason."""

    kernel: str
    disk: str
    outcome: str
    reason: str


def measure(config: Config, label: str, kernel: str, path: Path, core: Path) -> list[Figure | Unmeasured]:
    """The figures of the disk `label` on a kernel, by its kernel.json. One boot.

    Raises MachineError where the machine fails.
    """
    description = guest.read_kernel(path).description
    if "unavailable" in description:
        return [Unmeasured(kernel, label, description.get("outcome", "no-kernel"), description["unavailable"])]
    wanted = disk.layout(config.disks[label], _MIB)
    # Each device for itself.
    wanted = disk.Layout(tuple(replace(device, mib=_MIB) for device in wanted.devices))
    made = Guest(guest.read_kernel(path), core)
    try:
        made.disks(wanted)
    except (disk.Unsupported, ModuleMissing) as error:
        return [Unmeasured(kernel, label, "unsupported", str(error))]
    made.slow()
    made.calibrate()
    try:
        result, files = run.start(config, run.described(config, made, wanted, seed=1))
    except KernelRefused as error:
        return [Unmeasured(kernel, label, error.outcome, str(error))]
    shutil.rmtree(files)
    if result["outcome"] == "infrastructure":
        raise MachineError(f"calibrating {label} on {kernel} failed: {result['reason']}")
    if result["outcome"] != "ok":
        return [Unmeasured(kernel, label, result["outcome"], result["reason"])]
    records = [record for record in result["records"] if record["type"] == "calibration"]
    return [
        Figure(kernel, label, number, device.model, node.removeprefix("/dev/"), what, nominal, measured, unit)
        for number, (node, device, record) in enumerate(zip(made.nodes, wanted.devices, records, strict=True), 1)
        for what, nominal, measured, unit in _figures(device, record)
    ]


def _figures(device: disk.Device, record: dict[str, Any]) -> Iterator[tuple[str, float | None, float, str]]:
    for what in ("read", "write"):
        yield f"random {what}, 4 KiB", device.latency_us, record[f"{what}_ns"] / record["requests"] / 1000, "us"
    # No model has a write cache, so nothing is sent.
    yield "flush after a write", None, record["flush_ns"] / record["requests"] / 1000, "us"
    measured = record["sequential_bytes"] / disk.MIB / (record["sequential_ns"] / 1e9)
    yield "sequential read, 1 MiB", device.mib_per_s, measured, "MiB/s"


def write(figures: list[Figure | Unmeasured], path: Path) -> None:
    """Write the figures of one disk on one kernel as JSON."""
    missing = [asdict(one) for one in figures if isinstance(one, Unmeasured)]
    found = [asdict(one) for one in figures if isinstance(one, Figure)]
    whole.write_json(path, {"format": FORMAT, "figures": found, "unmeasured": missing})


def read(path: Path) -> list[Figure | Unmeasured]:
    """What `write` wrote; empty where there is no such file. Raises UserError for another one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return [Figure(**one) for one in content["figures"]] + [Unmeasured(**one) for one in content["unmeasured"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}); remove it and call the command again") from None


def place(kernel: str, label: str) -> str:
    """The file of a disk on a kernel, below the results folder."""
    return f"calibration/{plan.slug(kernel)},{plan.slug(label)}.json"


def lines(figures: list[Figure | Unmeasured]) -> Iterator[str]:
    """A table for the terminal."""
    yield f"{'kernel':<18}{'disk':<14}{'device':<8}{'what':<24}{'nominal':>10}{'measured':>12}  unit"
    for one in figures:
        if isinstance(one, Unmeasured):
            yield f"{one.kernel:<18}{one.disk:<14}{one.outcome}: {one.reason}"
            continue
        nominal = "-" if one.nominal is None else f"{one.nominal:.1f}"
        verdict = "" if one.good is not False else f"  more than {TOLERANCE:.0%} off"
        yield (
            f"{one.kernel:<18}{one.disk:<14}{one.device:<8}{one.what:<24}{nominal:>10}{one.measured:>12.1f}  "
            f"{one.unit}{verdict}"
        )
