"""Memory at each mark, thinned out so that it stays bounded, and its growth from one mark to the next."""
from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import List, Optional

from vramtrack import _core
from vramtrack.statistics import linear_fit


class MarkSeries:
    """At most 4096 values: when they are full, every second one goes, and from then on every second mark is kept."""

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
        """How many marks there were from then on."""
        return (len(self._times) - bisect_left(self._times, since_s)) * self._stride

    def first_since(self, since_s: float, most: int) -> List[float]:
        """Memory at the first marks from then on."""
        begin = bisect_left(self._times, since_s)
        return list(self._values[begin : begin + most])

    def grows(self) -> bool:
        """It grows with every mark and does not slow down: shown by half of the marks, and by all of them."""
        if len(self._values) < 256:
            return False
        for part in (self._values[: len(self._values) // 2], self._values):
            result = _core.test_growth(part, 0.0, 1e-4, 4, "mark")
            if not result.failed or result.late_to_early < 0.75:
                return False
        return True

    def growth_bytes(self, since_s: Optional[float] = None) -> Optional[float]:
        """A mark's growth since that time, or all of it; after warm-up. None with fewer than 8 marks."""
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
