"""mark(): tells whoever watches that an iteration is done: the Watch in this process, and `vramtrack test` around it.

The protocol towards `vramtrack test` is one line a mark, "NAME" or "NAME BYTES" and a newline, written to the pipe whose number
is in VRAMTRACK_MARK_FD (docs/leak-gate.md). Any language can speak it.
"""
from __future__ import annotations

import os
import sys
import threading
from typing import Any, Callable, List, Optional

_listeners: List[Callable[[str], None]] = []
_lock = threading.Lock()
_fd: Optional[int] = None
_fd_known = False
_source: Any = None
# A child that is forked, such as a DataLoader worker, has none of the threads that listen, and may have their locks.
os.register_at_fork(after_in_child=_listeners.clear)


def _pipe() -> Optional[int]:
    global _fd, _fd_known
    if not _fd_known:
        _fd_known = True
        text = os.environ.get("VRAMTRACK_MARK_FD", "")
        if text.isdigit():
            try:
                os.fstat(int(text))
                _fd = int(text)
            except OSError:
                _fd = None
    return _fd


def _used_bytes() -> Optional[int]:
    """What this process's allocator has live, where there is one already; never the reason to start CUDA."""
    global _source
    from vramtrack import sources

    source = sources._default
    if source is None:
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return None
        if _source is None:
            _source = sources.default_source()
        source = _source
    return source.counters().allocated


def mark(name: str = "iteration") -> None:
    """One iteration of `name` is done. Costs a microsecond when nobody listens."""
    if not name or any(c.isspace() for c in name):
        raise ValueError(f"{name!r} is no name of a mark: expected a word without blanks")
    for listener in _listeners:
        listener(name)
    fd = _pipe()
    if fd is None:
        return
    used = _used_bytes()
    line = f"{name}\n" if used is None else f"{name} {used}\n"
    try:
        os.write(fd, line.encode())
    except OSError:  # the gate has gone: go on without it
        global _fd
        _fd = None


def listen(listener: Callable[[str], None]) -> Callable[[], None]:
    """Calls listener(name) at every mark; returns what ends that."""
    with _lock:
        _listeners.append(listener)

    def end() -> None:
        with _lock:
            if listener in _listeners:
                _listeners.remove(listener)

    return end
