"""Compares PyTorch's memory snapshots with the C++ code of `vramtrack snapshot`."""
from __future__ import annotations

import pickle
from typing import Any, List, Optional, Union

from vramtrack import _core
from vramtrack.memory_source import Site


def _bytes_of(snapshot: Any) -> bytes:
    return bytes(snapshot) if isinstance(snapshot, (bytes, bytearray, memoryview)) else pickle.dumps(snapshot)


def growing_sites(
    before: Union[bytes, Any], after: Union[bytes, Any], limit: int = 10, device: Optional[int] = None
) -> List[Site]:
    """The stacks whose live requested bytes grew between two snapshots, the largest growth first.

    before, after  results of torch.cuda.memory._snapshot(), or the bytes of files written by _dump_snapshot (plain, gzip or zstd)
    limit          at most this many stacks
    device         one device only; default: all

    A stack is named after the same line as in `vramtrack snapshot`. Blocks allocated before recording began have no frames and are
    left out. Raises ValueError with the position if the data is not a snapshot. Releases the GIL while reading.
    """
    return [
        Site(name, file, line, live, growth, tuple(stack))
        for name, file, line, live, growth, stack in _core.growing_sites(
            _bytes_of(before), _bytes_of(after), limit, device
        )
    ]
