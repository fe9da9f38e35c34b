"""Published figures beside the measured ones, as rows of the report's tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsexp import display, stats
from fsexp.grid import Figure, Grid

# A parameter that says how many of something a workload handles, and one of it.
ITEMS = {"nfiles": "file"}
# What a figure or the other side of its ratio may say of where it was measured.
_FACTORS = ("kernel", "filesystem", "disk", "variant")


def table(grids: Sequence[Grid], one: dict) -> dict:
    """An entry of `published` in the plan.

    Its `rows` are, for each phase, times, then their ratios to the reference filesystem, then space and ratios that
    were published as such; their `cells` follow the kernels of the grids.
    """
    scale = one.get("scale") or {}
    rows = [row for phase, figures in _by_phase(one).items() for row in _rows(grids, phase, figures, scale)]
    kinds = dict.fromkeys(row["kind"] for row in rows)
    return {
        "source": one.get("source"),
        "date": one.get("date"),
        "note": one.get("note"),
        "item": ITEMS.get(_item(scale, grids[0].group.parameters)) if grids else None,
        "scales": [_scale(grids, name, value) for name, value in scale.items()],
        "kernels": grids[0].kernels if grids else (),
        "space": "space" in kinds,
        "rows": rows,
    }


def _scale(grids: Sequence[Grid], name: str, published: object) -> dict:
    values = list(dict.fromkeys(grid.group.parameters[name] for grid in grids if name in grid.group.parameters))
    return {
        "name": name,
        "published": display.quantity(published),
        "measured": " and ".join(map(display.quantity, values)) if values else None,
        "same": values == [published],
    }


def _item(scale: dict, parameters: dict) -> str | None:
    return next((name for name in ITEMS if scale.get(name) and parameters.get(name)), None)


def _by_phase(one: dict) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for figure in one.get("figures") or []:
        found.setdefault(figure["phase"], []).append(figure)
    return found


def _rows(grids: Sequence[Grid], phase: str, figures: list[dict], scale: dict) -> Iterator[dict]:
    timed = [figure for figure in figures if figure.get("elapsed_s") is not None]
    for figure in timed:
        yield from _times(grids, figure, scale)
    yield from _filesystem_ratios(grids, phase, timed)
    for figure in figures:
        if figure.get("used_bytes") is not None:
            yield from _spaces(grids, figure)
    for figure in figures:
        if figure.get("ratio") is not None:
            yield from _ratios(grids, figure)


def _places(grids: Sequence[Grid], figure: dict) -> list[tuple[Grid, tuple]]:
    """The groups and columns that a figure is of: where it names no disk and no variant, those of each."""
    return [
        (grid, column)
        for grid in grids
        if figure.get("disk") in (None, grid.group.disk) and figure.get("variant") in (None, grid.group.variant)
        for column in grid.columns
        if grid.filesystem(column) == figure["filesystem"]
    ]


def _label(figure: dict, place: tuple[Grid, tuple] | None, base: tuple | None = None) -> str:
    """The column, over `base` where there is one, and its group; what the figure names where it has no place here."""
    if place is None:
        text = ", ".join(figure[name] for name in _FACTORS[1:] if figure.get(name))
    else:
        grid, column = place
        columns = [grid.label(one) for one in (column, base) if one is not None]
        text = ", ".join(filter(None, (" / ".join(columns), grid.group.label)))
    return f"{text} (published with {figure['kernel']})" if figure.get("kernel") else text


def _row(kind: str, figure: dict, label: str, published: dict, cells: list[dict]) -> dict:
    return {"kind": kind, "phase": figure["phase"], "label": label, "published": published, "cells": cells}


def _times(grids: Sequence[Grid], figure: dict, scale: dict) -> Iterator[dict]:
    for place in _places(grids, figure) or [None]:
        parameters = place[0].group.parameters if place else {}
        item = _item(scale, parameters)
        published = _time(figure["elapsed_s"], scale[item] if item else None)
        cells = [_gap("not planned") for _ in grids[0].kernels]
        if place:
            grid, column = place
            measured = (grid.figures.get((kernel, column, figure["phase"])) for kernel in grid.kernels)
            cells = [_measured(one, parameters[item] if item else None) for one in measured]
        yield _row("time", figure, _label(figure, place), published, cells)


def _filesystem_ratios(grids: Sequence[Grid], phase: str, timed: list[dict]) -> Iterator[dict]:
    """The ratios of times that were published for the same kernel, disk and variant."""
    sides: dict[tuple, dict[str, float]] = {}
    for figure in timed:
        key = tuple(figure.get(name) for name in _FACTORS if name != "filesystem")
        sides.setdefault(key, {})[figure["filesystem"]] = figure["elapsed_s"]
    for (kernel, disk, variant), values in sides.items():
        for grid in grids:
            if disk not in (None, grid.group.disk) or variant not in (None, grid.group.variant):
                continue
            for column in grid.columns:
                base = grid.reference(column)
                if base is None:
                    continue
                ratio = stats.ratio(values.get(grid.filesystem(column)), values.get(grid.filesystem(base)))
                if ratio is None:
                    continue
                figure = {"phase": phase, "kernel": kernel}
                label = _label(figure, (grid, column), base)
                measured = [grid.between((one, column), (one, base), phase) for one in grid.kernels]
                yield _row("ratio", figure, label, _shown(display.times(ratio)), list(map(_times_or_gap, measured)))


def _spaces(grids: Sequence[Grid], figure: dict) -> Iterator[dict]:
    published = _shown(display.mebibytes(figure["used_bytes"]))
    for place in _places(grids, figure) or [None]:
        cells = [_gap("not planned") for _ in grids[0].kernels]
        if place:
            values = [_used(place[0], kernel, place[1], figure) for kernel in place[0].kernels]
            cells = [_gap("not measured") if one is None else _shown(display.mebibytes(one)) for one in values]
        yield _row("space", figure, _label(figure, place) + _kind(figure), published, cells)


def _kind(figure: dict) -> str:
    if not figure.get("kind"):
        return ""
    return f", {figure['kind']}{' with copies' if figure.get('raw') else ''}"


def _used(grid: Grid, kernel: str, column: tuple, figure: dict) -> float | None:
    """What a cell used after the figure's phase, of the figure's kind where it names one; None: not measured."""
    space = grid.spaces.get((kernel, column, figure["phase"]))
    if space is None or not figure.get("kind"):
        return space and space.used_bytes
    kind = space.kinds.get(figure["kind"])
    return kind and (kind.raw_bytes if figure.get("raw") else kind.used_bytes)


def _ratios(grids: Sequence[Grid], figure: dict) -> Iterator[dict]:
    """A ratio that was published as such, of times or of used bytes."""
    changes = {name: value for name, value in figure["ratio_to"].items() if value is not None}
    other = figure | changes
    for grid, column in _places(grids, figure):
        base = _base(grids, grid, column, changes)
        cells = []
        for kernel in grid.kernels:
            value = _quantity(grid, kernel, column, figure)
            against = base and _quantity(base[0], changes.get("kernel", kernel), base[1], other)
            cells.append(_times_or_gap(stats.ratio(value, against)))
        to = ", ".join(changes[name] for name in ("phase", *_FACTORS) if name in changes)
        what = " of used space" if figure.get("of") == "used_bytes" else ""
        label = f"{_label(figure, (grid, column))} / {to}{what}{_kind(figure)}"
        yield _row("ratio", figure, label, _shown(display.times(figure["ratio"])), cells)


def _base(grids: Sequence[Grid], grid: Grid, column: tuple, changes: dict) -> tuple[Grid, tuple] | None:
    """The group and column that differ from these by what is changed; None where there are none such."""
    disk, variant = changes.get("disk", grid.group.disk), changes.get("variant", grid.group.variant)
    at = grid.factors.index("filesystem")
    wanted = (*column[:at], changes.get("filesystem", column[at]), *column[at + 1 :])
    for other in grids:
        if (other.group.disk, other.group.variant) == (disk, variant) and wanted in other.columns:
            return other, wanted
    return None


def _quantity(grid: Grid, kernel: str, column: tuple, figure: dict) -> float | None:
    if figure.get("of") == "used_bytes":
        return _used(grid, kernel, column, figure)
    measured = grid.figures.get((kernel, column, figure["phase"]))
    return measured and measured.median_s


def _shown(value: str, each: str | None = None) -> dict:
    return {"value": value, "each": each, "word": ""}


def _gap(word: str) -> dict:
    return {"value": None, "each": None, "word": word}


def _times_or_gap(ratio: float | None) -> dict:
    return _gap("not measured") if ratio is None else _shown(display.times(ratio))


def _time(value_s: float, items: int | None) -> dict:
    each = display.microseconds(value_s / items) if items else None
    return _shown(display.seconds(value_s), each)


def _measured(figure: Figure | None, items: int | None) -> dict:
    if figure is None:
        return _gap("not planned")
    if figure.summary is None:
        return _gap(figure.word)
    return _time(figure.median_s, items)
