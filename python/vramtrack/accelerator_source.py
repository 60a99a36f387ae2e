"""PyTorch's caching allocator on a device other than CUDA: Intel's (torch.xpu), otherwise the one that torch.accelerator names. Not run on
hardware: tested with a stand-in that has the same functions."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from vramtrack.errors import NoDeviceError
from vramtrack.memory_source import Counters, MemorySource
from vramtrack.peaks import OpenCalls

#: Functions with different names: in torch.xpu, and in torch.accelerator.
_NAMES = {
    "current": ("current_device", "current_device_index"),
    "info": ("mem_get_info", "get_memory_info"),
}


def accelerator_of(torch: Any) -> Optional[Tuple[str, Any]]:
    """The type of the accelerator and the module with its functions. None: there is no accelerator with an allocator that has counters."""
    xpu = getattr(torch, "xpu", None)
    if xpu is not None and xpu.is_available() and hasattr(xpu, "memory_stats"):
        return "xpu", xpu
    general = getattr(torch, "accelerator", None)
    if general is None or not general.is_available() or not hasattr(general, "memory_stats"):
        return None
    current = general.current_accelerator()
    return None if current is None or current.type == "cuda" else (current.type, general)


class AcceleratorSource(MemorySource):
    """Reads the counters that torch.xpu and torch.accelerator share with torch.cuda. It has no process figures from the driver, no lines,
    and no observer of out-of-memory errors. NoDeviceError: there is no such device; ValueError: `device` is of another kind."""

    # PyTorch has one peak per device.
    _open_calls_of: Dict[Tuple[str, int], OpenCalls] = {}

    def __init__(self, device: Any = None) -> None:
        import torch

        found = accelerator_of(torch)
        if found is None:
            raise NoDeviceError("PyTorch has no accelerator whose memory can be read")
        self._torch = torch
        self.kind, self._module = found
        index = self._index_of(device)
        self.device_id = int(self._function("current")()) if index is None else index
        count = int(self._module.device_count())
        if not 0 <= self.device_id < count:
            raise ValueError(f"{self.kind}:{self.device_id} does not exist: {count} devices are visible")
        name = getattr(self._module, "get_device_name", None)
        self.name = str(name(self.device_id)) if name is not None else self.kind

    def _index_of(self, device: Any) -> Optional[int]:
        if device is None or (isinstance(device, int) and not isinstance(device, bool)):
            return device
        try:
            known = self._torch.device(device)
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"{device!r} is not a device: {str(error).splitlines()[0]}") from None
        if known.type != self.kind:
            raise ValueError(f"{device!r} is a device of type {known.type}; expected one of type {self.kind}, for example \"{self.kind}:0\"")
        return None if known.index is None else int(known.index)

    def _function(self, what: str) -> Any:
        return next((getattr(self._module, name) for name in _NAMES[what] if hasattr(self._module, name)), None)

    @property
    def device(self) -> Any:
        return self._torch.device(f"{self.kind}:{self.device_id}")

    def counters(self) -> Counters:
        stats = self._module.memory_stats(self.device_id)

        def read(name: str, of: str = "current") -> int:
            return int(stats.get(f"{name}.all.{of}", 0))

        return Counters(
            read("allocated_bytes"),
            read("reserved_bytes"),
            read("allocated_bytes", "peak"),
            read("reserved_bytes", "peak"),
            read("active_bytes"),
            read("inactive_split_bytes"),
            read("allocation"),
        )

    def reset_peak(self) -> None:
        self._module.reset_peak_memory_stats(self.device_id)

    @property
    def open_calls(self) -> OpenCalls:
        return AcceleratorSource._open_calls_of.setdefault((self.kind, self.device_id), OpenCalls())

    def _free_and_total(self) -> Optional[Tuple[int, int]]:
        info = self._function("info")
        if info is None:
            return None
        try:
            free, total = info(self.device_id)
        except (RuntimeError, NotImplementedError):  # some devices and drivers do not report free memory
            return None
        return int(free), int(total)

    def device_used_bytes(self) -> Optional[int]:
        info = self._free_and_total()
        return None if info is None else info[1] - info[0]

    def capacity_bytes(self) -> Optional[int]:
        properties = getattr(self._module, "get_device_properties", None)
        if properties is not None:
            return int(properties(self.device_id).total_memory)
        info = self._free_and_total()
        return None if info is None else info[1]

    def limit_bytes(self) -> Optional[int]:
        fraction = getattr(self._module, "get_per_process_memory_fraction", None)
        share, total = 1.0 if fraction is None else float(fraction(self.device_id)), self.capacity_bytes()
        return int(share * total) if share < 1.0 and total is not None else None

    def synchronize(self) -> None:
        self._module.synchronize(self.device_id)

    def empty_cache(self) -> None:
        self._module.empty_cache()
