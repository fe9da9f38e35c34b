"""Prove on this machine that the virtual clock is what it claims: the same runs twice, the second time with every
core of the host busy, compared byte by byte."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from fsexp import config as configuration
from fsexp import disk, plan, run
from fsexp.config import Config
from fsexp.errors import MachineError, UserError

NFILES = 500

# Ends when the process that started it does, so that nothing is left behind however that one ends.
_BURN = "import os, sys\nparent = int(sys.argv[1])\nwhile os.getppid() == parent:\n    sum(range(100000))\n"


def study(config: Config) -> Config:
    """The study with a small workload, one seed; the cells stay, since formats go by what is crossed with what."""
    data = config.model_dump()
    for experiment in data["experiments"].values():
        experiment |= {
            "title": "Selfcheck",
            "question": "Do two runs agree in every digit?",
            "workload": {"name": "create-unlink", "nfiles": NFILES},
            "variants": {},
            "seeds": [1],
            "published": [],
        }
    return configuration.validate(data)


def cells(config: Config, kernels: list[str] | None = None) -> list[plan.Run]:
    """A run of each cell of `study`, of these kernels (None: of all), once where experiments share it."""
    found: dict[tuple[str, ...], plan.Run] = {}
    for one in plan.runs(config):
        if kernels is None or one.kernel in kernels:
            found.setdefault((one.kernel, one.filesystem, one.disk), one)
    return list(found.values())


def check(
    config: Config,
    runs: list[plan.Run],
    inputs: Callable[[plan.Run], run.Inputs],
    say: Callable[[str], None],
    folder: Path,
) -> None:
    """Make each run idle, then under load, and compare; `say` gets a line for every figure.

    folder: where the console and records of both runs of a cell that differs are kept.
    A cell whose kernel can't do its disk is said and passed over. Raises MachineError at the first difference, or when
    a run does not end `ok`, UserError where no cell is left.
    """
    compared = 0
    for one in runs:
        try:
            booting = run.prepare(config, one, inputs(one))
        except disk.Unsupported as error:
            say(f"{one.label}: not compared: {error}")
            continue
        idle = _once(config, booting, one)
        try:
            with _load():
                busy = _once(config, booting, one)
            try:
                _equal(one, idle, busy, folder)
            finally:
                shutil.rmtree(busy[1])
        finally:
            shutil.rmtree(idle[1])
        for record in idle[0]["records"]:
            if record["type"] == "phase":
                say(
                    f"{one.label}, {record['name']}: {record['elapsed_ns']} ns idle, "
                    f"{record['elapsed_ns']} ns busy: equal"
                )
        compared += len(idle[0]["records"])
        say(
            f"{one.label}: {len(idle[0]['records'])} records and the console are equal "
            f"(idle {idle[0]['wall_s']:.1f} s, busy {busy[0]['wall_s']:.1f} s of the host's time)"
        )
    if not compared:
        raise UserError("no kernel can do the disk of any cell: nothing was compared")
    say(f"selfcheck: {compared} records of {compared} agree in every digit")


def _once(config: Config, booting: run.Booting, one: plan.Run) -> tuple[dict[str, Any], Path]:
    result, files = run.start(config, booting)
    if result["outcome"] != "ok":
        console = (files / "console.log").read_text(errors="replace").splitlines()[-5:]
        shutil.rmtree(files)
        raise MachineError(
            f"{one.label}: the run ended {result['outcome']}: {result['reason']}; "
            f"its last console lines: {' | '.join(console)}"
        )
    return result, files


def _equal(one: plan.Run, idle: tuple[dict[str, Any], Path], busy: tuple[dict[str, Any], Path], kept: Path) -> None:
    for name in ("records.jsonl", "console.log"):
        first, second = ((files / name).read_bytes().splitlines() for _, files in (idle, busy))
        for number, (one_line, other) in enumerate(zip_longest(first, second), start=1):
            if one_line != other:
                shutil.copytree(idle[1], kept / "idle", dirs_exist_ok=True)
                shutil.copytree(busy[1], kept / "busy", dirs_exist_ok=True)
                raise MachineError(
                    f"{one.label}: line {number} of {name} differs:\n"
                    f"  idle: {_text(one_line)}\n  busy: {_text(other)}\nboth runs are kept in {kept}"
                )


def _text(line: bytes | None) -> str:
    return "(no such line)" if line is None else line.decode(errors="replace")


@contextmanager
def _load() -> Iterator[None]:
    """Keep every core of the host busy."""
    command = [sys.executable, "-c", _BURN, str(os.getpid())]
    burners = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
