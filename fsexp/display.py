"""How figures and foreign text are shown to a person."""

import math
import re
from typing import Any

SMALLEST_DECIMALS = 9  # of a second: the tables hold nanoseconds

# Control characters, and the ones that change the order or the place of other text: a console or
# a label must not be able to hide what it says. Tab and newline keep their meaning.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff\ud800-\udfff]"
)


def seconds(value_s: float) -> str:
    """A time in s with four significant digits, but no finer than a nanosecond."""
    return _significant(value_s, 4)


def times(ratio: float) -> str:
    """A ratio with three significant digits."""
    return _significant(ratio, 3)


def figure(value: float) -> str:
    """A number with three significant digits, and all those before the point."""
    return _significant(value, 3)


def percent(fraction: float) -> str:
    """A fraction as per cent with two significant digits, without the sign."""
    return _significant(100 * fraction, 2)


def microseconds(value_s: float) -> str:
    """A time given in s, as microseconds with three significant digits."""
    return _significant(1e6 * value_s, 3)


def mebibytes(value_bytes: float) -> str:
    """A number of bytes as MiB with two decimals."""
    return f"{value_bytes / 2**20:,.2f}"


def hundredths(value_s: float) -> str:
    """A time in s that was counted in steps of 10 ms."""
    return f"{value_s:,.2f}"


def count(value: float) -> str:
    """A whole number with thousands separated; a half (the median of two) keeps its half."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def quantity(value: Any) -> str:
    """A parameter's value: numbers as `count` writes them, other values as they are."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return count(value) if number and math.isfinite(value) else str(value)


def visible(text: str) -> str:
    """The text with each control character replaced by a sign that can be seen."""
    return _INVISIBLE.sub(_sign, text)


def _sign(match: re.Match) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode's pictures of control characters
    return "\u2421" if code == 0x7F else f"[U+{code:04X}]"


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    # Rounding first: 9.9999 has one digit more than its logarithm says.
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{value:,.{min(max(decimals, 0), SMALLEST_DECIMALS)}f}"
