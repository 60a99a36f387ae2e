"""SimulatedDevice: a GPU controlled by a test, for machines without one."""
from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from vramtrack.errors import SimulatedOutOfMemoryError
from vramtrack.memory_source import Counters, MemorySource, Site
from vramtrack.units import GIB, MIB, format_size

_Stack = Tuple[Tuple[str, str, int], ...]  # (function, file, line), innermost first


class _Trace:
    """The peak of allocated memory since the trace began, and the stack that reached it."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self.stack: _Stack = ()


class SimulatedDevice(MemorySource):
    """A simulated GPU for tests without one: a caching allocator with 2 MiB segments that records sites.

    `allocate` and `free` change the same counters as a framework's allocator. Thread-safe.
    """

    SEGMENT = 2 * MIB

    def __init__(self, capacity_bytes: int = 24 * GIB, name: str = "simulated device") -> None:
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
        #: bytes used on the device outside this allocator: contexts, libraries, other processes
        self.outside_bytes = 0
        #: the most that this allocator may reserve, as after set_per_process_memory_fraction(); None: the whole device
        self.allowed_bytes: Optional[int] = None
        #: host memory that counts as pinned; None: it is not counted
        self.pinned_bytes: Optional[int] = None

    def allocate(self, size_bytes: int, depth: int = 0) -> int:
        """Allocates memory and returns a handle for free(). The site is the caller's line, or that of a caller `depth` frames up."""
        size_bytes = int(size_bytes)
        if size_bytes < 0:
            raise ValueError(f"cannot allocate {size_bytes} bytes")
        frame = sys._getframe(1 + depth)
        with self._lock:
            needed = self._allocated + size_bytes
            if needed > self._reserved:
                reserved = -(-needed // self.SEGMENT) * self.SEGMENT
                allowed = self._capacity if self.allowed_bytes is None else self.allowed_bytes
                if reserved + self.outside_bytes > self._capacity or reserved > allowed:
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
        """Frees the block. The allocator keeps the memory in its cache."""
        with self._lock:
            self._allocated -= self._live.pop(handle)[0]

    @contextlib.contextmanager
    def temporary(self, size_bytes: int) -> Iterator[None]:
        """Allocates memory for the duration of a `with` block."""
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
            f"out of memory: tried to allocate {format_size(size_bytes)}; {format_size(free)} of "
            f"{format_size(self._capacity)} are free; {format_size(self._allocated)} are allocated, "
            f"{format_size(self._reserved - self._allocated)} are reserved but not allocated"
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

    def limit_bytes(self) -> Optional[int]:
        return self.allowed_bytes if self.allowed_bytes is not None and self.allowed_bytes < self._capacity else None

    def host_pinned_bytes(self) -> Optional[int]:
        return self.pinned_bytes

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
        """Whether it records where blocks are allocated."""
        return self._recordings > 0

    def peak_stack(self, since: Any = None) -> Optional[str]:
        with self._lock:
            self._traces.remove(since)
        return "\n".join(f"{file}:{line} in {name}" for name, file, line in since.stack) or None

    def snapshot(self) -> Any:
        """One segment in the form of torch.cuda.memory._snapshot(). `vramtrack snapshot` reads it from a pickle file. Blocks allocated
        before recording began have no frames, as in PyTorch. The history includes the out-of-memory errors."""
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
    """Live bytes by the innermost line. Blocks without frames are counted together."""
    sites: Dict[Tuple[str, str, int], int] = {}
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                at = block["frames"][0] if block["frames"] else {"name": "(before the recording)", "filename": "", "line": 0}
                site = (at["name"], at["filename"], at["line"])
                sites[site] = sites.get(site, 0) + block["size"]
    return sites
