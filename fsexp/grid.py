"""An experiment's results laid out as kernels × what they are crossed with, for each disk and variant."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fsexp import measured, stats, table
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
class Kind:
    """What btrfs used of one kind, data or metadata: as it counts, and with all copies (None: not known)."""

    profile: str
    used_bytes: float
    raw_bytes: float | None


@dataclass(frozen=True)
class Space:
    """What a cell's filesystem used at one time: medians over the seeds that are ok.

    `kinds` is btrfs's, and ALL of them together.
    """

    used_bytes: float
    used_inodes: float | None
    kinds: dict[str, Kind]


ALL = "all"

# What the disk did in a phase, and what the processor: columns of the table of phases.
REQUESTS = ("requests_read", "bytes_read", "requests_written", "bytes_written", "flushes")
PROCESSOR = ("user_ns", "system_ns", "iowait_ns", "idle_ns")
LATENCIES = ("count", "p50_ns", "p90_ns", "p99_ns", "max_ns")


@dataclass(frozen=True)
class Group:
    """The runs of an experiment on one disk with one variant of its workload.

    `label` names what of both an experiment varies, empty where it varies neither.
    """

    disk: str
    variant: str
    label: str
    parameters: dict
    phases: tuple[str, ...]

    def holds(self, levels: dict) -> bool:
        return (levels["disk"], levels["variant"]) == (self.disk, self.variant)


def groups(experiment: dict) -> list[Group]:
    """The groups of an experiment of the plan, in its order."""
    disks, variants = experiment["factors"]["disk"], experiment["factors"]["variant"]
    found = []
    for disk in disks:
        for variant in variants:
            own = table.variant(experiment, {"variant": variant})
            # A single disk that is no RAM disk is said too: the figures are of that disk.
            parts = [disk] if len(disks) > 1 or disk != table.UNNAMED["disk"] else []
            label = ", ".join([*parts, variant] if variant else parts)
            found.append(Group(disk, variant, label, own["parameters"], tuple(own["phases"])))
    return found


@dataclass(frozen=True)
class Grid:
    """One group of an experiment.

    A column is a tuple of levels: the filesystem and every other factor that neither the kernel nor
    the group names, in the order of the plan. `figures` has (kernel, column, phase) as its keys,
    `spaces` likewise with the phase just ended ("" for the mount), `loads` with what the disk and
    the processor did by name, `latencies` by operation; a combination that was not planned or not
    measured is in none.
    """

    group: Group
    kernels: tuple[str, ...]
    columns: tuple[tuple, ...]
    factors: tuple[str, ...]
    phases: tuple[str, ...]
    space_phases: tuple[str, ...]
    figures: dict[tuple, Figure]
    spaces: dict[tuple, Space]
    loads: dict[tuple, dict[str, float | None]]
    latencies: dict[tuple, dict[str, dict[str, float]]]

    def label(self, column: tuple) -> str:
        return ", ".join(str(level) for level in column)

    def name(self, column: tuple) -> str:
        """The column's label where other groups stand beside."""
        return ", ".join(filter(None, (self.label(column), self.group.label)))

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


def lay_out(experiment: dict, group: Group, rows: dict[str, list[dict]]) -> Grid:
    """The grid of a group of an experiment of the plan, from the experiment's rows by table.

    Rows of other tables whose run is not ok in `runs` are left out.
    """
    levels = experiment["factors"]
    names = tuple(name for name in levels if name not in ("kernel", *table.UNNAMED))

    def place(row: dict) -> tuple:
        return row["kernel"], tuple(row[name] for name in names)

    def run_of(row: dict) -> tuple:
        return *place(row), row["seed"]

    cells: dict[tuple, list[dict]] = {}
    for row in filter(group.holds, rows["runs"]):
        cells.setdefault(place(row), []).append(row)
    good = {run_of(row) for members in cells.values() for row in members if row["outcome"] == "ok"}
    timed, used, operations = (
        _by_key((row for row in filter(group.holds, rows[name]) if run_of(row) in good), place)
        for name in ("phases", "space", "operations")
    )
    phase_names = tuple(dict.fromkeys([*group.phases, *(key[-1] for key in timed)]))
    return Grid(
        group=group,
        kernels=tuple(levels["kernel"]),
        columns=tuple(dict.fromkeys(column for _, column in cells)),
        factors=names,
        phases=phase_names,
        space_phases=tuple(dict.fromkeys(key[-1] for key in used)),
        figures={
            (*cell, phase): _figure(members, timed.get((*cell, phase), []), phase)
            for cell, members in cells.items()
            for phase in phase_names
        },
        spaces={key: _space(members) for key, members in used.items()},
        loads={key: {name: _median(members, name) for name in REQUESTS + PROCESSOR} for key, members in timed.items()},
        latencies={key: _latencies(members) for key, members in operations.items()},
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


def _median(rows: list[dict], name: str) -> float | None:
    """The median of a column over the rows that have it; None where one lacks it, since others then say little."""
    values = [row[name] for row in rows]
    return None if None in values or not values else stats.summarize(values).median


def _latencies(rows: list[dict]) -> dict[str, dict[str, float]]:
    found: dict[str, list[dict]] = {}
    for row in rows:
        found.setdefault(row["operation"], []).append(row)
    return {
        operation: {name: stats.summarize([row[name] for row in members]).median for name in LATENCIES}
        for operation, members in found.items()
    }


def _space(rows: list[dict]) -> Space:
    whole = [row for row in rows if row["kind"] == measured.FILESYSTEM]
    inodes = [row["inodes"] - row["free_inodes"] for row in whole]
    counted = all(row["inodes"] for row in whole)
    kinds: dict[str, list[dict]] = {}
    for row in rows:
        if row["kind"] != measured.FILESYSTEM:
            kinds.setdefault(row["kind"], []).append(row)
    if kinds:
        kinds[ALL] = [row for members in kinds.values() for row in members]
    return Space(
        used_bytes=stats.summarize([row["used_bytes"] for row in whole]).median,
        used_inodes=stats.summarize(inodes).median if counted else None,
        kinds={kind: _kind(members) for kind, members in kinds.items()},
    )


def _kind(rows: list[dict]) -> Kind:
    """A kind over the seeds; its profiles together, of which mkfs may leave an empty one behind."""
    seeds: dict[int, list[dict]] = {}
    for row in rows:
        seeds.setdefault(row["seed"], []).append(row)
    used = [sum(row["used_bytes"] for row in members) for members in seeds.values()]
    raw = [[row["raw_used_bytes"] for row in members] for members in seeds.values()]
    known = not any(None in values for values in raw)
    profiles = dict.fromkeys(row["profile"] for row in rows if row["used_bytes"]) or {rows[0]["profile"]: None}
    return Kind(
        profile=", ".join(profiles),
        used_bytes=stats.summarize(used).median,
        raw_bytes=stats.summarize([sum(values) for values in raw]).median if known else None,
    )
