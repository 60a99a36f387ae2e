"""Where memory figures come from: a CUDA device by PyTorch's allocator, or a simulated device that a test drives."""
from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from vramtrack.driver import DeviceIdentity
from vramtrack.errors import NoDeviceError, SimulatedOutOfMemoryError
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


_Stack = Tuple[Tuple[str, str, int], ...]  # (function, file, line) from the innermost outwards


class _Trace:
    """The most that was allocated since it began, and where."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self.stack: _Stack = ()


class SimulatedDevice(MemorySource):
    """A GPU that exists in memory only: a caching allocator of 2 MiB segments, with sites, for tests without a GPU.

    `allocate` and `free` move the same counters a framework's allocator has. Thread-safe.
    """

    SEGMENT = 2 * MIB

    def __init__(self, capacity_bytes: int = 24 * 2**30, name: str = "simulated device") -> None:
        self.name = name
        self._capacity = capacity_bytes
        self._lock = threading.RLock()
        self._live: Dict[int, Tuple[int, _Stack]] = {}
        self._next = 1
        self._allocated = 0
        self._reserved = 0
        self._peak = 0
        self._peak_reserved = 0
        self._recordings = 0
        self._traces: List[_Trace] = []
        self._history: List[Dict[str, Any]] = []
        self._settings: Dict[str, str] = {}
        self._observers: List[Callable[[int, int], None]] = []
        #: bytes used on the device beside this allocator: contexts, libraries, other processes
        self.outside_bytes = 0

    def allocate(self, size_bytes: int, depth: int = 0) -> int:
        """Takes memory and returns a handle for free(). The site is the caller's line, `depth` callers further out."""
        size_bytes = int(size_bytes)
        if size_bytes < 0:
            raise ValueError(f"cannot allocate {size_bytes} bytes")
        frame = sys._getframe(1 + depth)
        with self._lock:
            needed = self._allocated + size_bytes
            if needed > self._reserved:
                reserved = -(-needed // self.SEGMENT) * self.SEGMENT
                if reserved + self.outside_bytes > self._capacity:
                    self._run_out(size_bytes, _stack_of(frame))
                self._reserved = reserved
                self._peak_reserved = max(self._peak_reserved, reserved)
            handle = self._next
            self._next += 1
            stack: _Stack = ()
            if self._recordings > 0:
                stack = _stack_of(frame)
            self._live[handle] = (size_bytes, stack)
            self._allocated = needed
            self._peak = max(self._peak, needed)
            for trace in self._traces:
                if needed > trace.peak_bytes:
                    trace.peak_bytes, trace.stack = needed, stack
            return handle

    def free(self, handle: int) -> None:
        """Gives the block back to the allocator, which keeps the memory."""
        with self._lock:
            self._allocated -= self._live.pop(handle)[0]

    @contextlib.contextmanager
    def temporary(self, size_bytes: int) -> Iterator[None]:
        """Memory that is held within the block only."""
        handle = self.allocate(size_bytes, depth=2)
        try:
            yield
        finally:
            self.free(handle)

    def _run_out(self, size_bytes: int, stack: _Stack) -> None:
        free = max(0, self._capacity - self.outside_bytes - self._reserved)
        self._history.append({"action": "oom", "device_free": free, "size": size_bytes, "stream": 0,
                              "time_us": int(time.time() * 1e6), "frames": _frames(stack)})  # fmt: skip
        del self._history[:-100]
        for observer in list(self._observers):
            observer(size_bytes, free)
        raise SimulatedOutOfMemoryError(
            f"out of memory: tried to allocate {size_bytes / MIB:.2f} MiB, {free / MIB:.2f} MiB are free of "
            f"{self._capacity / MIB:.0f} MiB; {self._allocated / MIB:.2f} MiB are allocated, "
            f"{(self._reserved - self._allocated) / MIB:.2f} MiB reserved and not allocated"
        )

    def counters(self) -> Counters:
        return Counters(
            self._allocated, self._reserved, self._peak, self._peak_reserved, self._allocated, 0, len(self._live)
        )

    def reset_peak(self) -> None:
        self._peak = self._allocated
        self._peak_reserved = self._reserved

    def device_used_bytes(self) -> Optional[int]:
        return self._reserved + self.outside_bytes

    def capacity_bytes(self) -> Optional[int]:
        return self._capacity

    def empty_cache(self) -> None:
        with self._lock:
            self._reserved = -(-self._allocated // self.SEGMENT) * self.SEGMENT

    def start_stacks(self) -> None:
        with self._lock:
            self._recordings += 1

    def start_trace(self) -> "_Trace":
        trace = _Trace()
        with self._lock:
            self._recordings += 1
            self._traces.append(trace)
        return trace

    def stop_stacks(self) -> None:
        with self._lock:
            self._recordings -= 1

    @property
    def recording(self) -> bool:
        """Whether it remembers where blocks come from."""
        return self._recordings > 0

    def peak_stack(self, since: Any = None) -> Optional[str]:
        with self._lock:
            self._traces.remove(since)
        return "\n".join(f"{file}:{line} in {name}" for name, file, line in since.stack) or None

    def snapshot(self) -> Any:
        """As torch.cuda.memory._snapshot() gives it, of one segment: `vramtrack snapshot` reads it once it is pickled. As with a
        framework's recorder, what was allocated before the recording has no frames. The history has its errors."""
        with self._lock:
            blocks: List[Dict[str, Any]] = []
            frames: Dict[_Stack, List[Dict[str, Any]]] = {(): []}
            at = _FIRST_ADDRESS
            for size, stack in self._live.values():
                if stack not in frames:
                    frames[stack] = _frames(stack)
                if size > 0:
                    blocks.append({"address": at, "size": size, "requested_size": size, "state": "active_allocated",
                                   "frames": frames[stack]})  # fmt: skip
                    at += size
            unused = self._reserved - self._allocated
            if unused > 0:
                blocks.append({"address": at, "size": unused, "requested_size": 0, "state": "inactive", "frames": []})
            segment = {"device": 0, "address": _FIRST_ADDRESS, "total_size": self._reserved, "allocated_size": self._allocated,
                       "active_size": self._allocated, "requested_size": self._allocated, "stream": 0, "segment_type": "large",
                       "segment_pool_id": (0, 0), "is_expandable": True, "frames": [], "blocks": blocks}  # fmt: skip
            return {"segments": [segment] if self._reserved > 0 else [], "device_traces": [list(self._history)],
                    "allocator_settings": dict(self._settings)}  # fmt: skip

    def growing_sites(self, before: Any, after: Any, limit: int = 10) -> List[Site]:
        earlier, later = _by_site(before), _by_site(after)
        grown = [Site(*site, live, live - earlier.get(site, 0)) for site, live in later.items() if live > earlier.get(site, 0)]
        return sorted(grown, key=lambda site: -site.growth_bytes)[:limit]

    def allocator_settings(self) -> Dict[str, str]:
        return dict(self._settings)

    def observe_oom(self, observer: Callable[[int, int], None]) -> Optional[Callable[[], None]]:
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)


_FIRST_ADDRESS = 0x7F0000000000


def _stack_of(frame: Any) -> _Stack:
    stack = []
    while frame is not None and len(stack) < 64:
        stack.append((frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(stack)


def _frames(stack: _Stack) -> List[Dict[str, Any]]:
    return [{"name": name, "filename": file, "line": line} for name, file, line in stack]


def _by_site(snapshot: Any) -> Dict[Tuple[str, str, int], int]:
    """Live bytes by the innermost line; what has none is left together."""
    sites: Dict[Tuple[str, str, int], int] = {}
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                at = block["frames"][0] if block["frames"] else {"name": "(before the recording)", "filename": "", "line": 0}
                site = (at["name"], at["filename"], at["line"])
                sites[site] = sites.get(site, 0) + block["size"]
    return sites


_default: Optional[MemorySource] = None
_default_lock = threading.Lock()


def set_default_source(source: Optional[MemorySource]) -> None:
    """What everything that is given no source reads from here on; None: the CUDA device, as at the beginning."""
    global _default
    with _default_lock:
        _default = source


@contextlib.contextmanager
def use_source(source: MemorySource) -> Iterator[MemorySource]:
    """set_default_source() for the length of a block."""
    before = _default
    set_default_source(source)
    try:
        yield source
    finally:
        set_default_source(before)


def default_source(device: Any = None) -> MemorySource:
    """The source that was set; else `device` (by default the current one) of PyTorch. Imports torch when it is needed."""
    if _default is not None and device is None:
        return _default
    try:
        import torch
    except ImportError:
        raise NoDeviceError(
            "PyTorch cannot be imported, so there is no GPU memory to read; install torch, or give "
            "source=vramtrack.SimulatedDevice() for a test without a GPU"
        ) from None
    if not torch.cuda.is_available():
        raise NoDeviceError(
            "CUDA is not available, so there is no GPU memory to read; run it on a machine with a GPU, or give "
            "source=vramtrack.SimulatedDevice() for a test without one"
        )
    from vramtrack.torch_source import TorchSource

    return TorchSource(device)
