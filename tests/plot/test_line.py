import xml.etree.ElementTree as ElementTree

import pytest

from fsexp.plot import line, page

SVG = "{http://www.w3.org/2000/svg}"


def points(*values):
    return tuple(None if value is None else line.Point(value) for value in values)


def draw(series, positions, description="Times."):
    svg = line.lines(
        series, positions, name="plot-1", title="create", description=description, axis="create, virtual s"
    )
    return ElementTree.fromstring(svg)


def strokes(root, number):
    """The pieces of the thick paths of a series, each a list of (x, y); the first is the legend's."""
    found = []
    for path in root.iter(f"{SVG}path"):
        style = path.get("style", "")
        if f"stroke: var(--series-{number}," in style and "stroke-width: 2" in style:
            for piece in path.get("d").split("M")[1:]:
                numbers = [float(part) for part in piece.split() if part != "L"]
                found.append(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return found


def marks(root, number):
    return [
        (use.get("href"), float(use.get("x")), float(use.get("y")))
        for use in root.iter(f"{SVG}use")
        if f"fill: var(--series-{number}," in use.get("style", "")
    ]


def texts(root):
    return [element.text for element in root.iter(f"{SVG}text")]


def test_a_line_is_broken_where_there_is_no_value():
    root = draw([line.Line("ext4", points(1, 2, None, 4, 3, None, 5))], list("abcdefg"))
    legend, *pieces = strokes(root, 1)
    # 1-2, 4-3 and the last by itself, which is a mark without a line.
    assert [len(piece) for piece in pieces] == [2, 2, 1]
    assert len(marks(root, 1)) == 1 + 5
    assert len(legend) == 2


@pytest.mark.parametrize(
    ("values", "pieces"),
    [
        ((), []),
        ((None, None), []),
        ((1, 2, 3), [[0, 1, 2]]),
        ((None, 2, None, None, 3, 4, None), [[1], [4, 5]]),
    ],
)
def test_pieces(values, pieces):
    assert line.segments(points(*values)) == pieces


def test_heights_are_as_the_values_from_zero():
    root = draw([line.Line("ext4", points(1, 2, 4))], ["a", "b", "c"])
    _, piece = strokes(root, 1)
    (x1, y1), (x2, y2), (x3, y3) = piece
    assert x2 - x1 == pytest.approx(x3 - x2)
    # From 0 the steps 1 -> 2 and 2 -> 4 are as 1 to 2, and the axis lies a step of 1 below the first.
    assert y2 - y3 == pytest.approx(2 * (y1 - y2), rel=1e-4)
    zero = max(float(use.get("y")) for use in root.iter(f"{SVG}use"))
    assert zero - y1 == pytest.approx(y1 - y2, rel=1e-4)


def test_spreads():
    series = [line.Line("ext4", (line.Point(2, 1, 4), line.Point(3), None))]
    root = draw(series, ["a", "b", "c"])
    thin = [
        path.get("d")
        for path in root.iter(f"{SVG}path")
        if "--series-1" in path.get("style", "") and "stroke-width: 1.2" in path.get("style", "")
    ]
    # One bar with its two ends.
    assert len(thin) == 1 and thin[0].count("M") == 3
    numbers = [float(part) for part in thin[0].split() if part not in "ML"]
    (mark,) = [y for _, x, y in marks(root, 1)[1:] if x == pytest.approx(numbers[0])]
    low, high = numbers[1], numbers[3]
    assert low - mark == pytest.approx((mark - high) / 2, rel=1e-4)


def test_series_differ_by_more_than_colour():
    names = [f"fs{number}" for number in range(10)]
    root = draw([line.Line(name, points(number + 1)) for number, name in enumerate(names)], ["a"])
    shapes = {path.get("id"): path.get("d") for path in root.iter(f"{SVG}path") if path.get("id")}
    drawn = [
        shapes[use.get("href").removeprefix("#")] for use in root.iter(f"{SVG}use") if "fill: var" in use.get("style")
    ]
    assert len(set(drawn)) == 10
    assert set(names) <= set(texts(root))


@pytest.mark.parametrize(("number", "turned"), [(2, False), (5, True), (30, True)])
def test_names_are_turned_where_they_do_not_fit(number, turned):
    names = [f"linux-6.{place}.12" for place in range(number)]
    root = draw([line.Line("ext4", points(*[1] * number))], names)
    assert [text for text in texts(root) if text in names] == names
    found = {element.text: element.get("transform", "") for element in root.iter(f"{SVG}text")}
    assert ("rotate(-90" in found[names[-1]]) is turned


def test_of_very_many_positions_some_are_named():
    names = [f"k{place}" for place in range(100)]
    root = draw([line.Line("ext4", points(*[1] * 100))], names)
    shown = [text for text in texts(root) if text in names]
    # 100 names of 11 units each do not fit into less than 400; every fourth does.
    assert shown == names[::4]
    assert len(marks(root, 1)) == 101


def test_a_long_name_keeps_both_ends():
    assert line.middle("newest 6.16.12", 24) == "newest 6.16.12"
    assert line.middle("everything from backports 6.16.12", 20) == "everythin…ts 6.16.12"
    assert len(line.middle("x" * 300, 24)) == 24


def test_foreign_text_stays_text():
    root = draw([line.Line('a<b>&"$x_1$', points(1))], ["Ядро $7_a$ <\x1b>"], description="a & <b>")
    assert 'a<b>&"$x_1$' in texts(root)
    assert "Ядро $7_a$ <\ufffd>" in texts(root)
    assert root.find(f"{SVG}desc").text == "a & <b>"


def test_everything_stays_inside():
    series = [line.Line("f" * 300, points(1e-9, None)), line.Line("g" * 30, points(123456.0, 0.0))]
    root = draw([*series, *series], ["k" * 300, "l"])
    _, _, width, height = map(float, root.get("viewBox").split())
    assert width == page.WIDTH
    for element in root.iter(f"{SVG}text"):
        x, y = float(element.get("x")), float(element.get("y"))
        assert 0 <= x <= width and 0 <= y <= height
        length = len(element.text) * page.CHARACTER
        if "rotate(-90" in element.get("transform", ""):
            assert y + length * line.SMALL / page.TEXT <= height
        elif "text-anchor: start" in element.get("style"):
            assert x + length <= width


@pytest.mark.parametrize("value", [0.0, 1e-9, 123456.0])
def test_values_of_any_size(value):
    svg = line.lines(
        [line.Line("ext4", (line.Point(value, value, value),) * 3)],
        list("abc"),
        name="a",
        title="",
        description="",
        axis="",
    )
    assert "nan" not in svg.lower()


def test_the_same_arguments_give_the_same_text():
    series = [line.Line("ext4", points(1, None, 2))]
    first, second = (ElementTree.tostring(draw(series, list("abc"))) for _ in range(2))
    assert first == second
