"""Whether a leak persists: memory before and after garbage collection and emptying the cache."""
from __future__ import annotations

import gc
import os
from dataclasses import replace
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from vramtrack.driver import DriverMemory
from vramtrack.mark_series import Marks
from vramtrack.memory_source import MemorySource
from vramtrack.units import format_size
from vramtrack.verdict import ConclusionWords, Verdict
from vramtrack.watch_sample import FIELDS, WatchSample, check_metric

_LOOKS_AT_ONSET = 20


class Confirmation(NamedTuple):
    """Memory before and after garbage collection and emptying the cache. The growth that persists is the leak."""

    allocated_before: int
    allocated_after: int
    reserved_before: int
    reserved_after: int
    growth_bytes: int  # growth of the metric since the onset, before collection
    persists_bytes: int  # the same after collection
    metric: str = "allocator_allocated"

    @property
    def leak(self) -> bool:
        return self.growth_bytes > 0 and self.persists_bytes > 0.5 * self.growth_bytes


#: The metric at the onset, and its value at the onset with the cache emptied; the argument is its current level.
AtOnset = Callable[[int], Tuple[int, int]]


def confirm(source: MemorySource, driver: DriverMemory, metric: str, clock: Callable[[], float], at_onset: AtOnset) -> Confirmation:
    """Collects garbage and empties the cache. ValueError: the metric is not available at present."""
    before, level_before = source.counters(), _level(source, driver, metric, clock())
    gc.collect()
    source.synchronize()
    source.empty_cache()
    after, level_after = source.counters(), _level(source, driver, metric, clock())
    with_cache, without = at_onset(level_before)
    growth, persists = level_before - with_cache, level_after - without
    return Confirmation(before.allocated, after.allocated, before.reserved, after.reserved, growth, min(growth, persists), metric)


def _level(source: MemorySource, driver: DriverMemory, metric: str, now: float) -> int:
    """The current value of the metric."""
    check_metric(metric)
    level: Optional[int]
    if metric == "device_used":
        level = source.device_used_bytes()
    elif metric == "process_used":
        level = (driver.read(now, anyway=True) or {}).get(os.getpid())
    else:
        counters = source.counters()
        level = counters.allocated if metric == "allocator_allocated" else counters.reserved
    if level is None:
        raise ValueError(f"{metric} is not available now" + (f": {driver.reason}" if metric == "process_used" else ""))
    return level


def levels_at_onset(samples: List[WatchSample], marks: Marks, metric: str, onset_s: Optional[float], now: int) -> Tuple[int, int]:
    """The metric at the onset, and its value at the onset with the cache emptied: the lowest of the first samples, because most samples
    fall within a step and the value to compare with is taken between two steps. `onset_s`: by the clock of the samples. None: their
    beginning."""
    field = FIELDS[metric]
    since = float("-inf") if onset_s is None else onset_s
    most = _LOOKS_AT_ONSET if since > 0 else len(samples)
    near = [s for s in samples if s.time_s >= since and s[field] is not None][:most]
    levels = [s[field] for s in near]
    if metric == "allocator_allocated":
        level = int(min([*levels, *marks.first_since(since, most)], default=now))
        return level, level
    unused = [s[field] - (s.allocator_reserved - s.allocator_allocated) for s in near]
    return int(min(levels, default=now)), int(min(unused, default=now))


def confirmed(verdict: Verdict, found: Confirmation) -> Verdict:
    """The verdict, taking `found` into account: no leak if the growth does not persist."""
    persists = f"{format_size(found.persists_bytes)} of {format_size(found.growth_bytes)}"
    if found.leak:
        return replace(verdict, because=f"{verdict.because}; confirmed: {persists} persist after garbage collection")
    words = f"{persists} persist after garbage collection and emptying the cache, so this is not a leak"
    changed: Dict[str, Any] = {"leak": False, "state": "steady", "pattern": "none", "severity": "ok", "oom_in_s": None,
                               "because": f"{words} (before: {verdict.because})"}  # fmt: skip
    raw = {**verdict.raw, "verdict": {**verdict.raw.get("verdict", {}), **changed}}
    raw.pop("told", None)  # those words are refuted
    return replace(verdict, text="", told=ConclusionWords(), growth_per={}, raw=raw, **changed)
