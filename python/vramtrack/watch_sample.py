"""One sample of a Watch, and the samples that it keeps."""
from __future__ import annotations

import os
from typing import Callable, List, NamedTuple, Optional

from vramtrack.driver import DriverMemory
from vramtrack.memory_source import MemorySource
from vramtrack.units import MIB


class WatchSample(NamedTuple):
    """One sample of memory, in bytes. None: the figure is not available."""

    time_s: float
    allocator_allocated: int
    allocator_reserved: int
    device_used: Optional[int]
    process_used: Optional[int]
    device_total: Optional[int]
    allocator_limit: Optional[int] = None  # the most that the allocator may reserve, if less than the whole device
    host_pinned: Optional[int] = None  # pinned by the framework, in use or cached


FIELDS = {"allocator_allocated": 1, "allocator_reserved": 2, "device_used": 3, "process_used": 4}  # of WatchSample


def check_metric(metric: str) -> None:
    """ValueError: no metric of GPU memory has this name."""
    if metric not in FIELDS:
        raise ValueError(f"unknown metric {metric!r}; expected one of {', '.join(FIELDS)}")


def take_sample(source: MemorySource, driver: DriverMemory, clock: Callable[[], float], note: Callable[[str], None]) -> WatchSample:
    """Takes a sample. `note` receives the reason if the driver's figures are missing."""
    counters = source.counters()
    now = clock()
    return WatchSample(
        now,
        counters.allocated,
        counters.reserved,
        source.device_used_bytes(),
        _process_used(driver, now, note),
        source.capacity_bytes(),
        source.limit_bytes(),
        source.host_pinned_bytes(),
    )


def _process_used(driver: DriverMemory, now: float, note: Callable[[str], None]) -> Optional[int]:
    try:
        used = driver.read(now)
    except ValueError as error:  # the device does not answer; the allocator's figures remain available
        note(f"driver: {error}")
        return None
    if driver.reason and driver.wanted:
        note(f"the driver has no process figures: {driver.reason}")
    return None if used is None else used.get(os.getpid())


def limit_bytes(taken: WatchSample, metric: str) -> Optional[float]:
    """The limit of the metric: the device's capacity; for a metric of this process, less the memory of others, or the most that the
    allocator may reserve if that is less (a memory fraction)."""
    if taken.device_total is None:
        return None
    if metric == "device_used":
        return float(taken.device_total)
    others = 0 if taken.device_used is None else max(0, taken.device_used - taken.allocator_reserved)
    end = taken.device_total - others
    if taken.allocator_limit is not None:
        outside = 0
        if metric == "process_used" and taken.process_used is not None:
            outside = max(0, taken.process_used - taken.allocator_reserved)
        end = min(end, taken.allocator_limit + outside)
    return float(max(1, end))


def metric_of_process(last: Optional[WatchSample]) -> str:
    """The metric of this process: the driver's if the allocator counts nothing (PYTORCH_NO_CUDA_MEMORY_CACHING=1)."""
    if last is None or last.allocator_reserved > 0 or last.allocator_allocated > 0:
        return "allocator_allocated"
    if last.process_used is not None:
        return "process_used"
    return "allocator_allocated" if last.device_used is None else "device_used"


class Samples:
    """Holds fewer samples than `most`. When it is full, every second one is dropped, and from then on only every second sample is kept."""

    def __init__(self, most: int) -> None:
        self.kept: List[WatchSample] = []
        self._most = most
        self._taken = 0
        self._stride = 1

    def add(self, taken: WatchSample) -> None:
        if self._taken % self._stride == 0:
            self.kept.append(taken)
            if len(self.kept) >= self._most:
                del self.kept[1::2]
                self._stride *= 2
        self._taken += 1

    def cache_grows(self) -> bool:
        """Whether the allocator's unused memory in the last third is always more than its lowest value in the first third."""
        unused = [taken.allocator_reserved - taken.allocator_allocated for taken in self.kept]
        third = max(1, len(unused) // 3)
        return len(unused) >= 3 and min(unused[-third:]) > min(unused[:third]) + 64 * MIB
