import xml.etree.ElementTree as ElementTree

import pytest

from fsexp.plot import bar, page

SVG = "{http://www.w3.org/2000/svg}"
GROUPS = [
    bar.Group(
        "debian-6.1",
        (bar.Bar("ext4", 0, 0.127, 0.126, 0.128), bar.Bar("btrfs", 1, 0.245)),
    ),
    bar.Group("7.3", (bar.Bar("ext4", 0, None, note="no-kernel"), bar.Bar("btrfs", 1, 0.25))),
]


def draw(groups=None, name="plot-1", title="create", description="Times."):
    return bar.bars(groups or GROUPS, name=name, title=title, description=description, axis="virtual s")


def texts(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def bar_widths(svg):
    """Widths of the filled bars, in SVG units, in the order they were drawn."""
    widths = []
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        if "--series-" in path.get("style", ""):
            numbers = [float(part) for part in path.get("d").split() if part not in "MLz"]
            widths.append(max(numbers[::2]) - min(numbers[::2]))
    return widths


def test_the_same_arguments_give_the_same_text():
    assert draw() == draw()


def test_bars_are_as_long_as_their_values():
    widths = bar_widths(draw())
    assert len(widths) == 3
    assert widths[1] / widths[0] == pytest.approx(0.245 / 0.127, rel=1e-4)
    assert widths[2] / widths[0] == pytest.approx(0.25 / 0.127, rel=1e-4)


def test_each_bar_says_its_value_or_why_there_is_none():
    found = texts(draw())
    assert {"ext4: 0.1270", "btrfs: 0.2450", "btrfs: 0.2500", "ext4: no-kernel"} <= set(found)
    assert {"debian-6.1", "7.3", "virtual s"} <= set(found)


def test_foreign_text_stays_text():
    label = 'a<b>&"$x_1$'
    groups = [bar.Group("Ядро 7 % \x1b[0m", (bar.Bar(label, 0, 1.0),))]
    svg = draw(groups, title="</title><script>", description="a & b")
    assert "<script" not in svg
    found = texts(svg)
    assert f"{label}: 1.000" in found
    assert "Ядро 7 % \ufffd[0m" in found
    root = ElementTree.fromstring(svg)
    assert root.find(f"{SVG}title").text == "</title><script>"
    assert root.find(f"{SVG}desc").text == "a & b"


def test_a_page_can_hold_several():
    def names(svg):
        return {element.get("id") for element in ElementTree.fromstring(svg).iter()} - {None}

    first, second = names(draw(name="one")), names(draw(name="two"))
    assert not first & second
    root = ElementTree.fromstring(draw(name="one"))
    for use in root.iter(f"{SVG}use"):
        assert use.get("href").removeprefix("#") in first


def test_it_fits_into_a_page():
    svg = draw()
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("viewBox") and root.get("width") is None
    assert set(root.get("aria-labelledby").split()) == {"plot-1-title", "plot-1-description"}
    # Nothing that reaches beyond the element, and colours that a dark page can change.
    for foreign in ("<style", "metadata", "<?xml", "<!", "xlink", page.INK):
        assert foreign not in svg
    assert "currentColor" in svg


@pytest.mark.parametrize("value", [0.0, 1e-9, 123456.0])
def test_values_of_any_size(value):
    svg = draw([bar.Group("k", (bar.Bar("ext4", 0, value, value, value),))])
    assert "nan" not in svg.lower()


def test_labels_stay_inside():
    groups = [bar.Group("k" * 300, (bar.Bar("f" * 300, 0, 1.0), bar.Bar("g", 9, 2.0)))]
    assert max(len(text) for text in texts(draw(groups))) * page.CHARACTER < page.WIDTH
