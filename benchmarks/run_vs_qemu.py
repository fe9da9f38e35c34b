"""What `fsexp run` adds to QEMU: a whole `fsexp run --again`, and the guest's time in it, against bare QEMU.

Bare QEMU boots the same kernel, initramfs and arguments without libvirt. The two alternate, and each pair gives a
ratio, so that a load that comes and goes falls on both.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import guests

from fsexp import plan, run

TARGET = 1.10


def main() -> int:
    """Time the pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", metavar="FOLDER", help="default: the study's first")
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    config = guests.study()
    one = plan.run(config, options.run) if options.run else next(plan.runs(config))
    booting = run.prepare(config, one, guests.inputs(config, one))
    rows, ratios = [], []
    with tempfile.TemporaryDirectory(prefix="fsexp-benchmark-") as scratch:
        folder = Path(scratch)
        argv, records = guests.qemu(booting, folder)
        output = folder / "run" / "run.json"
        command = ["fsexp", "run", "--again", "--run", one.folder, "--output", str(output)]
        for number in range(1, options.pairs + 1):
            whole_s = guests.timed(command)
            bare_s = guests.timed(argv)
            guest_s = json.loads(output.read_text())["wall_s"]
            _same_work(output.with_name("records.jsonl"), records)
            ratios.append(whole_s / bare_s)
            rows.append((number, whole_s, guest_s, bare_s, whole_s / bare_s, guest_s / bare_s))
    heads = ("pair", "fsexp run s", "its wall_s", "QEMU s", "run/QEMU", "wall_s/QEMU")
    guests.show(f"{one.folder}: seconds of the host", heads, rows)
    return guests.verdict("median of run/QEMU", guests.median(ratios), TARGET)


def _same_work(one: Path, other: Path) -> None:
    """Both guests did the same. Libvirt's machine differs a little from the bare one, and so do the last digits."""
    for mine, theirs in zip(_phases(one), _phases(other), strict=True):
        if mine["name"] != theirs["name"] or abs(mine["elapsed_ns"] / theirs["elapsed_ns"] - 1) > 0.01:
            raise SystemExit(f"the guests differ: {mine} in the run, {theirs} under bare QEMU")


def _phases(path: Path) -> list[dict]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [record for record in records if record["type"] == "phase"]


if __name__ == "__main__":
    sys.exit(main())
