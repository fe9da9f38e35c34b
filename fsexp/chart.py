"""The plots of an experiment's phases: lines over many kernels, bars of few."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fsexp import comparison, display, grid
from fsexp.clock import Clock
from fsexp.plot import bar, line

# With fewer kernels bars say it all.
LINES_FROM = 3
# Beside lines, bars are drawn while they are no more than this; the table has the same figures.
BARS_BESIDE_LINES = 24


@dataclass(frozen=True)
class Plot:
    """An `<svg>` element, and what is to be said below it; empty when there is nothing."""

    svg: str
    caption: str


def plots(laid: grid.Grid, phase: str, anchor: str, clock: Clock, order: Sequence[str]) -> list[Plot]:
    """A phase's plots; none when nothing was measured, since a plot of gaps says nothing.

    `anchor` begins the names of their elements. `order` has the kernels' labels by version.
    """
    groups = _groups(laid, phase)
    if not any(one.value is not None for group in groups for one in group.bars):
        return []
    many = len(laid.kernels) >= LINES_FROM
    found = [_lines(laid, phase, f"{anchor}-lines", clock, [k for k in order if k in laid.kernels])] if many else []
    if not many or sum(len(group.bars) for group in groups) <= BARS_BESIDE_LINES:
        found.append(_bars(laid, phase, anchor, clock, groups))
    return found


def _groups(laid: grid.Grid, phase: str) -> list[bar.Group]:
    groups = []
    for kernel in laid.kernels:
        bars = tuple(
            _bar(display.visible(laid.label(column)), place, laid.figures[kernel, column, phase])
            for place, column in enumerate(laid.columns)
            if (kernel, column, phase) in laid.figures
        )
        if bars:
            groups.append(bar.Group(display.visible(str(kernel)), bars))
    return groups


def _bars(laid: grid.Grid, phase: str, anchor: str, clock: Clock, groups: list[bar.Group]) -> Plot:
    name = _name(laid, phase)
    svg = bar.bars(
        groups,
        name=anchor,
        title=f"{name}: time by kernel and {', '.join(laid.factors)}",
        description=(
            f"Horizontal bars, one group for each kernel: the median over the seeds in "
            f"{clock.noun}. Lines at the ends of the bars reach from the smallest to the "
            f"largest seed. The table of this phase has the same figures."
        ),
        axis=f"{name}, {clock.noun}",
    )
    return Plot(svg, "")


def _name(laid: grid.Grid, phase: str) -> str:
    return display.visible(", ".join(filter(None, (phase, laid.group.label))))


def _bar(label: str, place: int, figure: grid.Figure) -> bar.Bar:
    if figure.summary is None:
        return bar.Bar(label, place, None, note=figure.word)
    return bar.Bar(label, place, figure.median_s, *_extremes(figure))


def _extremes(figure: grid.Figure) -> tuple[float | None, float | None]:
    """The smallest and the largest seed in s; None with one seed."""
    if figure.summary.count < 2:
        return None, None
    return figure.summary.low / 1e9, figure.summary.high / 1e9


def _lines(laid: grid.Grid, phase: str, anchor: str, clock: Clock, kernels: list[str]) -> Plot:
    name, factors = _name(laid, phase), ", ".join(laid.factors)
    gaps = display.visible("; ".join(_gaps(laid, phase, kernels)))
    svg = line.lines(
        [
            line.Line(
                display.visible(laid.label(column)),
                tuple(_point(laid.figures.get((kernel, column, phase))) for kernel in kernels),
            )
            for column in laid.columns
        ],
        [display.visible(kernel) for kernel in kernels],
        name=anchor,
        title=f"{name}: time over the kernels, by {factors}",
        description=(
            f"Lines over {len(kernels)} kernels in the order of their versions, from "
            f"{display.visible(kernels[0])} to {display.visible(kernels[-1])}, one for each {factors}: "
            f"the median over the seeds in {clock.noun}, from 0. Thin bars reach from the smallest to the "
            f"largest seed. {f'The lines are broken where there is no value: {gaps}. ' if gaps else ''}"
            f"The table of this phase has the same figures."
        ),
        axis=f"{name}, {clock.noun}",
    )
    return Plot(svg, f"No value: {gaps}." if gaps else "")


def _point(figure: grid.Figure | None) -> line.Point | None:
    if figure is None or figure.summary is None:
        return None
    return line.Point(figure.median_s, *_extremes(figure))


def _gaps(laid: grid.Grid, phase: str, kernels: list[str]) -> Iterator[str]:
    """For each column that has any: the kernels without a value, by reason."""
    for column in laid.columns:
        words = [_missing(laid.figures.get((kernel, column, phase))) for kernel in kernels]
        parts = [
            f"{comparison.ranges(words, kernels, word)} ({word})" for word in dict.fromkeys(words) if word is not None
        ]
        if parts:
            yield f"{laid.label(column)} with {', '.join(parts)}"


def _missing(figure: grid.Figure | None) -> str | None:
    if figure is None:
        return "not planned"
    return figure.word if figure.summary is None else None
