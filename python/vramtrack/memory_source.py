"""MemorySource: what a profiler, a watch or a gate reads its figures from."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from vramtrack.driver import DeviceIdentity
from vramtrack.peaks import OpenCalls

MIB = 2**20


class Counters(NamedTuple):
    """An allocator's counters at one moment, in bytes; `allocations` is a number of live blocks."""

    allocated: int
    reserved: int
    peak_allocated: int
    peak_reserved: int
    active: int
    inactive_split: int
    allocations: int


class Site(NamedTuple):
    """Live bytes that one line has allocated. `name` is its function, `stack` the frames from the innermost outwards."""

    name: str
    file: str
    line: int
    live_bytes: int
    growth_bytes: int
    stack: Tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.name}: {self.growth_bytes / MIB:+.1f} MiB, {self.live_bytes / MIB:.1f} MiB live"


class MemorySource:
    """What a profiler, a watch or a gate reads. Subclasses give the counters; the rest may be missing (None)."""

    name = "memory"
    device_id = 0

    def counters(self) -> Counters:
        """One look at all counters of the allocator. Called around every profiled call, so it must be cheap."""
        raise NotImplementedError

    def reset_peak(self) -> None:
        """Begins the peaks of counters() anew."""

    @property
    def open_calls(self) -> OpenCalls:
        """Of whatever has these peaks: sources of one allocator have the same."""
        return self.__dict__.setdefault("_open_calls", OpenCalls())  # type: ignore[no-any-return]

    def device_used_bytes(self) -> Optional[int]:
        """What the driver says is used on the device, by everybody; None where it does not say."""
        return None

    def capacity_bytes(self) -> Optional[int]:
        """The device's memory."""
        return None

    def identity(self) -> Optional[DeviceIdentity]:
        """What the driver knows it by; None: it is no CUDA device."""
        return None

    def synchronize(self) -> None:
        """Waits for work that has been started."""

    def empty_cache(self) -> None:
        """Gives back what the allocator holds and nobody uses."""

    # Evidence: which lines hold the memory. A source without it has no sites.
    def start_stacks(self) -> None:
        """From here on remembers where each block comes from. Costs something at each allocation."""

    def stop_stacks(self) -> None:
        """Forgets it, and costs nothing any more."""

    def start_trace(self) -> Any:
        """As start_stacks(), with what peak_stack() needs; returns what that takes. stop_stacks() ends it, too."""
        self.start_stacks()
        return None

    def peak_stack(self, since: Any = None) -> Optional[str]:
        """The stack of the allocation that made the peak since the start_trace() that returned `since`; asked once, before
        the stop_stacks() of it."""
        return None

    def snapshot(self) -> Any:
        """What is live now, by stack, in whatever form growing_sites() of the same source reads."""
        return None

    def growing_sites(self, before: Any, after: Any, limit: int = 10) -> List[Site]:
        """The sites whose live bytes grew from one snapshot to a later one, the largest growth first."""
        return []

    def allocator_settings(self) -> Dict[str, str]:
        """The allocator's settings as they are in force."""
        return {}

    @property
    def settings_variable(self) -> str:
        """The environment variable that sets them."""
        return "PYTORCH_CUDA_ALLOC_CONF"

    def observe_oom(self, observer: Callable[[int, int], None]) -> Optional[Callable[[], None]]:
        """Calls observer(asked_bytes, free_bytes) when memory has run out; returns what ends that, None: not possible."""
        return None
