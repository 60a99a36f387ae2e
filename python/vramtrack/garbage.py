"""Garbage collection that is cheap enough to repeat. A full collection looks at every object of the process: with PyTorch imported that
takes 70 to 250 ms."""
from __future__ import annotations

import contextlib
import gc
import threading
from typing import Iterator

#: objects that Python itself has frozen at its start, at most (375 in CPython 3.12)
_FROZEN_AT_START = 5000

_lock = threading.Lock()
_depth = 0
_ours = False


@contextlib.contextmanager
def only_new_objects() -> Iterator[None]:
    """In this block, gc.collect() looks only at objects made since the block began. Before it, garbage is collected once; after it,
    everything is as before. Blocks may nest and overlap, also across threads. A program that has called gc.freeze() itself keeps its
    frozen objects, and its collections stay as slow as they are."""
    global _depth, _ours
    with _lock:
        _depth += 1
        if _depth == 1:
            gc.collect()
            _ours = gc.get_freeze_count() <= _FROZEN_AT_START  # gc.unfreeze() cannot tell ours from theirs
            if _ours:
                gc.freeze()
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and _ours:
                gc.unfreeze()
