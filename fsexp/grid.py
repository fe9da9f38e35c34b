"""An experiment's results laid out as kernels × what they are crossed with."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fsexp import stats
from fsexp.vm.outcome import OUTCOMES

# Ratios between filesystems are to this one where an experiment has it, else to its first.
REFERENCE_FILESYSTEM = "ext4"


@dataclass(frozen=True)
class Figure:
    """One phase of one cell.

    `summary` is over the seeds that are ok, elapsed time in ns, None where there are none; then
    `word` is the outcome (or outcomes) in its place and `reason` a sentence. `failed` counts the
    outcomes of the seeds without a figure. `errors` counts failed operations over all seeds.
    """

    summary: stats.Summary | None
    planned: int
    word: str
    reason: str
    failed: dict[str, int]
    errors: int

    @property
    def median_s(self) -> float | None:
        return None if self.summary is None else self.summary.median / 1e9


@dataclass(frozen=True)
class Space:
    """What a cell's filesystem used at one time: medians over the seeds that are ok."""

    used_bytes: float
    used_inodes: float | None


@dataclass(frozen=True)
class Grid:
    """One experiment.

    A column is a tuple of levels: the filesystem and every other factor but the kernel, in the
    order of the plan. `figures` has (kernel, column, phase) as its keys, `spaces` likewise with
    the phase just ended ("" for the mount); a combination that was not planned is in neither.
    """

    kernels: tuple[str, ...]
    columns: tuple[tuple, ...]
    factors: tuple[str, ...]
    phases: tuple[str, ...]
    space_phases: tuple[str, ...]
    figures: dict[tuple, Figure]
    spaces: dict[tuple, Space]

    def label(self, column: tuple) -> str:
        return ", ".join(str(level) for level in column)

    def filesystem(self, column: tuple) -> str:
        return column[self.factors.index("filesystem")]

    def reference(self, column: tuple) -> tuple | None:
        """The column to compare this one with: the same but for the filesystem.

        None where the column is the reference itself.
        """
        position = self.factors.index("filesystem")
        filesystems = list(dict.fromkeys(other[position] for other in self.columns))
        base = reference_filesystem(filesystems)
        if column[position] == base:
            return None
        return (*column[:position], base, *column[position + 1 :])

    def to_first_kernel(self, kernel: str, column: tuple, phase: str) -> float | None:
        """The figure's ratio to that of the first kernel; None when either is missing."""
        return self.between((kernel, column), (self.kernels[0], column), phase)

    def between(self, cell: tuple, base: tuple, phase: str) -> float | None:
        """The ratio of two cells, each (kernel, column), in one phase."""
        values = [self.figures.get((*key, phase)) for key in (cell, base)]
        return stats.ratio(*(figure and figure.median_s for figure in values))


def reference_filesystem(filesystems: list) -> str:
    """The one that ratios are to, out of an experiment's filesystems in their order."""
    return REFERENCE_FILESYSTEM if REFERENCE_FILESYSTEM in filesystems else filesystems[0]


def lay_out(experiment: dict, runs: Iterable[dict], phases: Iterable[dict], space: Iterable[dict]) -> Grid:
    """The grid of an experiment of the plan, from its rows of the tables.

    Rows of `phases` and `space` whose run is not ok in `runs` are left out.
    """
    levels = experiment["factors"]
    names = tuple(name for name in levels if name != "kernel")

    def place(row: dict) -> tuple:
        return row["kernel"], tuple(row[name] for name in names)

    def run_of(row: dict) -> tuple:
        return *place(row), row["seed"]

    cells: dict[tuple, list[dict]] = {}
    for row in runs:
        cells.setdefault(place(row), []).append(row)
    good = {run_of(row) for rows in cells.values() for row in rows if row["outcome"] == "ok"}
    timed = _by_key((row for row in phases if run_of(row) in good), place)
    used = _by_key((row for row in space if run_of(row) in good), place)
    phase_names = tuple(dict.fromkeys([*experiment["phases"], *(key[-1] for key in timed)]))
    return Grid(
        kernels=tuple(levels["kernel"]),
        columns=tuple(dict.fromkeys(column for _, column in cells)),
        factors=names,
        phases=phase_names,
        space_phases=tuple(dict.fromkeys(key[-1] for key in used)),
        figures={
            (*cell, phase): _figure(rows, timed.get((*cell, phase), []), phase)
            for cell, rows in cells.items()
            for phase in phase_names
        },
        spaces={key: _space(rows) for key, rows in used.items()},
    )


def _by_key(rows: Iterable[dict], place: Callable[[dict], tuple]) -> dict[tuple, list[dict]]:
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        found.setdefault((*place(row), row["phase"]), []).append(row)
    return found


def _figure(runs: list[dict], timed: list[dict], phase: str) -> Figure:
    measured = {row["seed"] for row in timed}
    without = [row for row in runs if row["seed"] not in measured]
    # A run can be ok and yet lack a phase that others have; its own outcome would mislead.
    failed = Counter("no-result" if row["outcome"] == "ok" else row["outcome"] for row in without)
    order = list(OUTCOMES)
    ordered = sorted(failed, key=lambda word: order.index(word) if word in order else len(order))
    reasons = [row["reason"] for row in without if row["reason"]]
    silent = f"no record of the phase {phase}" if failed["no-result"] else ""
    return Figure(
        summary=stats.summarize([row["elapsed_ns"] for row in timed]),
        planned=len(runs),
        word=", ".join(ordered),
        reason=reasons[0] if reasons else silent,
        failed={word: failed[word] for word in ordered},
        errors=sum(row["errors"] for row in timed),
    )


def _space(rows: list[dict]) -> Space:
    used = [(row["blocks"] - row["free_blocks"]) * row["block_bytes"] for row in rows]
    inodes = [row["inodes"] - row["free_inodes"] for row in rows]
    counted = all(row["inodes"] for row in rows)
    return Space(
        used_bytes=stats.summarize(used).median,
        used_inodes=stats.summarize(inodes).median if counted else None,
    )
