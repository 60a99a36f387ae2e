"""The default source: the one that was set, otherwise the current CUDA device, otherwise another accelerator of PyTorch."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator, Optional

from vramtrack.accelerator_source import AcceleratorSource, accelerator_of
from vramtrack.errors import NoDeviceError
from vramtrack.memory_source import MemorySource
from vramtrack.torch_source import TorchSource

_default: Optional[MemorySource] = None
_default_lock = threading.Lock()


def set_default_source(source: Optional[MemorySource]) -> None:
    """Sets the source that everything reads unless given another. None: the current CUDA device, as at the start."""
    global _default
    with _default_lock:
        _default = source


@contextlib.contextmanager
def use_source(source: MemorySource) -> Iterator[MemorySource]:
    """set_default_source() for the duration of a block."""
    before = _default
    set_default_source(source)
    try:
        yield source
    finally:
        set_default_source(before)


def default_source(device: Any = None) -> MemorySource:
    """The source that was set, otherwise PyTorch's `device` (default: the current one). Without CUDA, a device of torch.xpu or
    torch.accelerator. Imports torch if needed."""
    if _default is not None and device is None:
        return _default
    try:
        import torch
    except ImportError:
        raise NoDeviceError(
            "PyTorch cannot be imported, so there is no GPU memory to read; install torch, or pass "
            "source=vramtrack.SimulatedDevice() to test without a GPU"
        ) from None
    if not torch.cuda.is_available():
        if accelerator_of(torch) is not None:
            return AcceleratorSource(device)
        raise NoDeviceError(
            "CUDA is not available, so there is no GPU memory to read; run on a machine with a GPU, or pass "
            "source=vramtrack.SimulatedDevice() to test without one"
        )
    return TorchSource(device)
