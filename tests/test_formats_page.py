"""docs/formats.md shows the tables that the program uses. `python tests/test_formats_page.py` writes them anew."""

import re
import sys
from pathlib import Path

import pytest

from fsexp.image import features
from fsexp.kernel import version

PAGE = Path(__file__).resolve().parents[1] / "docs/formats.md"


def feature_rows():
    yield ("filesystem", "feature", "first kernel", "needs", "source")
    for type_, known in features.FEATURES.items():
        for one in known:
            note = "; ".join(filter(None, ["passed over before" if one.ignored else "", one.note]))
            needs = f"`CONFIG_{one.kconfig.option}`" if one.kconfig else ""
            first = version.show(one.first) + (f" ({note})" if note else "")
            yield (type_, f"`{one.name}`", first, needs, one.source)


def era_rows():
    yield ("filesystem", "from kernel", "mkfs", "features", "source")
    for type_, eras in features.ERAS.items():
        for era in eras:
            # Those that all of them have say nothing.
            shown = sorted(era.features - frozenset.intersection(*(other.features for other in eras)))
            words = ", ".join(f"`{name}`" for name in shown) or "none of them"
            yield (type_, version.show(era.kernel), era.program, words, era.source)


def table(rows):
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|" + "---|" * (head.count("|") - 1), *rest])


TABLES = {"features": table(feature_rows()), "eras": table(era_rows())}


def between(name):
    return re.compile(rf"(?<=<!-- {name} -->\n)(?:.*\n)*?(?=<!-- end of {name} -->)")


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_the_table(name):
    assert between(name).findall(PAGE.read_text(encoding="utf-8")) == [f"{TABLES[name]}\n"]


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    for name, wanted in TABLES.items():
        text = between(name).sub(lambda _, wanted=wanted: wanted + "\n", text)
    sys.exit(PAGE.write_text(text, encoding="utf-8") == 0)
