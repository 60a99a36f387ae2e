"""Memory at each mark in a series of bounded size, its growth per mark, and the marks of a Watch by name."""
from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence

from vramtrack import _core
from vramtrack.statistics import linear_fit, median
from vramtrack.units import MIB, format_change

_OFTEN_S = 300.0  # marks that come three times within this time are worth waiting for


class MarkSeries:
    """Holds fewer than 4096 values. When it is full, every second one is dropped, and from then on only every second mark is kept."""

    MOST = 4096

    def __init__(self) -> None:
        self.count = 0
        self._stride = 1
        self._times = array("d")
        self._values = array("d")

    def add(self, time_s: float, used_bytes: float) -> None:
        if self.count % self._stride == 0:
            self._times.append(time_s)
            self._values.append(used_bytes)
            if len(self._values) >= self.MOST:
                self._times = self._times[::2]
                self._values = self._values[::2]
                self._stride *= 2
        self.count += 1

    def count_since(self, since_s: float) -> int:
        """The number of marks since then."""
        return (len(self._times) - bisect_left(self._times, since_s)) * self._stride

    def first_since(self, since_s: float, most: int) -> List[float]:
        """Memory at the first `most` marks since then."""
        begin = bisect_left(self._times, since_s)
        return list(self._values[begin : begin + most])

    def grows(self) -> bool:
        """Whether memory grows with every mark without slowing down. Half of the marks and all of them must both show it."""
        if len(self._values) < 256:
            return False
        for part in (self._values[: len(self._values) // 2], self._values):
            result = _core.test_growth(part, 0.0, 1e-4, 4, "mark")
            if not result.failed or result.late_to_early < 0.75:
                return False
        return True

    def growth_bytes(self, since_s: Optional[float] = None) -> Optional[float]:
        """Growth per mark since that time (default: over all marks), after warm-up. None with fewer than 8 marks."""
        begin = 0 if since_s is None else bisect_left(self._times, since_s)
        values = self._values[begin:]
        if len(values) < 8:
            return None
        result = _core.test_growth(values, 0.0, 1e-3, 4, "mark")
        if result.outcome != "too_short":
            return float(result.growth_bytes) / self._stride
        rest = values[int(result.warm_up_iterations) :]
        slope, _, _ = linear_fit(array("d", range(len(rest))), rest)
        return slope / self._stride


class EpochGrowth(NamedTuple):
    """Growth from epoch to epoch, after garbage collection and without the first epoch, which is warm-up. str() gives it in words."""

    bytes: float  # the median
    low_bytes: float  # the median of all future epochs lies between these ...
    high_bytes: float
    certainty: float  # ... with this probability, for any distribution
    epochs: int
    chance: float  # of at least as many rising epochs, if each rose or fell by chance

    @property
    def is_sure(self) -> bool:
        """Whether growth by the same number of bytes each time rules out chance, however few the epochs."""
        is_no_chance = self.chance <= 1 / 8 or self.low_bytes == self.high_bytes
        return self.low_bytes > 0 and is_no_chance and self.bytes * self.epochs >= MIB

    def __str__(self) -> str:
        low, high = format_change(self.low_bytes), format_change(self.high_bytes)
        words = f"{format_change(self.bytes)} per epoch over {self.epochs} epochs"
        if low == high:
            words += " (the same in each"
        else:
            words += f" ({low} to {high} with {100 * self.certainty:.0f} % certainty"
        return words + f"; by chance in 1 of {1 / self.chance:,.0f} runs)"


def growth_of_epochs(growth: Sequence[float]) -> Optional[EpochGrowth]:
    """None: fewer than two epochs, or none of them rose. The interval and the chance are those of the sign test (Dixon and Mood, Journal of
    the American Statistical Association 41, 1946): the interval lies between the k-th smallest and the k-th largest growth."""
    ordered, n = sorted(growth), len(growth)
    if n < 2 or ordered[-1] <= 0:
        return None
    outside = [2 * _core.binomial_cdf(k - 1, n, 0.5) for k in range(1, (n + 1) // 2 + 1)]
    k = max([k for k, chance in enumerate(outside, 1) if chance <= 0.05], default=1)
    falling = sum(each <= 0 for each in growth)
    return EpochGrowth(median(ordered), ordered[k - 1], ordered[n - k], 1 - outside[k - 1], n, _core.binomial_cdf(falling, n, 0.5))


class Marks:
    """The series of each name, and memory at the ends of epochs. Thread-safe."""

    MOST_NAMES = 64

    def __init__(self) -> None:
        self.series: Dict[str, MarkSeries] = {}
        self._epoch_bytes: List[int] = []
        self._lock = threading.Lock()

    def in_child(self) -> None:
        """In a forked process, a thread that no longer exists may hold the lock."""
        self._lock = threading.Lock()

    def add(self, name: str, used_bytes: int, clock: Callable[[], float]) -> Optional[float]:
        """The time of the mark. None: there are too many names, so it was left out."""
        with self._lock:
            series = self.series.get(name)
            if series is None:
                if len(self.series) >= self.MOST_NAMES:
                    return None
                series = self.series[name] = MarkSeries()
            now = clock()
            series.add(now, used_bytes)
            return now

    def add_epoch(self, used_bytes: int) -> None:
        with self._lock:
            self._epoch_bytes.append(used_bytes)

    @property
    def epoch_growth(self) -> List[int]:
        """Growth in bytes from each epoch to the next."""
        with self._lock:
            return [b - a for a, b in zip(self._epoch_bytes, self._epoch_bytes[1:])]

    @property
    def grows_every_epoch(self) -> bool:
        """Whether memory grew in each of the last three epochs, by 1 MiB or more in total. The very first epoch is warm-up and does
        not count."""
        growth = self.epoch_growth[1:][-3:]
        return len(growth) == 3 and min(growth) > 0 and sum(growth) >= MIB

    @property
    def growth_per_epoch(self) -> Optional[EpochGrowth]:
        return growth_of_epochs(self.epoch_growth[1:])

    def growth_per(self, since_s: Optional[float]) -> Dict[str, float]:
        """Growth in bytes by name, for those with enough marks since then (None: since the beginning)."""
        with self._lock:
            grown = {name: series.growth_bytes(since_s) for name, series in self.series.items()}
        return {name: growth for name, growth in grown.items() if growth is not None}

    def first_since(self, since_s: float, most: int) -> List[float]:
        """Memory at the first `most` marks of each name since then."""
        with self._lock:
            return [value for series in self.series.values() for value in series.first_since(since_s, most)]

    def any_grows(self) -> bool:
        return any(series.grows() for series in self._all())

    def come_often(self, now: float) -> bool:
        return any(series.count_since(now - _OFTEN_S) >= 3 for series in self._all())

    def _all(self) -> List[MarkSeries]:
        with self._lock:
            return list(self.series.values())
