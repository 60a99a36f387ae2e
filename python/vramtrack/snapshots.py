"""PyTorch's memory snapshots, read and compared in C++ (`vramtrack snapshot` is the same on files)."""
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
    """The stacks whose live requested bytes grew between two snapshots, the largest growth first; of one `device`, or of all.
    Each is called by the line that `vramtrack snapshot` calls it by.

    Each is what torch.cuda.memory._snapshot() gives, or the bytes of a file of _dump_snapshot, plain, gzip or zstd. Blocks from
    before recording began have no frames and are left out. ValueError: what is no snapshot, with the place. The GIL is
    free while they are read.
    """
    return [
        Site(name, file, line, live, growth, tuple(stack))
        for name, file, line, live, growth, stack in _core.growing_sites(
            _bytes_of(before), _bytes_of(after), limit, device
        )
    ]
