"""The source that is read where none is given: the one that was set, else the current CUDA device."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator, Optional

from vramtrack.errors import NoDeviceError
from vramtrack.memory_source import MemorySource
from vramtrack.torch_source import TorchSource

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
    return TorchSource(device)
