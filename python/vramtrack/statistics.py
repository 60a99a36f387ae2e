"""The statistics that the analyzer needs, on plain sequences."""
from __future__ import annotations

import math
from array import array
from typing import Sequence, Tuple

from vramtrack import _core


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def stdev(values: Sequence[float]) -> float:
    """The standard deviation of a sample, with n - 1 in the denominator."""
    centre = mean(values)
    return math.sqrt(math.fsum((v - centre) ** 2 for v in values) / (len(values) - 1))


def quantile(values: Sequence[float], q: float) -> float:
    """By linear interpolation between order statistics (Hyndman & Fan, American Statistician 50, 1996: type 7)."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)


def linear_fit(x: Sequence[float], y: Sequence[float]) -> Tuple[float, float, float]:
    """(slope, r, two-sided p) of a least-squares fit of y on x; (0, 0, 1) if there is no line."""
    return _core.linear_fit(array("d", x), array("d", y))
