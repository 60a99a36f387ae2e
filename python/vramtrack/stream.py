"""Stream: a verdict on one series while its samples arrive."""
from __future__ import annotations

from typing import Any, Dict, Optional

from vramtrack import _core
from vramtrack.verdict import Verdict, assignments, verdict_of


class Stream:
    """Feeds one series to the detectors, sample by sample. verdict() equals detect() on the same samples.

    Other figures of the same process and device can be observed, too, and have verdicts of their own: growth of "allocator_reserved" alone
    is caching or fragmentation rather than a leak, as "allocator_allocated" shows.

    Memory use is bounded. The cost of a sample and of a verdict does not depend on how many samples came before. Not thread-safe.
    ValueError: the metric or a setting does not exist.
    """

    def __init__(self, metric: str = "device_used", settings: Optional[Dict[str, Any]] = None, device_id: int = 0) -> None:
        self.metric = metric
        self._core = _core.Stream(metric, assignments(settings), device_id)
        self._capacity_bytes: Optional[float] = None

    def observe(self, time_s: float, used_bytes: Optional[float], capacity_bytes: Optional[float] = None) -> None:
        """Adds the next sample. used_bytes None: it could not be read. capacity_bytes: the limit of memory from now on; None: unchanged.
        ValueError: the time is earlier than the last one, or the size is below 0."""
        if capacity_bytes is not None and capacity_bytes != self._capacity_bytes:
            self._core.set_capacity(capacity_bytes)
            self._capacity_bytes = capacity_bytes
        self._core.observe(time_s, float("nan") if used_bytes is None else used_bytes)

    def observe_beside(
        self, metric: str, time_s: float, used_bytes: Optional[float], ceiling_bytes: Optional[float] = None
    ) -> None:
        """Adds the next value of another metric. Its time must not precede any other sample's. ceiling_bytes: the most that it can
        reach from now on, if that is less than the free memory; None: unchanged. ValueError: as in observe(), or the metric does not
        exist."""
        if ceiling_bytes is not None:
            self._core.set_ceiling(metric, ceiling_bytes)
        self._core.observe_beside(metric, time_s, float("nan") if used_bytes is None else used_bytes)

    def works(self, time_s: float) -> None:
        """Records that the program works at this time, which must not precede any sample's: its growth is not a model being loaded."""
        self._core.works(time_s)

    def verdict(self, explain: bool = False, metric: Optional[str] = None) -> Verdict:
        """The verdict so far, for this metric or another observed one."""
        if metric is None or metric == self.metric:
            return verdict_of(self._core.analysis(explain), self.metric)
        return verdict_of(self._core.analysis_beside(metric, explain), metric)
