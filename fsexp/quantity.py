"""What was measured beside times, as rows of the report's tables: space, requests of the disk, latencies.

Each function takes the grids of an experiment and gives rows in their order, none for what nobody measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsexp import display
from fsexp.grid import Grid, Space


def space_phases(grids: Sequence[Grid]) -> list[str]:
    """The phases after which space was taken, "" for the mount."""
    return list(dict.fromkeys(phase for grid in grids for phase in grid.space_phases))


def space(grids: Sequence[Grid]) -> list[dict]:
    """What statfs counted: `cells` follow `space_phases`."""
    phases = space_phases(grids)
    return [
        {"kernel": kernel, "column": grid.name(column), "cells": [one and _used(one) for one in known]}
        for grid, kernel, column in _cells(grids)
        if any(known := [grid.spaces.get((kernel, column, phase)) for phase in phases])
    ]


def _used(one: Space) -> dict:
    return {
        "mebibytes": display.mebibytes(one.used_bytes),
        "inodes": None if one.used_inodes is None else display.count(one.used_inodes),
    }


def kinds(grids: Sequence[Grid]) -> list[dict]:
    """What btrfs counted of each kind: `cells` follow `space_phases`."""
    phases = space_phases(grids)
    rows = []
    for grid, kernel, column in _cells(grids):
        known = [grid.spaces.get((kernel, column, phase)) for phase in phases]
        for name in dict.fromkeys(name for one in known if one for name in one.kinds):
            found = [one.kinds.get(name) if one else None for one in known]
            cells = [
                kind
                and {
                    "mebibytes": display.mebibytes(kind.used_bytes),
                    "raw": None if kind.raw_bytes is None else display.mebibytes(kind.raw_bytes),
                    "profile": kind.profile,
                }
                for kind in found
            ]
            rows.append({"kernel": kernel, "column": grid.name(column), "name": name, "cells": cells})
    return rows


def loads(grids: Sequence[Grid]) -> list[dict]:
    """What the disk and the processor did in each phase; None where it was not counted."""
    rows = []
    for grid, kernel, column in _cells(grids):
        for phase in grid.phases:
            known = grid.loads.get((kernel, column, phase), {})
            if all(value is None for value in known.values()):
                continue
            cells = [_load(name, value) for name, value in known.items()]
            rows.append({"kernel": kernel, "column": grid.name(column), "phase": phase, "cells": cells})
    return rows


def _load(name: str, value: float | None) -> str | None:
    if value is None:
        return None
    if name.startswith("bytes_"):
        return f"{display.mebibytes(value)} MiB"
    if name.endswith("_ns"):
        return f"{display.hundredths(value / 1e9)} s"
    return display.count(value)


def latencies(grids: Sequence[Grid]) -> list[dict]:
    """For each phase with any: its `rows`, one for each kernel, column and operation; times in µs."""
    found: dict[str, list[dict]] = {}
    for grid, kernel, column in _cells(grids):
        for phase in grid.phases:
            for operation, values in grid.latencies.get((kernel, column, phase), {}).items():
                cells = [display.count(values["count"])]
                cells += [display.microseconds(values[name] / 1e9) for name in ("p50_ns", "p90_ns", "p99_ns", "max_ns")]
                row = {"kernel": kernel, "column": grid.name(column), "operation": operation, "cells": cells}
                found.setdefault(phase, []).append(row)
    return [{"name": phase, "rows": rows} for phase, rows in found.items()]


def _cells(grids: Sequence[Grid]) -> Iterator[tuple[Grid, str, tuple]]:
    for grid in grids:
        for kernel in grid.kernels:
            for column in grid.columns:
                yield grid, kernel, column
