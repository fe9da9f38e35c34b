"""What the benchmarks boot: the study's own kernels, images and operations, made by its rules where they are missing,
and QEMU without libvirt around it."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from fsexp import config as configuration
from fsexp import plan, run
from fsexp.config import Config
from fsexp.vm import domain

ROOT = Path(__file__).resolve().parents[1]
STUDY = [Path("config.yaml"), Path("benchmarks", "study.yaml")]
CORE = ROOT / "vmimages" / "core" / "build" / "core"


def study() -> Config:
    """The benchmarks' study; the process and what it calls work in the project's folder from here on."""
    os.chdir(ROOT)
    config = configuration.load(STUDY)
    os.environ["FSEXP_CONFIG"] = str(configuration.snapshot(config, Path(".snakemake", "fsexp")))
    return config


def snakemake(*arguments: str, more: Iterable[Path] = ()) -> list[str]:
    """The command for the benchmarks' study, with further configuration files over it."""
    return ["snakemake", "--configfile", *map(str, [*STUDY, *more]), *arguments]


def inputs(config: Config, one: plan.Run) -> run.Inputs:
    """The files of a run where their rules put them, made first where they are missing or out of date."""
    results = Path(config.results)
    found = run.Inputs(
        kernel=results / "kernels" / plan.slug(one.kernel) / "kernel.json",
        image=results / "images" / plan.image_key(config, one.filesystem, one.kernel, one.disk) / "image.json",
        ops=results / "ops" / f"{plan.ops_key(config.experiments[one.experiment], one.variant)}.ops",
        core=CORE,
    )
    make([found.kernel, found.image, found.ops])
    return found


def make(targets: Iterable[Path | str], *options: str) -> None:
    """Have Snakemake make these files; its own words come only when it fails."""
    command = snakemake("--cores", "all", *options, "--", *map(str, targets))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def qemu(
    booting: run.Booting, folder: Path, command_line: str | None = None, kernel: Path | None = None
) -> tuple[list[str], Path]:
    """The least command that boots this guest, and the file its records go to.

    command_line, kernel: in place of the guest's own.
    """
    machine = booting.machine
    initramfs, records = folder / "initramfs", folder / "records.jsonl"
    initramfs.write_bytes(booting.initramfs)
    records.unlink(missing_ok=True)
    began = datetime.fromtimestamp(machine["epoch_s"], UTC).strftime("%Y-%m-%dT%H:%M:%S")
    argv = [
        domain.EMULATOR,
        *("-accel", "tcg"),
        *("-icount", f"shift={machine['shift']},sleep=off"),
        *("-machine", f"{machine['type']},hpet=off"),
        *("-cpu", machine["cpu"]),
        *("-m", str(machine["memory_mib"])),
        *("-uuid", booting.uuid),
        *("-rtc", f"base={began},clock=vm"),
        *("-nodefaults", "-display", "none", "-no-reboot"),
        *("-kernel", str(kernel or booting.kernel.image)),
        *("-initrd", str(initramfs)),
        *("-append", command_line or booting.command_line),
        *("-serial", f"file:{folder / 'console.log'}"),
        *("-serial", f"file:{records}"),
    ]
    return argv, records


def timed(command: Sequence[str]) -> float:
    """Seconds that a command takes, whose output is kept for the case that it fails."""
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took_s = time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return took_s


def median(values: Iterable[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def show(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], say: Callable[[str], None] = print
) -> None:
    """Print a table: the first column to the left, the others to the right; floats with three digits."""
    cells = [[f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    say(title)
    for row in (list(heads), ["-" * width for width in widths], *cells):
        first, *others = (
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        say("  ".join([first, *others]).rstrip())
    say("")


def verdict(what: str, value: float, target: float, unit: str = "") -> int:
    """Say whether a figure keeps to its target; returns the exit status."""
    kept = value <= target
    print(f"{what}: {value:.3f}{unit}, target at most {target:g}{unit}: {'kept' if kept else 'MISSED'}")
    return 0 if kept else 1
