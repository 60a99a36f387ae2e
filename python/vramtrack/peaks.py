"""Peaks of nested calls. An allocator has one peak, and profiling a call resets it."""
from __future__ import annotations

import threading
from typing import Any, List, Protocol


class PeakCounters(Protocol):
    """The part of a MemorySource that has peaks."""

    def counters(self) -> Any: ...

    def reset_peak(self) -> None: ...


class OpenCall:
    """A call in progress, and the highest peak it is known to have reached."""

    __slots__ = ("allocated", "reserved")

    def __init__(self) -> None:
        self.allocated = self.reserved = 0


class OpenCalls:
    """The calls in progress on one allocator, from all profilers. Before the peak is reset, its value is stored with every open call,
    because it was reached within each of them. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: List[OpenCall] = []

    def begin(self, source: PeakCounters, anew: bool = True) -> OpenCall:
        """anew=False: does not reset the peak. The call still gets the peak when another call resets it."""
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
        """The current counters, with the peaks of this call."""
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
