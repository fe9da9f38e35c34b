"""How a study's runs ended, in a few lines for the terminal."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fsexp import plan
from fsexp.config import RAM
from fsexp.errors import UserError
from fsexp.table import GONE

_NEEDED = {"experiment", "kernel", "filesystem", "outcome", "reason", "folder"}


def lines(results: Path) -> Iterator[str]:
    """The counts of outcomes, each cell that gave no figure with its reason, and where the report is.

    Reads the table of runs; a run whose result is gone since counts as missing. Raises UserError where there is no
    table, or it is not one.
    """
    path = results / "tables" / "runs.csv"
    rows = _rows(path, results)
    for row in rows:
        if row["outcome"] != "missing" and not (results / row["folder"] / "run.json").exists():
            row |= {"outcome": "missing", "reason": GONE}
    counts = Counter(row["outcome"] for row in rows)
    yield f"{len(rows)} runs: " + ", ".join(f"{number} {word}" for word, number in counts.most_common())
    # What a kernel lacks, it lacks on each filesystem and disk: said once.
    found: dict[tuple[str, ...], Counter] = {}
    for row in rows:
        if row["outcome"] != "ok":
            key = (row["experiment"], row["kernel"], row["outcome"], row["reason"])
            others = plan.besides(row.get("disk") or RAM, row.get("variant") or "")
            found.setdefault(key, Counter())[" ".join([row["filesystem"], *others])] += 1
    for (experiment, kernel, outcome, reason), cells in found.items():
        yield f"  {experiment}: {kernel}, {', '.join(cells)}: {cells.total()} {outcome}: {reason}"
    warned = sum(row.get("warnings") not in (None, "", "0") for row in rows)
    if warned:
        yield f"  warnings of the kernel in {warned} {'run' if warned == 1 else 'runs'}; {path.name} counts them"
    yield f"report: {results / 'report' / 'index.html'}"


def _rows(path: Path, results: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            fields, rows = set(reader.fieldnames or ()), list(reader)
    except FileNotFoundError:
        raise UserError(f"there is no table of runs in {results}; `snakemake all` makes it") from None
    except (csv.Error, UnicodeDecodeError):
        fields, rows = set(), []
    if not fields.issuperset(_NEEDED) or any(None in row.values() for row in rows):
        raise UserError(f"{path} is no table of runs; remove it, and `snakemake all` makes it again")
    return rows
