"""How a study's runs ended, in a few lines for the terminal."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fsexp.errors import UserError


def lines(results: Path) -> Iterator[str]:
    """The counts of outcomes, each cell that gave no figure with its reason, and where the report is.

    Reads the table of runs. Raises UserError where there is none.
    """
    try:
        with (results / "tables" / "runs.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        raise UserError(f"there is no table of runs in {results}; `snakemake all` makes it") from None
    counts = Counter(row["outcome"] for row in rows)
    yield f"{len(rows)} runs: " + ", ".join(f"{number} {word}" for word, number in counts.most_common())
    reasons = Counter(
        (row["experiment"], row["kernel"], row["filesystem"], row["outcome"], row["reason"])
        for row in rows
        if row["outcome"] != "ok"
    )
    for (experiment, kernel, filesystem, outcome, reason), number in reasons.items():
        yield f"  {experiment}: {kernel}, {filesystem}: {number} {outcome}: {reason}"
    yield f"report: {results / 'report' / 'index.html'}"
