"""PyTorch's caching allocator on a CUDA device. Only creating a TorchSource imports torch."""
from __future__ import annotations

import os
import pickle
import time
import traceback
from typing import Any, Callable, Dict, List, Optional, Tuple

from vramtrack.driver import DeviceIdentity
from vramtrack.memory_source import Counters, MemorySource, Pool, Site
from vramtrack.peaks import OpenCalls
from vramtrack.recorder import Recorder
from vramtrack.snapshots import growing_sites


_LAST_EVENTS = 64  # the error is the last event, or other threads have added a few


class TorchSource(MemorySource):
    """Reads torch.cuda's counters on the host, without synchronisation or CUDA calls. One look takes tens of microseconds (the
    allocator's nested statistics), so every method here takes only one."""

    # PyTorch has one peak per device.
    _open_calls_of: Dict[int, OpenCalls] = {}

    def __init__(self, device: Any = None) -> None:
        import torch

        self._torch = torch
        self._recorder = Recorder(torch)
        self._in_force: Dict[str, Any] = {}
        self._limit: Optional[int] = None  # from the last out-of-memory error
        index = _index_of(device, torch)
        self.device_id = torch.cuda.current_device() if index is None else int(index)
        if self.device_id >= torch.cuda.device_count():
            raise ValueError(f"cuda:{self.device_id} does not exist: {torch.cuda.device_count()} devices are visible")
        self.name = torch.cuda.get_device_name(self.device_id)
        # The flat memory_stats() sorts about a hundred keys; the nested form is the same call without sorting.
        self._stats = getattr(torch.cuda, "memory_stats_as_nested_dict", None) or torch.cuda.memory.memory_stats_as_nested_dict

    @property
    def device(self) -> Any:
        return self._torch.device(f"cuda:{self.device_id}")

    def counters(self) -> Counters:
        """All 0 if the allocator counts nothing: PYTORCH_NO_CUDA_MEMORY_CACHING=1, and pluggable allocators."""
        try:
            stats = self._stats(self.device_id)
        except RuntimeError:  # "CUDAPluggableAllocator does not yet support getDeviceStats"
            if not self._is_pluggable():
                raise
            stats = {}
        if not stats:  # nothing has been allocated yet
            return Counters(0, 0, 0, 0, 0, 0, 0)
        allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
        return Counters(
            allocated["current"],
            reserved["current"],
            allocated["peak"],
            reserved["peak"],
            stats["active_bytes"]["all"]["current"],
            stats["inactive_split_bytes"]["all"]["current"],
            stats["allocation"]["all"]["current"],
        )

    def _is_pluggable(self) -> bool:
        backend = getattr(self._torch.cuda, "get_allocator_backend", None)
        return backend is not None and backend() == "pluggable"

    def reset_peak(self) -> None:
        try:
            self._torch.cuda.reset_peak_memory_stats(self.device_id)
        except RuntimeError:
            if not self._is_pluggable():
                raise

    @property
    def open_calls(self) -> OpenCalls:
        return TorchSource._open_calls_of.setdefault(self.device_id, OpenCalls())

    def device_used_bytes(self) -> Optional[int]:
        info = getattr(self._torch.cuda, "mem_get_info", None)
        if info is None:
            return None
        free, total = info(self.device_id)
        return int(total - free)

    def capacity_bytes(self) -> Optional[int]:
        return int(self._torch.cuda.get_device_properties(self.device_id).total_memory)

    def limit_bytes(self) -> Optional[int]:
        """The limit from set_per_process_memory_fraction(). PyTorch versions that cannot report the fraction reveal it with the first
        out-of-memory error that observe_oom() sees."""
        fraction = getattr(self._torch.cuda, "get_per_process_memory_fraction", None)
        if fraction is None:
            return self._limit
        # PyTorch 2.6 makes the queried device the current one of this thread.
        current = self._torch.cuda.current_device()
        try:
            share, total = float(fraction(self.device_id)), self.capacity_bytes()
        except RuntimeError:  # "CUDAPluggableAllocator does not yet support getMemoryFraction"
            if not self._is_pluggable():
                raise
            return None
        if self._torch.cuda.current_device() != current:
            self._torch.cuda.set_device(current)
        return int(share * total) if share < 1.0 and total is not None else None

    def host_pinned_bytes(self) -> Optional[int]:
        stats = getattr(self._torch.cuda, "host_memory_stats_as_nested_dict", None)
        if stats is None:  # an older version
            return None
        try:
            pinned = (stats() or {}).get("allocated_bytes", {}).get("current")
        except RuntimeError:  # an allocator that does not count
            return None
        return None if pinned is None else int(pinned)

    def pools(self) -> List[Pool]:
        snapshot = getattr(self._torch.cuda, "memory_snapshot", None)
        if snapshot is None:
            return []
        try:
            try:
                segments = snapshot(include_traces=False)
            except TypeError:  # older versions have no such argument
                segments = snapshot()
        except RuntimeError:  # "CUDAPluggableAllocator does not yet support snapshot"
            if not self._is_pluggable():
                raise
            return []
        return _private_pools(segments, self.device_id)

    def identity(self) -> DeviceIdentity:
        properties = self._torch.cuda.get_device_properties(self.device_id)
        uuid = getattr(properties, "uuid", None)  # since 2.4
        pci = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]  # since 2.9
        return DeviceIdentity(
            self.device_id,
            self._torch.cuda.device_count(),
            self.name,
            None if uuid is None else str(uuid),
            None if None in pci else "{:08x}:{:02x}:{:02x}.0".format(*pci),
        )

    def synchronize(self) -> None:
        self._torch.cuda.synchronize(self.device_id)

    def empty_cache(self) -> None:
        self._torch.cuda.empty_cache()

    def start_stacks(self) -> None:
        # "state": frames of live blocks only, no trace of events; the cheapest that names lines.
        self._recorder.start("state", "state")

    def start_trace(self) -> int:
        """Records every event. Returns the start in microseconds, or 0 if all existing events belong to this trace."""
        now_us = time.time_ns() // 1000
        return 0 if self._recorder.start("all", "alloc") else now_us

    def stop_stacks(self) -> None:
        self._recorder.stop()

    def peak_stack(self, since: Any = 0) -> Optional[str]:
        traces = self._torch.cuda.memory._snapshot().get("device_traces", [])
        events = traces[self.device_id] if self.device_id < len(traces) else []
        live = peak = 0
        stack = None
        for event in events:
            if event.get("time_us", since) < since:
                continue
            if event["action"] == "alloc":
                live += event["size"]
                if live > peak:
                    peak, stack = live, event.get("frames")
            elif event["action"] == "free_completed":
                live -= event["size"]
        if not stack:
            return None
        return "\n".join(f"{frame['filename']}:{frame['line']} in {frame['name']}" for frame in stack)

    def snapshot(self) -> bytes:
        """The allocator's state as a pickle for the C++ reader."""
        taken = self._torch.cuda.memory._snapshot()
        self._in_force = dict(taken.get("allocator_settings", {}))  # since 2.2
        return pickle.dumps(taken)

    def snapshot_at_oom(self, asked_bytes: int, free_bytes: int) -> Dict[str, Any]:
        """The data that snapshot() pickles, with the out-of-memory error in the history, which PyTorch itself adds only while recording."""
        taken = self._torch.cuda.memory._snapshot()
        traces = taken.setdefault("device_traces", [])
        while len(traces) <= self.device_id:
            traces.append([])
        mine = traces[self.device_id]
        if not any(event.get("action") == "oom" for event in mine[-_LAST_EVENTS:]):
            mine.append({"action": "oom", "addr": free_bytes, "device_free": free_bytes, "size": asked_bytes, "stream": 0,
                         "time_us": time.time_ns() // 1000, "frames": _frames_of_the_program()})  # fmt: skip
        return dict(taken)

    def growing_sites(self, before: Any, after: Any, limit: int = 10) -> List[Site]:
        return growing_sites(before, after, limit, self.device_id)

    @property
    def settings_variable(self) -> str:
        """The variable in use. PyTorch 2.9 introduced a new name and still accepts the old one."""
        known = _version(self._torch) >= (2, 9)
        return "PYTORCH_ALLOC_CONF" if known and os.environ.get("PYTORCH_ALLOC_CONF") else "PYTORCH_CUDA_ALLOC_CONF"

    def allocator_settings(self) -> Dict[str, str]:
        """The settings in force, from the last snapshot, otherwise those in the environment. They can differ: a program can change settings
        while it runs, and PyTorch 2.9.1 ignores expandable_segments in the new variable."""
        text = self._in_force.get("PYTORCH_CUDA_ALLOC_CONF") or os.environ.get(self.settings_variable, "")
        settings = parse_alloc_conf(text)
        if "expandable_segments" in self._in_force:
            expandable = bool(self._in_force["expandable_segments"])
            if expandable or "expandable_segments" in settings:
                settings["expandable_segments"] = str(expandable)
        return settings

    def observe_oom(self, observer: Callable[[int, int], None]) -> Optional[Callable[[], None]]:
        attach = getattr(self._torch._C, "_cuda_attach_out_of_memory_observer", None) or getattr(
            self._torch._C, "_cuda_attachOutOfMemoryObserver", None
        )
        # PyTorch 2.1 gives the observer to the first device and an empty function to the others, which then raise "bad_function_call"
        # instead of the out-of-memory error. 2.4 does not; the versions between were not tried.
        if attach is None or (_version(self._torch) < (2, 4) and self._torch.cuda.device_count() > 1):
            return None
        on = [True]
        # PyTorch cannot detach an observer: a disabled one stays and does nothing.
        # It is called for every device of the process; other devices belong to other watches.
        total = self.capacity_bytes()

        def called(device: int, asked: int, allowed: int, device_free: int) -> None:
            if on[0] and device == self.device_id:
                # `allowed` is the device's size if the process may use all of it.
                self._limit = allowed if total is not None and 0 < allowed < total else None
                observer(asked, device_free)

        attach(called)
        return lambda: on.__setitem__(0, False)


def _frames_of_the_program() -> List[Dict[str, Any]]:
    """The Python frames of this thread without our own, innermost first."""
    frames = [frame for frame in traceback.extract_stack() if os.path.dirname(frame.filename) != os.path.dirname(__file__)]
    return [{"name": frame.name, "filename": frame.filename, "line": frame.lineno or 0} for frame in reversed(frames)]


def _private_pools(segments: List[Dict[str, Any]], device: int) -> List[Pool]:
    sizes: Dict[Tuple[int, int], List[int]] = {}
    for segment in segments:
        first, second = segment.get("segment_pool_id", (0, 0))
        if segment.get("device") == device and (first, second) != (0, 0):
            size = sizes.setdefault((int(first), int(second)), [0, 0])
            size[0] += int(segment["total_size"])
            size[1] += int(segment["allocated_size"])
    return sorted((Pool(pool, *size) for pool, size in sizes.items()), key=lambda pool: -pool.reserved_bytes)


def _index_of(device: Any, torch: Any) -> Optional[int]:
    """The number of a CUDA device given as a number, a name or a torch.device. None: the current one. ValueError: it is not one."""
    if device is None:
        return None
    if isinstance(device, int) and not isinstance(device, bool):
        if device < 0:
            raise ValueError(f"cuda:{device} does not exist; devices count from 0")
        return device
    try:
        known = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"{device!r} is not a device: {str(error).splitlines()[0]}") from None
    kind = getattr(known, "type", "cuda")
    if kind != "cuda":
        raise ValueError(f"{device!r} is a device of type {kind}; expected a CUDA device, for example \"cuda:0\"")
    return None if known.index is None else int(known.index)


def _version(torch: Any) -> Tuple[int, ...]:
    """(2, 9) for "2.9.1+cu128". An unknown version counts as new."""
    parts = str(getattr(torch, "__version__", "99.0")).split(".")[:2]
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def parse_alloc_conf(text: str) -> Dict[str, str]:
    """PYTORCH_CUDA_ALLOC_CONF as a dictionary. Commas in brackets are part of a value."""
    settings: Dict[str, str] = {}
    depth, part = 0, ""
    for char in text + ",":
        depth += (char == "[") - (char == "]")
        if char == "," and depth <= 0:
            key, _, value = part.partition(":")
            if key.strip():
                settings[key.strip()] = value.strip()
            part = ""
        else:
            part += char
    return settings
