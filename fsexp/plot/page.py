"""What all plots share: lengths, colours, and matplotlib's drawing made into an element of a page.

The SVG is made for a page: text and axes take the page's colour (so that dark mode works), series
take the page's `--series-N` colours, names of elements carry a prefix (several plots share a
page), and the drawing is narrow, since a telephone must show it without scrolling.
"""

import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# matplotlib is imported where it is used: importing it takes longer than most commands do.

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
ElementTree.register_namespace("", SVG)

# Lengths in SVG units; a telephone shows one unit as about 0.9 CSS pixels.
WIDTH = 400
MARGIN = 8
TEXT = 12
CHARACTER = 7.2  # an upper estimate of a character's width at TEXT

# matplotlib wants colours; these stand for the page's and are replaced in the SVG.
INK = "#010203"
SERIES = ("#1b6ca8", "#d1710a", "#2a8a57", "#b3478f", "#7a6a00", "#5b5fc7", "#a33a3a", "#3b7d8c")


def element(draw: Callable[["Figure"], None], height: float, *, name: str, title: str, description: str) -> str:
    """What `draw` draws into a figure of WIDTH × `height`, as an `<svg>` element.

    `name` (letters, digits, hyphens) must be unique in the page. `title` and `description` are
    what a screen reader says. The same arguments give the same text, byte for byte.
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
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # The reader's browser chooses the glyphs; that DejaVu lacks one does not matter here.
        warnings.simplefilter("ignore")
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
        FigureCanvasSVG(figure)
        draw(figure)
        stream = BytesIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    return _for_page(stream.getvalue(), name, title, description)


def scale(axes: "Axes", which: str, ticks: int) -> None:
    """Make "x" or "y" the axis of the quantity, with about that many ticks and a grid; hide the other sides."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis = {"x": axes.xaxis, "y": axes.yaxis}[which]
    axis.set_major_locator(MaxNLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.tick_params(axis=which, color=INK, labelcolor=INK)
    axes.grid(axis=which, color=INK, alpha=0.15, linewidth=1)
    axes.set_axisbelow(True)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)


def short(text: str, width: float) -> str:
    """The text on one line, its end cut off where it is wider than `width` SVG units."""
    text = one_line(text)
    most = int(width / CHARACTER)
    return text if len(text) <= most else text[: most - 1] + "…"


def one_line(text: str) -> str:
    """The text on one line; a control character would make the SVG unreadable as a whole."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))


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
