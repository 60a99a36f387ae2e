"""GPUMemoryProfiler: the effect of each call of a function on GPU memory."""
from __future__ import annotations

import contextlib
import functools
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, TypeVar

from vramtrack.html_table import table
from vramtrack.memory_source import Counters, MemorySource
from vramtrack.printable import printable
from vramtrack.sources import default_source
from vramtrack.units import format_change, format_size

_F = TypeVar("_F", bound=Callable[..., Any])
_now = time.time
_clock = time.perf_counter
_SHOWN_FUNCTIONS = 20  # in a notebook


@dataclass
class MemorySnapshot:
    """The allocator's counters at one moment. Sizes are bytes; `timestamp` is seconds since 1970."""

    timestamp: float
    allocated_memory: int
    reserved_memory: int
    max_memory_allocated: int = 0
    max_memory_reserved: int = 0
    active_memory: int = 0
    inactive_memory: int = 0
    cpu_memory: int = 0
    device_id: int = 0
    operation: Optional[str] = None
    stack_trace: Optional[str] = None

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)


def _snapshot(timestamp: float, counters: Counters, device_id: int, cpu: int, operation: Optional[str]) -> MemorySnapshot:
    return MemorySnapshot(
        timestamp,
        counters.allocated,
        counters.reserved,
        counters.peak_allocated,
        counters.peak_reserved,
        counters.active,
        counters.inactive_split,
        cpu,
        device_id,
        operation,
    )


class ProfileResult:
    """The result of one call. memory_allocated is its peak over its start, memory_freed its peak over its end, so the former minus the
    latter is memory_diff(). Without peaks (track_peak=False), they are the memory kept and the memory released. The snapshots are created
    from the raw counters on first use, because most are never used."""

    __slots__ = (
        "function_name", "execution_time", "memory_allocated", "memory_freed", "call_count", "failed",
        "_time", "_before", "_after", "_device", "_cpu", "_stack", "_snapshots",
    )  # fmt: skip

    def __init__(
        self,
        function_name: str,
        execution_time: float,
        memory_before: MemorySnapshot,
        memory_after: MemorySnapshot,
        memory_peak: MemorySnapshot,
        memory_allocated: Optional[int] = None,
        memory_freed: Optional[int] = None,
        tensors_created: int = 0,
        tensors_deleted: int = 0,
        call_count: int = 1,
    ) -> None:
        start, end = memory_before.allocated_memory, memory_after.allocated_memory
        peak = max(memory_peak.allocated_memory, start, end)
        self.function_name = printable(function_name)
        self.execution_time = execution_time
        self.memory_allocated = peak - start if memory_allocated is None else memory_allocated
        self.memory_freed = peak - end if memory_freed is None else memory_freed
        self.call_count = call_count
        self.failed = False
        self._time = memory_before.timestamp
        self._before = _counters(memory_before, 0)
        self._after = _counters(memory_after, tensors_created - tensors_deleted)
        self._device = memory_before.device_id
        self._cpu = 0
        self._stack = memory_peak.stack_trace
        self._snapshots = (memory_before, memory_after, memory_peak)

    @property
    def memory_before(self) -> MemorySnapshot:
        return self._made()[0]

    @property
    def memory_after(self) -> MemorySnapshot:
        return self._made()[1]

    @property
    def memory_peak(self) -> MemorySnapshot:
        """The peak within the call. `stack_trace` is the stack of the allocation that reached it, if stacks are collected."""
        return self._made()[2]

    @property
    def tensors_created(self) -> int:
        """The increase in the number of live blocks."""
        return max(0, self._after.allocations - self._before.allocations)

    @property
    def tensors_deleted(self) -> int:
        return max(0, self._before.allocations - self._after.allocations)

    def memory_diff(self) -> int:
        """Bytes that the call allocated and did not free. Negative if it freed more than it allocated."""
        return self._after.allocated - self._before.allocated

    @property
    def memory_kept(self) -> int:
        """The memory that the call allocated and kept: memory_diff() if it is above 0."""
        return max(0, self.memory_diff())

    @property
    def memory_released(self) -> int:
        """The memory in use before the call that the call released."""
        return max(0, -self.memory_diff())

    def peak_memory_usage(self) -> int:
        """Allocated bytes at the call's peak."""
        return self._made()[2].allocated_memory if self._snapshots is not None else self._after.peak_allocated

    def _made(self) -> Any:
        if self._snapshots is None:
            name, end = self.function_name, self._time + self.execution_time
            suffix = "_error" if self.failed else ""
            after = self._after
            before = _snapshot(self._time, self._before, self._device, self._cpu, "before_" + name)
            last = _snapshot(end, after, self._device, self._cpu, "after_" + name + suffix)
            peak = _snapshot(end, after, self._device, self._cpu, "peak_" + name + suffix)
            peak.allocated_memory, peak.reserved_memory = after.peak_allocated, after.peak_reserved
            before.stack_trace = last.stack_trace = None
            peak.stack_trace = self._stack
            self._snapshots = (before, last, peak)
        return self._snapshots

    def to_dict(self) -> Dict[str, Any]:
        return {
            "function_name": self.function_name,
            "execution_time": self.execution_time,
            "memory_before": self.memory_before.to_dict(),
            "memory_after": self.memory_after.to_dict(),
            "memory_peak": self.memory_peak.to_dict(),
            "memory_allocated": self.memory_allocated,
            "memory_freed": self.memory_freed,
            "memory_diff": self.memory_diff(),
            "peak_memory_usage": self.peak_memory_usage(),
            "tensors_created": self.tensors_created,
            "tensors_deleted": self.tensors_deleted,
            "call_count": self.call_count,
        }

    def __repr__(self) -> str:
        return f"<ProfileResult {self.function_name}: {format_change(self.memory_diff())} in {self.execution_time:.6f} s>"


def _counters(snapshot: MemorySnapshot, allocations: int) -> Counters:
    return Counters(
        snapshot.allocated_memory,
        snapshot.reserved_memory,
        snapshot.max_memory_allocated,
        snapshot.max_memory_reserved,
        snapshot.active_memory,
        snapshot.inactive_memory,
        allocations,
    )


_new_result = ProfileResult.__new__


def _host_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * 4096


class GPUMemoryProfiler:
    """Profiles calls and blocks. Each call reads the allocator's counters twice, which takes a few microseconds.

    device               a CUDA device; default: the source that vramtrack.use_source() has set, else the current device
    track_tensors        has no effect and exists for compatibility: the allocator's counters include the counts
    track_cpu_memory     True: records this process's resident memory at each call (a few microseconds)
    collect_stack_traces True: records where the peak of each call was allocated (slow: the allocator records every event)
    max_snapshots        how many snapshots monitoring keeps: the last ones. ValueError: less than 1
    track_peak           True: resets the allocator's peak at the beginning of each call. Your own max_memory_allocated() is affected.
                         False: the peak of a call is the peak so far
    synchronize          True: waits for the GPU before and after each call, so that execution_time includes the GPU's work. Memory
                         figures do not need it
    max_results          when this many results exist, the oldest half is dropped

    Profiled calls may nest and overlap, also across profilers. Each has its own peak, unless the program itself calls
    reset_peak_memory_stats() during the call. profile_function() returns the ProfileResult and drops the function's return value;
    decorate the function to keep both. Thread-safe, but calls that overlap in time see each other's memory.
    """

    def __init__(
        self,
        device: Any = None,
        track_tensors: bool = True,
        track_cpu_memory: bool = False,
        collect_stack_traces: bool = False,
        max_snapshots: int = 100_000,
        *,
        source: Optional[MemorySource] = None,
        track_peak: bool = True,
        synchronize: bool = False,
        max_results: int = 1_000_000,
    ) -> None:
        if max_snapshots < 1:
            raise ValueError(f"max_snapshots must be >= 1, not {max_snapshots}")
        self.source = source if source is not None else default_source(device)
        self._open_calls = self.source.open_calls
        #: torch.device for a CUDA device; otherwise an object with the same `type` and `index`
        self.device = self.source.device
        self.track_tensors = track_tensors
        self.track_cpu_memory = track_cpu_memory
        self.collect_stack_traces = collect_stack_traces
        self.track_peak = track_peak
        self.synchronize = synchronize
        self.max_snapshots = max_snapshots
        self.max_results = max(2, max_results)
        self.results: List[ProfileResult] = []
        self.snapshots: List[MemorySnapshot] = []
        self.dropped_results = 0
        self._monitor: Optional[threading.Thread] = None
        self._monitor_end = threading.Event()
        self._baseline_snapshot = self._take_snapshot("baseline")

    @property
    def function_stats(self) -> Dict[str, List[ProfileResult]]:
        """The results grouped by function."""
        by_function: Dict[str, List[ProfileResult]] = {}
        for result in self.results:
            by_function.setdefault(result.function_name, []).append(result)
        return by_function

    def profile_function(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> ProfileResult:
        """Calls func(*args, **kwargs) and returns the ProfileResult. An exception is recorded and raised again."""
        name = printable(getattr(func, "__name__", None) or str(func))
        if self.synchronize or self.collect_stack_traces or self.track_cpu_memory:
            with self._profiled(name) as result:
                func(*args, **kwargs)
            return result
        source = self.source
        open_calls = self._open_calls
        call = open_calls.begin(source, self.track_peak)
        started = _now()
        before = source.counters()
        begin = _clock()
        failed = True
        try:
            func(*args, **kwargs)
            failed = False
        finally:
            seconds = _clock() - begin
            result = self._keep(name, seconds, started, before, open_calls.end(source, call), failed)
        return result

    def _keep(self, name: str, seconds: float, started: float, before: Counters, after: Counters, failed: bool,
              result: Optional[ProfileResult] = None) -> ProfileResult:
        if result is None:
            result = _new_result(ProfileResult)
        difference = after[0] - before[0]
        # Counters: 0 is allocated, 2 is peak_allocated.
        peak = max(after[2], before[0], after[0]) if self.track_peak else max(before[0], after[0])
        result.function_name = name
        result.execution_time = seconds
        result.memory_allocated = peak - before[0]
        result.memory_freed = result.memory_allocated - difference
        result.call_count = 1
        result.failed = failed
        result._time = started
        result._before = before
        result._after = after
        result._device = self.source.device_id
        result._cpu = 0
        result._stack = None
        result._snapshots = None
        results = self.results
        results.append(result)
        if len(results) >= self.max_results:
            dropped = len(results) // 2
            del results[:dropped]
            self.dropped_results += dropped
        return result

    @contextlib.contextmanager
    def _profiled(self, name: str) -> Iterator[ProfileResult]:
        name = printable(name)
        source = self.source
        trace = source.start_trace() if self.collect_stack_traces else None
        if self.synchronize:
            source.synchronize()
        call = self._open_calls.begin(source, self.track_peak)
        started = _now()
        before = source.counters()
        # The result is returned before the block runs and filled when it ends.
        result: ProfileResult = _new_result(ProfileResult)
        failed = True
        begin = _clock()
        try:
            yield result
            failed = False
        finally:
            if self.synchronize:
                source.synchronize()
            seconds = _clock() - begin
            self._keep(name, seconds, started, before, self._open_calls.end(source, call), failed, result)
            if self.collect_stack_traces:
                result._stack = source.peak_stack(trace)
                source.stop_stacks()
            if self.track_cpu_memory:
                result._cpu = _host_bytes()

    def profile_context(self, name: str = "context") -> Any:
        """Profiles a block as one result: `with profiler.profile_context("load"):`."""
        return self._profiled(name)

    def profile(self, func: _F) -> _F:
        """A decorator that records a result for every call. The function returns its usual value."""

        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            returned: List[Any] = []
            name = getattr(func, "__name__", None) or str(func)

            def call() -> None:
                returned.append(func(*args, **kwargs))

            call.__name__ = name
            self.profile_function(call)
            return returned.pop()

        return wrapped  # type: ignore[return-value]

    __call__ = profile

    def _repr_html_(self) -> str:
        """In a notebook: each function's calls, the memory they kept, and their highest peak; those that kept most first."""
        kept = {name: sum(one.memory_diff() for one in results) for name, results in self.function_stats.items()}
        stats = sorted(self.function_stats.items(), key=lambda item: -kept[item[0]])
        rows = [(name, f"{len(results):,}", format_change(kept[name]), format_size(max(one.memory_allocated for one in results)),
                 f"{sum(one.execution_time for one in results):,.3f} s") for name, results in stats[:_SHOWN_FUNCTIONS]]
        notes = [f"and {len(stats) - _SHOWN_FUNCTIONS:,} more functions"] if len(stats) > _SHOWN_FUNCTIONS else []
        if self.dropped_results:
            notes.append(f"{self.dropped_results:,} older results were dropped (max_results)")
        return table(f"{len(self.results):,} profiled calls on {self.device}", ("function", "calls", "kept", "highest peak", "time"), rows, notes)

    def clear_results(self) -> None:
        """Drops all results and makes the memory in use now the new baseline."""
        self.results.clear()
        self.snapshots.clear()
        self.dropped_results = 0
        if self.track_peak:
            self._open_calls.reset(self.source)
        self._baseline_snapshot = self._take_snapshot("new_baseline")

    @property
    def _monitoring(self) -> bool:
        return self._monitor is not None

    def _take_snapshot(self, operation: Optional[str] = None) -> MemorySnapshot:
        cpu = _host_bytes() if self.track_cpu_memory else 0
        return _snapshot(_now(), self.source.counters(), self.source.device_id, cpu, operation)

    def start_monitoring(self, interval: float = 0.1) -> None:
        """Starts a thread that adds a snapshot to `snapshots` every `interval` seconds. The last `max_snapshots` are kept."""
        if self._monitor is not None:
            return
        self._monitor_end.clear()

        def run() -> None:
            while not self._monitor_end.wait(interval):
                self.snapshots.append(_snapshot(_now(), self.source.counters(), self.source.device_id, 0, "monitor"))
                del self.snapshots[: -self.max_snapshots]

        self._monitor = threading.Thread(target=run, name="vramtrack-profiler", daemon=True)
        self._monitor.start()

    def stop_monitoring(self) -> None:
        if self._monitor is not None:
            self._monitor_end.set()
            self._monitor.join()
            self._monitor = None

    def get_summary(self) -> Dict[str, Any]:
        """Totals, and one line per function."""
        if not self.results:
            return {"message": "No profiling results available"}
        functions = {}
        for name, results in self.function_stats.items():
            time_s = sum(r.execution_time for r in results)
            allocated = sum(r.memory_allocated for r in results)
            functions[name] = {
                "call_count": len(results),
                "total_time": time_s,
                "avg_time": time_s / len(results),
                "total_memory_allocated": allocated,
                "avg_memory_allocated": allocated / len(results),
                "peak_memory": max(r.peak_memory_usage() for r in results),
            }
        allocated = sum(r.memory_allocated for r in self.results)
        freed = sum(r.memory_freed for r in self.results)
        current = self.source.counters().allocated
        return {
            "device": printable(str(self.device)),
            "total_functions_profiled": len(functions),
            "total_function_calls": len(self.results),
            "total_execution_time": sum(r.execution_time for r in self.results),
            "total_memory_allocated": allocated,
            "total_memory_freed": freed,
            "net_memory_change": allocated - freed,
            "peak_memory_usage": max(r.peak_memory_usage() for r in self.results),
            "current_memory_usage": current,
            "baseline_memory_usage": self._baseline_snapshot.allocated_memory,
            "memory_change_from_baseline": current - self._baseline_snapshot.allocated_memory,
            "function_summaries": functions,
            "monitoring_active": self._monitor is not None,
            "snapshots_collected": len(self.snapshots),
        }

    def __enter__(self) -> "GPUMemoryProfiler":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop_monitoring()


_global: Optional[GPUMemoryProfiler] = None


def get_global_profiler(device: Any = None) -> GPUMemoryProfiler:
    """The profiler that the module's decorator and context manager use. It is created on first use, on `device`."""
    global _global
    if _global is None:
        _global = GPUMemoryProfiler(device)
    return _global


def set_global_profiler(profiler: Optional[GPUMemoryProfiler]) -> None:
    global _global
    _global = profiler


def profile_function(
    func: Any = None, *, name: Optional[str] = None, device: Any = None, profiler: Optional[GPUMemoryProfiler] = None
) -> Any:
    """A decorator for the global profiler: `@profile_function` or `@profile_function(name="step")`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        label = name or getattr(function, "__name__", str(function))

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            returned: List[Any] = []

            def call() -> None:
                returned.append(function(*args, **kwargs))

            call.__name__ = label
            (profiler or get_global_profiler(device)).profile_function(call)
            return returned.pop()

        wrapped._is_profiled, wrapped._profile_name = True, str(label)  # type: ignore[attr-defined]
        return wrapped

    return decorate if func is None else decorate(func)


@contextlib.contextmanager
def profile_context(
    name: str = "context", device: Any = None, profiler: Optional[GPUMemoryProfiler] = None
) -> Iterator[GPUMemoryProfiler]:
    """Profiles a block with the global profiler: `with profile_context("forward") as profiler:`."""
    used = profiler or get_global_profiler(device)
    with used.profile_context(name):
        yield used
