"""MemorySource: where profilers, watches and gates read memory figures."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from vramtrack.driver import DeviceIdentity
from vramtrack.peaks import OpenCalls
from vramtrack.printable import printable
from vramtrack.units import format_change, format_size


class Counters(NamedTuple):
    """An allocator's counters at one moment, in bytes. `allocations` is the number of live blocks."""

    allocated: int
    reserved: int
    peak_allocated: int
    peak_reserved: int
    active: int
    inactive_split: int
    allocations: int


class Pool(NamedTuple):
    """A private pool of the allocator. `id` is PyTorch's: (n, 0) was created by the capture of a CUDA graph, (0, n) by MemPool() or
    graph_pool_handle()."""

    id: Tuple[int, int]
    reserved_bytes: int
    allocated_bytes: int

    def __str__(self) -> str:
        name = f"CUDA graph {self.id[0]}" if self.id[1] == 0 else f"pool {self.id[0]}.{self.id[1]}"
        return f"{name}: {format_size(self.reserved_bytes)} reserved, {format_size(self.allocated_bytes)} of it allocated"


class Site(NamedTuple):
    """Live bytes allocated by one line. `name` is its function; `stack` lists the frames, innermost first."""

    name: str
    file: str
    line: int
    live_bytes: int
    growth_bytes: int
    stack: Tuple[str, ...] = ()

    def __str__(self) -> str:
        where = printable(f"{self.file}:{self.line} in {self.name}")
        return f"{where}: {format_change(self.growth_bytes)}, {format_size(self.live_bytes)} live"


class Device(NamedTuple):
    """A device outside PyTorch."""

    type: str
    index: int

    def __str__(self) -> str:
        return printable(f"{self.type}:{self.index}")


class MemorySource:
    """Memory figures for profilers, watches and gates. Subclasses implement counters(); everything else is optional."""

    name = "memory"
    device_id = 0

    @property
    def device(self) -> Any:
        """The framework's own object for the device, or one with `type` and `index`."""
        return Device(self.name, self.device_id)

    def counters(self) -> Counters:
        """Reads all counters of the allocator. It is called before and after every profiled call, so it must be cheap."""
        raise NotImplementedError

    def reset_peak(self) -> None:
        """Resets the peaks in counters()."""

    @property
    def open_calls(self) -> OpenCalls:
        """The profiled calls that share these peaks. All sources of one allocator share them."""
        return self.__dict__.setdefault("_open_calls", OpenCalls())  # type: ignore[no-any-return]

    def device_used_bytes(self) -> Optional[int]:
        """Memory used on the device by all processes, from the driver; None if the driver does not report it."""
        return None

    def capacity_bytes(self) -> Optional[int]:
        """The size of the device's memory."""
        return None

    def limit_bytes(self) -> Optional[int]:
        """The most that this process's allocator may reserve, if that is less than the device's capacity; None: there is no such limit."""
        return None

    def host_pinned_bytes(self) -> Optional[int]:
        """Host memory that the framework has pinned, in use or cached; None if the framework does not count it."""
        return None

    def pools(self) -> List[Pool]:
        """The allocator's private pools, largest first. It may take milliseconds."""
        return []

    def identity(self) -> Optional[DeviceIdentity]:
        """How the driver identifies the device; None if it is not a CUDA device."""
        return None

    def synchronize(self) -> None:
        """Waits for all GPU work that has been started."""

    def empty_cache(self) -> None:
        """Returns cached, unused memory to the device."""

    # Evidence for the lines that hold the memory. A source without it has no sites.
    def start_stacks(self) -> None:
        """Starts to record where each block is allocated. Recording slows down each allocation."""

    def stop_stacks(self) -> None:
        """Stops recording and drops the recorded data."""

    def start_trace(self) -> Any:
        """Like start_stacks(), and also records the data for peak_stack(). Returns the argument for peak_stack(). stop_stacks() ends it."""
        self.start_stacks()
        return None

    def peak_stack(self, since: Any = None) -> Optional[str]:
        """The stack of the allocation that reached the peak since the start_trace() call that returned `since`. Call it once, before
        stop_stacks()."""
        return None

    def snapshot(self) -> Any:
        """The live blocks by stack, in the form that this source's growing_sites() reads."""
        return None

    def snapshot_at_oom(self, asked_bytes: int, free_bytes: int) -> Any:
        """The snapshot to write when memory has run out: its history includes the error."""
        return self.snapshot()

    def growing_sites(self, before: Any, after: Any, limit: int = 10) -> List[Site]:
        """The sites whose live bytes grew between two snapshots, largest growth first."""
        return []

    def allocator_settings(self) -> Dict[str, str]:
        """The allocator's settings in force."""
        return {}

    @property
    def settings_variable(self) -> str:
        """The environment variable that holds the allocator's settings."""
        return "PYTORCH_CUDA_ALLOC_CONF"

    def observe_oom(self, observer: Callable[[int, int], None]) -> Optional[Callable[[], None]]:
        """Calls observer(asked_bytes, free_bytes) when memory runs out. Returns a function that ends this, or None if the source
        cannot observe it."""
        return None
