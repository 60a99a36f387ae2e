"""Peaks of calls within calls. An allocator has one peak, and profiling a call begins it anew."""
from __future__ import annotations

import threading
from typing import Any, List, Protocol


class PeakCounters(Protocol):
    """The part of a MemorySource that has peaks."""

    def counters(self) -> Any: ...

    def reset_peak(self) -> None: ...


class OpenCall:
    """A call that has not ended, and the most it is known to have reached."""

    __slots__ = ("allocated", "reserved")

    def __init__(self) -> None:
        self.allocated = self.reserved = 0


class OpenCalls:
    """The calls that are being profiled on one allocator, whoever profiles them. Before the peak begins anew, what it had reached
    is told to all that are open: it was reached within each. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: List[OpenCall] = []

    def begin(self, source: PeakCounters, anew: bool = True) -> OpenCall:
        """`anew` False: the peak goes on, but the call is told all the same when somebody else begins it anew."""
        call = OpenCall()
        with self._lock:
            if anew:
                self._reset(source)
            self._calls.append(call)
        return call

    def reset(self, source: PeakCounters) -> None:
        with self._lock:
            self._reset(source)

    def end(self, source: PeakCounters, call: OpenCall) -> Any:
        """The counters now, the peaks being the call's."""
        with self._lock:
            self._calls.remove(call)
            after = source.counters()
        if call.allocated > after.peak_allocated or call.reserved > after.peak_reserved:
            after = after._replace(
                peak_allocated=max(call.allocated, after.peak_allocated), peak_reserved=max(call.reserved, after.peak_reserved)
            )
        return after

    def _reset(self, source: PeakCounters) -> None:
        if self._calls:
            seen = source.counters()
            for call in self._calls:
                call.allocated = max(call.allocated, seen.peak_allocated)
                call.reserved = max(call.reserved, seen.peak_reserved)
        source.reset_peak()
