"""Grouped horizontal bars."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fsexp.display import seconds
from fsexp.plot import page
from fsexp.plot.page import CHARACTER, INK, MARGIN, SERIES, WIDTH, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Lengths in SVG units.
HEADING = 19
BAR = 15
BAR_GAP = 3
GROUP_GAP = 9
AXIS = 40


@dataclass(frozen=True)
class Bar:
    """One bar. `value` is None where nothing was measured; `note` then says why.

    `low` and `high` are the extremes over the replicates, None without an error bar.
    """

    label: str
    series: int
    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Group:
    """Bars under a common heading."""

    heading: str
    bars: tuple[Bar, ...]


def bars(groups: list[Group], *, name: str, title: str, description: str, axis: str) -> str:
    """A grouped horizontal bar plot, as an `<svg>` element.

    `name` (letters, digits, hyphens) must be unique in the page. `title` and `description` are
    what a screen reader says. `axis` names the quantity and its unit. The same arguments give the
    same text, byte for byte.
    """
    height = MARGIN + AXIS + sum(map(_group_height, groups))
    return page.element(
        lambda figure: _draw(figure, groups, height, axis), height, name=name, title=title, description=description
    )


def _group_height(group: Group) -> float:
    return HEADING + len(group.bars) * (BAR + BAR_GAP) + GROUP_GAP


def _draw(figure: "Figure", groups: list[Group], height: float, axis: str) -> None:
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    width = WIDTH - 2 * MARGIN
    top = height - AXIS
    axes = figure.add_axes((MARGIN / WIDTH, AXIS / height, width / WIDTH, top / height))
    labels = {bar: _label(bar) for group in groups for bar in group.bars}
    limit = _limit(labels, width)
    axes.set_xlim(0, limit)
    axes.set_ylim(0, top)
    axes.set_yticks([])
    page.scale(axes, "x", 4)
    axes.set_xlabel(short(axis, width), color=INK, parse_math=False)

    def write(x: float, y: float, text: str, **style: Any) -> None:
        # parse_math: a label may hold dollars and underscores.
        axes.text(x, y, text, color=INK, parse_math=False, va="center", clip_on=False, **style)

    # All error bars are one path: a line for each would take most of the time of a large plot.
    strokes: list[tuple[float, float]] = []

    y = top - MARGIN
    for group in groups:
        write(0, y - HEADING / 2, short(group.heading, width), fontweight="bold")
        y -= HEADING
        for bar in group.bars:
            middle = y - BAR / 2
            gap = 7 * limit / width
            if bar.value is None:
                write(gap, middle, labels[bar], fontstyle="italic")
            else:
                colour = SERIES[bar.series % len(SERIES)]
                shape = Rectangle((0, y - BAR), bar.value, BAR, facecolor=colour, clip_on=False)
                shape.set_transform(axes.transData)
                axes.add_artist(shape)
                end = bar.value
                if bar.low is not None and bar.high is not None:
                    strokes += [(bar.low, middle), (bar.high, middle)]
                    for extreme in (bar.low, bar.high):
                        strokes += [(extreme, middle - 4), (extreme, middle + 4)]
                    end = max(end, bar.high)
                write(end + gap, middle, labels[bar])
            y -= BAR + BAR_GAP
        y -= GROUP_GAP
    if strokes:
        lines = Path(strokes, [Path.MOVETO, Path.LINETO] * (len(strokes) // 2))
        style = {"edgecolor": INK, "facecolor": "none", "linewidth": 1.2, "zorder": 2}
        axes.add_artist(PathPatch(lines, clip_on=False, transform=axes.transData, **style))


def _label(bar: Bar) -> str:
    text = bar.note if bar.value is None else seconds(bar.value)
    return f"{short(bar.label, WIDTH * 0.3)}: {short(text, WIDTH * 0.35)}"


def _limit(labels: dict[Bar, str], width: float) -> float:
    """The end of the axis that leaves room for every bar's label."""
    limit = 0.0
    for bar, label in labels.items():
        if bar.value is not None:
            room = max(width - len(label) * CHARACTER - 9, width * 0.2)
            limit = max(limit, max(bar.value, bar.high or 0) * width / room)
    return limit or 1.0
