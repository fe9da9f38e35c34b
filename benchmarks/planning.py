"""How long planning takes: `snakemake -n` for ten thousand runs, and with nothing to do at the default scale."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import guests
import yaml

from fsexp import plan
from fsexp.config import Config

RUNS = 10_000
TARGETS_S = {"many": 20.0, "none": 3.0}


def main() -> int:
    """Time both dry runs, as often as asked, and compare the medians with the targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    config = guests.study()
    guests.make(["all"])  # so that there is nothing to do; boots only what is missing
    with tempfile.TemporaryDirectory(prefix="fsexp-benchmark-") as scratch:
        many = Path(scratch, "many.yaml")
        many.write_text(yaml.safe_dump(_many(config)))
        cases = {
            "many": guests.snakemake("-n", "--", "all", more=[many]),
            "none": guests.snakemake("-n", "--", "all"),
        }
        rows, status = [], 0
        for name, command in cases.items():
            took_s, jobs = zip(*(_dry_run(command) for _ in range(options.repeat)), strict=True)
            rows.append((name, jobs[0], guests.median(took_s), min(took_s), max(took_s)))
    guests.show("snakemake -n: seconds of the host", ("case", "runs planned", "median", "least", "most"), rows)
    for name, _, median_s, _, _ in rows:
        status |= guests.verdict(name, median_s, TARGETS_S[name], " s")
    return status


def _many(config: Config) -> dict:
    name, experiment = next(iter(config.experiments.items()))
    cells = len(experiment.kernels) * len(experiment.filesystems)
    others = sum(one.experiment != name for one in plan.runs(config))
    return {"experiments": {name: {"seeds": -(-(RUNS - others) // cells)}}}


def _dry_run(command: list[str]) -> tuple[float, int]:
    """Seconds it took, and how many runs it would make."""
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took_s = time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"snakemake -n failed:\n{done.stdout}{done.stderr}")
    found = re.search(r"^run +(\d+)$", done.stdout + done.stderr, re.MULTILINE)
    return took_s, int(found[1]) if found else 0


if __name__ == "__main__":
    sys.exit(main())
