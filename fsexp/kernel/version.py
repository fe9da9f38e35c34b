"""Versions of kernels and of what builds them, and ranges of them."""

from __future__ import annotations

import operator
import re

from fsexp.errors import UserError

Version = tuple[int, ...]

_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}


def parse(text: str) -> Version:
    """The numbers that a version begins with: "2.6.39.4" -> (2, 6, 39, 4), "6.1.0-57-amd64" -> (6, 1, 0).

    Raises UserError where it begins with none.
    """
    found = re.match(r"\d+(?:\.\d+)*", text)
    if not found:
        raise UserError(f"'{text}' is no version")
    return tuple(map(int, found[0].split(".")))


def holds(range_: str, version: Version) -> bool:
    """Whether a range as "< 4.2" or ">= 3.0, < 3.9" holds the version; the empty range holds all."""
    for part in filter(None, map(str.strip, range_.split(","))):
        sign, number = re.fullmatch(r"([<>]=?|=)\s*(.+)", part).groups()
        if not _COMPARISONS[sign](_padded(version), _padded(parse(number))):
            return False
    return True


def _padded(version: Version) -> Version:
    return (*version, 0, 0, 0, 0)[:4]
