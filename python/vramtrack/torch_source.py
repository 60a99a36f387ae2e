"""The caching allocator of PyTorch on a CUDA device. torch is imported when a TorchSource is made, never before."""
from __future__ import annotations

import os
import pickle
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from vramtrack.driver import DeviceIdentity
from vramtrack.peaks import OpenCalls
from vramtrack.memory_source import Counters, MemorySource, Site


class TorchSource(MemorySource):
    """Reads torch.cuda's counters: host-side, no synchronisation, no CUDA call. One look costs the nested statistics of
    the allocator (tens of microseconds), which is why everything here takes one look and no second one."""

    # PyTorch has one recorder a process, so all sources share what they know of it.
    _recording = threading.Lock()
    _depth = 0
    _not_ours = False
    # And one peak a device.
    _open_calls_of: Dict[int, OpenCalls] = {}

    def __init__(self, device: Any = None) -> None:
        import torch

        self._torch = torch
        self._in_force: Dict[str, Any] = {}
        index = torch.cuda.current_device() if device is None else torch.device(device if not isinstance(device, int) else f"cuda:{device}").index
        self.device_id = torch.cuda.current_device() if index is None else int(index)
        if self.device_id >= torch.cuda.device_count():
            raise ValueError(f"there is no cuda:{self.device_id}: {torch.cuda.device_count()} devices are visible")
        self.name = torch.cuda.get_device_name(self.device_id)
        # The flat memory_stats() sorts some hundred keys; the nested form is the same call without that.
        self._stats = getattr(torch.cuda, "memory_stats_as_nested_dict", None) or torch.cuda.memory.memory_stats_as_nested_dict

    def counters(self) -> Counters:
        stats = self._stats(self.device_id)
        if not stats:  # nothing was allocated yet
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

    def reset_peak(self) -> None:
        self._torch.cuda.reset_peak_memory_stats(self.device_id)

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

    def _record(self, enabled: Optional[str], context: Optional[str]) -> None:
        record = self._torch.cuda.memory._record_memory_history
        try:
            if enabled is None:
                record(enabled=None)
            else:
                record(enabled=enabled, context=context, stacks="python", max_entries=100_000)
        except TypeError:  # PyTorch 2.0: another signature of the same function, where blocks always have their frames
            if enabled == "all":
                record(True, trace_alloc_max_entries=100_000, trace_alloc_record_context=True)
            else:
                record(enabled is not None)

    def _recorded_by_others(self) -> bool:
        enabled = getattr(self._torch._C, "_cuda_isHistoryEnabled", None)
        return bool(enabled()) if enabled is not None else False

    def start_stacks(self) -> None:
        # "state": frames of live blocks only, no trace of events; the cheapest that names lines.
        self._start("state", "state")

    def start_trace(self) -> int:
        """With every event. Returns since when in microseconds, 0: all events there are."""
        now_us = time.time_ns() // 1000
        return 0 if self._start("all", "alloc") else now_us

    def _start(self, enabled: str, context: str) -> bool:
        """Whether recording began with this. Starts may nest, in one another and from several threads: the last stop ends what
        the first start began."""
        cls = TorchSource
        with cls._recording:
            if cls._depth == 0:
                # Whoever had begun to record before goes on recording afterwards, as they want it.
                cls._not_ours = self._recorded_by_others()
                if not cls._not_ours:
                    self._record(enabled, context)
            cls._depth += 1
            return cls._depth == 1 and not cls._not_ours

    def stop_stacks(self) -> None:
        cls = TorchSource
        with cls._recording:
            cls._depth -= 1
            if cls._depth == 0 and not cls._not_ours:
                self._record(None, None)

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
        """The allocator's state, pickled: the C++ reader takes it from there."""
        taken = self._torch.cuda.memory._snapshot()
        self._in_force = dict(taken.get("allocator_settings", {}))  # since 2.2
        return pickle.dumps(taken)

    def growing_sites(self, before: Any, after: Any, limit: int = 10) -> List[Site]:
        from vramtrack.snapshots import growing_sites

        return growing_sites(before, after, limit, self.device_id)

    @property
    def settings_variable(self) -> str:
        """The one that is in use. PyTorch knows the newer name since 2.9, and the older one for ever."""
        known = _version(self._torch) >= (2, 9)
        return "PYTORCH_ALLOC_CONF" if known and os.environ.get("PYTORCH_ALLOC_CONF") else "PYTORCH_CUDA_ALLOC_CONF"

    def allocator_settings(self) -> Dict[str, str]:
        """Of the environment; after a snapshot, which says what is in force, of that: a program can set them as it runs, and
        PyTorch 2.9.1 passes over expandable_segments in the newer variable."""
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
        if attach is None:
            return None
        on = [True]
        # It cannot be detached: one that is switched off stays, and does nothing.
        # Called for every device of the process: another's is another watch's.
        attach(
            lambda device, asked, device_allocated, device_free: observer(asked, device_free)
            if on[0] and device == self.device_id
            else None
        )
        return lambda: on.__setitem__(0, False)


def _version(torch: Any) -> Tuple[int, ...]:
    """(2, 9) of "2.9.1+cu128"; an unknown one is new."""
    parts = str(getattr(torch, "__version__", "99.0")).split(".")[:2]
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def parse_alloc_conf(text: str) -> Dict[str, str]:
    """PYTORCH_CUDA_ALLOC_CONF as a dictionary. Commas within brackets belong to a value."""
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
