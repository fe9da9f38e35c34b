"""Numbers over replicates: the middle, the extremes, and how far the seeds are apart."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """Replicates of one quantity, in the unit they came in.

    `spread` is (high - low) / median, without unit; None with fewer than two values or a median
    of 0, because then it says nothing.
    """

    median: float
    low: float
    high: float
    count: int
    spread: float | None


def summarize(values: Sequence[int | float]) -> Summary | None:
    """The summary of a flat sequence of values; None when there are none."""
    if not values:
        return None
    median, low, high = statistics.median(values), min(values), max(values)
    known = len(values) > 1 and median != 0
    spread = (high - low) / median if known else None
    return Summary(median=median, low=low, high=high, count=len(values), spread=spread)


def ratio(value: float | None, base: float | None) -> float | None:
    """value / base; None when either is not known or the base is 0."""
    if value is None or base is None or base == 0:
        return None
    return value / base
