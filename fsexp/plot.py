"""Bar plots as SVG text to be put inside an HTML page.

The SVG is made for that place: text and axes take the page's colour (so that dark mode works), the
bars take the page's `--series-N` colours, names of elements carry a prefix (several plots share a
page), and the drawing is narrow, since a telephone must show it without scrolling.
"""

import warnings
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from fsexp.display import seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# matplotlib is imported where it is used: importing it takes longer than most commands do.

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
ElementTree.register_namespace("", SVG)

# Lengths in SVG units; a telephone shows one unit as about 0.9 CSS pixels.
WIDTH = 400
MARGIN = 8
HEADING = 19
BAR = 15
BAR_GAP = 3
GROUP_GAP = 9
AXIS = 40
TEXT = 12
CHARACTER = 7.2  # an upper estimate of a character's width at TEXT

# matplotlib wants colours; these stand for the page's and are replaced in the SVG.
INK = "#010203"
SERIES = ("#1b6ca8", "#d1710a", "#2a8a57", "#b3478f", "#7a6a00", "#5b5fc7", "#a33a3a", "#3b7d8c")


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
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings = {
        "svg.hashsalt": name,
        "svg.fonttype": "none",
        "font.family": ["sans-serif"],
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": TEXT,
        "text.usetex": False,
        "path.simplify": False,
    }
    height = MARGIN + AXIS + sum(map(_group_height, groups))
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # The reader's browser chooses the glyphs; that DejaVu lacks one does not matter here.
        warnings.simplefilter("ignore")
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
        FigureCanvasSVG(figure)
        _draw(figure, groups, height, axis)
        stream = BytesIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    return _for_page(stream.getvalue(), name, title, description)


def _group_height(group: Group) -> float:
    return HEADING + len(group.bars) * (BAR + BAR_GAP) + GROUP_GAP


def _draw(figure: "Figure", groups: list[Group], height: float, axis: str) -> None:
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    width = WIDTH - 2 * MARGIN
    top = height - AXIS
    axes = figure.add_axes((MARGIN / WIDTH, AXIS / height, width / WIDTH, top / height))
    labels = {bar: _label(bar) for group in groups for bar in group.bars}
    limit = _limit(labels, width)
    axes.set_xlim(0, limit)
    axes.set_ylim(0, top)
    axes.set_yticks([])
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.tick_params(axis="x", color=INK, labelcolor=INK)
    axes.grid(axis="x", color=INK, alpha=0.15, linewidth=1)
    axes.set_axisbelow(True)
    axes.set_xlabel(_short(axis, width), color=INK, parse_math=False)

    def write(x: float, y: float, text: str, **style: Any) -> None:
        # parse_math: a label may hold dollars and underscores.
        axes.text(x, y, text, color=INK, parse_math=False, va="center", clip_on=False, **style)

    # All error bars are one path: a line for each would take most of the time of a large plot.
    strokes: list[tuple[float, float]] = []

    y = top - MARGIN
    for group in groups:
        write(0, y - HEADING / 2, _short(group.heading, width), fontweight="bold")
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
    return f"{_short(bar.label, WIDTH * 0.3)}: {_short(text, WIDTH * 0.35)}"


def _limit(labels: dict[Bar, str], width: float) -> float:
    """The end of the axis that leaves room for every bar's label."""
    limit = 0.0
    for bar, label in labels.items():
        if bar.value is not None:
            room = max(width - len(label) * CHARACTER - 9, width * 0.2)
            limit = max(limit, max(bar.value, bar.high or 0) * width / room)
    return limit or 1.0


def _short(text: str, width: float) -> str:
    # A control character would make the SVG unreadable as a whole.
    text = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))
    most = int(width / CHARACTER)
    return text if len(text) <= most else text[: most - 1] + "…"


def _for_page(drawn: bytes, name: str, title: str, description: str) -> str:
    """matplotlib's document as an element of a page: see the head of this module."""
    root = ElementTree.fromstring(drawn)  # drops comments, prolog and document type
    inherited = "stroke-linejoin: round; stroke-linecap: butt"
    for parent in list(root.iter()):
        for child in list(parent):
            # Its style sheet would reach the whole page, its metadata nobody.
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        _adapt(element, name)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.attrib |= {
        "class": "plot",
        "role": "img",
        "style": inherited,
        "aria-labelledby": f"{name}-title {name}-description",
    }
    spoken = []
    for tag, text in (("title", title), ("desc", description)):
        suffix = {"title": "title", "desc": "description"}[tag]
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{suffix}"})
        element.text = text
        spoken.append(element)
    root[:0] = spoken
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)


def _adapt(element: ElementTree.Element, name: str) -> None:
    attributes = element.attrib
    if "id" in attributes:
        attributes["id"] = f"{name}-{attributes['id']}"
    link = attributes.pop(f"{{{XLINK}}}href", None)
    if link is not None:
        attributes["href"] = f"#{name}-{link.removeprefix('#')}"
    if "clip-path" in attributes:
        attributes["clip-path"] = attributes["clip-path"].replace("url(#", f"url(#{name}-")
    style = attributes.get("style")
    if style is not None:
        style = style.replace(INK, "currentColor").replace("'DejaVu Sans'", "system-ui")
        for number, colour in enumerate(SERIES, 1):
            style = style.replace(colour, f"var(--series-{number}, {colour})")
        attributes["style"] = style
