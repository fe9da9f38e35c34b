"""What the workflow adds to its runs: `snakemake all` against the runs' own time shared among the cores.

Kernels, images and operations are there, the runs are not, neither in the results nor in the cache. It works in a
results folder and a cache of its own, and leaves the study's as they are.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import guests

from fsexp import plan

TARGET = 1.15
RESULTS = Path("results-benchmark")
CACHE = Path("results-benchmark-cache")


def main() -> int:
    """Time the workflow, as often as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    config = guests.study()
    cache = CACHE
    settings = [f"results={RESULTS}", f"cache={cache}"]
    _share_downloads(Path(config.cache), cache)
    runs = [RESULTS / one.folder / "run.json" for one in plan.runs(config)]
    needed = {RESULTS / "kernels" / plan.slug(one.kernel) / "kernel.json" for one in plan.runs(config)}
    needed |= {RESULTS / "images" / made.key / "image.json" for made in plan.images(config).values()}
    needed |= {RESULTS / "ops" / f"{key}.ops" for key in plan.streams(config).values()}
    guests.make(sorted(needed), "--config", *settings)
    command = guests.snakemake("--cores", str(options.cores), "--config", *settings, "--", "all")
    rows, ratios = [], []
    for number in range(1, options.repeat + 1):
        for folder in (RESULTS / "runs", RESULTS / "tables", RESULTS / "report", cache / "runs"):
            shutil.rmtree(folder, ignore_errors=True)
        all_s = guests.timed(command)
        shared_s = sum(json.loads(path.read_text())["wall_s"] for path in runs) / options.cores
        ratios.append(all_s / shared_s)
        rows.append((number, len(runs), all_s, shared_s, all_s / shared_s))
    heads = ("time", "runs", "all s", f"sum of wall_s / {options.cores}", "ratio")
    guests.show(f"snakemake --cores {options.cores} all: seconds of the host", heads, rows)
    return guests.verdict("median ratio", guests.median(ratios), TARGET)


def _share_downloads(theirs: Path, ours: Path) -> None:
    """Packages that were fetched once are not fetched again."""
    theirs = theirs.resolve() / "downloads"
    theirs.mkdir(parents=True, exist_ok=True)
    ours.mkdir(parents=True, exist_ok=True)
    if not (ours / "downloads").is_symlink():
        (ours / "downloads").symlink_to(theirs)


if __name__ == "__main__":
    sys.exit(main())
