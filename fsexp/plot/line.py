"""Lines over categories in an order, as kernels have one; a line is broken where it has no value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fsexp.plot import page
from fsexp.plot.page import CHARACTER, INK, MARGIN, SERIES, TEXT, WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Lengths in SVG units.
ENTRY = 17  # a line of the legend
SAMPLE = 26  # the piece of line before a name in the legend
HEAD = 26  # the quantity's name, above its axis
FRAME = 190  # the plot itself
GAP = 7
CAP = 3  # half the width of the ends of a spread
SMALL = 11  # text of the positions
SMALL_CHARACTER = CHARACTER * SMALL / TEXT
# Of a position's name so much is shown: its beginning and its end, since versions stand there.
NAME = 24
# A turned name needs so much of the axis; of more positions only some are named.
TURNED = 11

# More of them than colours, so that series are told apart in print and by everybody.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", "p", ">", "h", "d")


@dataclass(frozen=True)
class Point:
    """A value; `low` and `high` are the extremes over the replicates, None without a bar."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Line:
    """One series: a point for each position, None where there is no value."""

    label: str
    points: tuple[Point | None, ...]


def lines(series: list[Line], positions: list[str], *, name: str, title: str, description: str, axis: str) -> str:
    """A line for each series over the named positions, from 0, as an `<svg>` element.

    `name`, `title`, `description` and `axis` are as `bar.bars` takes them. The same arguments give
    the same text, byte for byte.
    """
    legend = _legend([one.label for one in series])
    below = _Names(positions)
    top = MARGIN + ENTRY * (legend[-1].row + 1 if legend else 0) + HEAD
    height = top + FRAME + below.height

    def draw(figure: "Figure") -> None:
        ink = figure.add_axes((0, 0, 1, 1))
        ink.set_xlim(0, WIDTH)
        ink.set_ylim(height, 0)
        ink.set_axis_off()
        for place, entry in enumerate(legend):
            _draw_entry(ink, entry, place)
        _write(ink, MARGIN, top - HEAD / 2, page.short(axis, WIDTH - 2 * MARGIN))
        _draw_plot(figure, series, below, (height - top - FRAME) / height, FRAME / height)

    return page.element(draw, height, name=name, title=title, description=description)


def segments(points: Sequence[Point | None]) -> list[list[int]]:
    """The positions that a line runs through, a list for each unbroken piece."""
    pieces: list[list[int]] = [[]]
    for position, point in enumerate(points):
        if point is not None:
            pieces[-1].append(position)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def middle(text: str, most: int) -> str:
    """The text, or its beginning and its end with an ellipsis between, in at most that many characters."""
    text = page.one_line(text)
    if len(text) <= most:
        return text
    end = most // 2
    return f"{text[: most - end - 1]}…{text[-end:]}"


class _Names:
    """The names below the axis: level where they fit, else turned, and every nth where those do not."""

    def __init__(self, positions: list[str]) -> None:
        self.texts = [middle(text, NAME) for text in positions]
        longest = max(map(len, self.texts), default=0) * SMALL_CHARACTER
        slot = (WIDTH - 60) / max(len(positions), 1)
        self.turned = longest + GAP > slot
        self.step = max(1, math.ceil(TURNED / slot)) if self.turned else 1
        self.height = GAP + (longest if self.turned else SMALL) + MARGIN


@dataclass(frozen=True)
class _Entry:
    """A series in the legend, `x` in SVG units from the left."""

    label: str
    x: float
    row: int


def _legend(labels: list[str]) -> list[_Entry]:
    entries, x, row = [], float(MARGIN), 0
    for label in labels:
        text = page.short(label, WIDTH - 2 * MARGIN - SAMPLE)
        width = SAMPLE + len(text) * CHARACTER
        if x > MARGIN and x + width > WIDTH - MARGIN:
            x, row = float(MARGIN), row + 1
        entries.append(_Entry(text, x, row))
        x += width + 2 * GAP
    return entries


def _draw_entry(ink: "Axes", entry: _Entry, place: int) -> None:
    y = MARGIN + ENTRY * (entry.row + 0.5)
    _stroke(ink, [(entry.x, y), (entry.x + SAMPLE - GAP, y)], [2], SERIES[place % len(SERIES)], 2)
    _mark(ink, [entry.x + (SAMPLE - GAP) / 2], [y], place)
    _write(ink, entry.x + SAMPLE, y, entry.label)


def _draw_plot(figure: "Figure", series: list[Line], below: _Names, bottom: float, height: float) -> None:
    axes = figure.add_axes((0, bottom, 1, height))
    axes.set_ylim(0, _limit(series))
    page.scale(axes, "y", 5)
    ticks = [f"{tick:g}" for tick in axes.get_yticks() if tick <= axes.get_ylim()[1]]
    left = MARGIN + max(map(len, ticks)) * CHARACTER
    axes.set_position((left / WIDTH, bottom, 1 - (left + MARGIN) / WIDTH, height))
    axes.set_xlim(-0.5, len(below.texts) - 0.5)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", color=INK, labelcolor=INK, labelsize=SMALL)
    named = range(0, len(below.texts), below.step)
    # Anchored at the axis: the browser's letters are wider or narrower than matplotlib's.
    turned = {"rotation": 90, "rotation_mode": "anchor", "ha": "right", "va": "center"} if below.turned else {}
    axes.set_xticks(named, [below.texts[place] for place in named], parse_math=False, **turned)
    for place, one in enumerate(series):
        colour = SERIES[place % len(SERIES)]
        pieces = segments(one.points)
        values = {x: point.value for x, point in enumerate(one.points) if point is not None}
        _stroke(axes, [(x, values[x]) for piece in pieces for x in piece], list(map(len, pieces)), colour, 2)
        _draw_spreads(axes, one.points, colour, (WIDTH - left - MARGIN) / len(below.texts))
        _mark(axes, list(values), list(values.values()), place)


def _limit(series: list[Line]) -> float:
    highest = [max(point.value, point.high or 0) for one in series for point in one.points if point is not None]
    return max(highest, default=0) * 1.05 or 1.0


def _draw_spreads(axes: "Axes", points: Sequence[Point | None], colour: str, slot: float) -> None:
    strokes: list[tuple[float, float]] = []
    half = CAP / slot
    for x, point in enumerate(points):
        if point is not None and point.low is not None and point.high is not None:
            strokes += [(x, point.low), (x, point.high)]
            for extreme in (point.low, point.high):
                strokes += [(x - half, extreme), (x + half, extreme)]
    _stroke(axes, strokes, [2] * (len(strokes) // 2), colour, 1.2)


def _stroke(axes: "Axes", vertices: list[tuple[float, float]], pieces: list[int], colour: str, width: float) -> None:
    """One path of several pieces, each of so many of the vertices."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if vertices:
        codes = [code for size in pieces for code in [Path.MOVETO] + [Path.LINETO] * (size - 1)]
        style = {"edgecolor": colour, "facecolor": "none", "linewidth": width, "zorder": 2, "clip_on": False}
        axes.add_artist(PathPatch(Path(vertices, codes), transform=axes.transData, **style))


def _mark(axes: "Axes", xs: list[float], ys: list[float], place: int) -> None:
    axes.plot(
        xs,
        ys,
        linestyle="none",
        marker=MARKERS[place % len(MARKERS)],
        markersize=7,
        markeredgewidth=0,
        color=SERIES[place % len(SERIES)],
        clip_on=False,
        zorder=3,
    )


def _write(ink: "Axes", x: float, y: float, text: str, **style: Any) -> None:
    # parse_math: a label may hold dollars and underscores.
    ink.text(x, y, text, color=INK, parse_math=False, va="center", clip_on=False, **style)
