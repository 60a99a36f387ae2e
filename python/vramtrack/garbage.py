"""Garbage collection that is cheap enough to repeat. A full collection visits every object of the process, which takes 70 to 250 ms with
PyTorch imported."""
from __future__ import annotations

import contextlib
import gc
import threading
from typing import Iterator

#: the most objects that Python itself freezes at its start (375 in CPython 3.12)
_FROZEN_AT_START = 5000

_lock = threading.Lock()
_depth = 0
_ours = False


@contextlib.contextmanager
def only_new_objects() -> Iterator[None]:
    """In this block, gc.collect() visits only objects created since the block began. Garbage is collected once before it; after it, the
    previous state is restored. Blocks may nest and overlap, even across threads. A program that has called gc.freeze() itself keeps its
    frozen objects, and its collections stay as slow as they are."""
    global _depth, _ours
    with _lock:
        _depth += 1
        if _depth == 1:
            gc.collect()
            _ours = gc.get_freeze_count() <= _FROZEN_AT_START  # gc.unfreeze() cannot distinguish ours from theirs
            if _ours:
                gc.freeze()
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and _ours:
                gc.unfreeze()
