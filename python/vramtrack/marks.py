"""mark(): reports the end of an iteration to the Watch in this process, and to `vramtrack test` or `vramtrack run` around it.

The protocol of `vramtrack test` is one line per mark, "NAME" or "NAME BYTES KEY", written to the pipe whose number is in
VRAMTRACK_MARK_FD (docs/leak-gate.md). Any language can use it.
"""
from __future__ import annotations

import os
import stat
import sys
import threading
from typing import Any, Callable, List, Optional, Tuple

_listeners: List[Callable[[str], None]] = []
_lock = threading.Lock()
_fd: Optional[int] = None
_known_in: Optional[int] = None  # the process that has looked for the pipe
_identity = ""
_key = ""
_source: Any = None
_evidence: Any = None
_evidence_lock = threading.Lock()


def _after_fork() -> None:
    """A forked child, such as a DataLoader worker, has none of the listening threads, but may have inherited locks that they held."""
    global _evidence_lock
    _listeners.clear()
    _evidence_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _expected() -> Tuple[str, str]:
    """"DEVICE:INODE" of the gate's pipe and a path to it, from VRAMTRACK_MARK_PIPE."""
    device, _, rest = os.environ.get("VRAMTRACK_MARK_PIPE", "").partition(":")
    inode, _, path = rest.partition(":")
    return (f"{device}:{inode}" if inode else "", path)


def _is_pipe(fd: int) -> bool:
    """Whether this is the gate's pipe. A launcher may have closed it, and the number may now be a file of the program."""
    try:
        status = os.fstat(fd)
    except OSError:
        return False
    return stat.S_ISFIFO(status.st_mode) and _identity in ("", f"{status.st_dev}:{status.st_ino}")


def _open_by_path(path: str) -> Optional[int]:
    """Opens the gate's pipe by path, for a program whose launcher has closed all descriptors."""
    if not path:
        return None
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # does not wait: the path may be another file by now
    except OSError:
        return None
    if not _is_pipe(fd):
        os.close(fd)
        return None
    os.set_blocking(fd, True)
    return fd


def _writer(path: str) -> str:
    """A key that separates this process's marks from those of others, because a series written by several processes would hide their leaks.
    The process that the gate started needs no key."""
    rank = os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or ""
    if rank.isdigit():
        return f"rank{rank}-pid{os.getpid()}"
    return "" if not path or path.startswith(f"/proc/{os.getppid()}/") else f"pid{os.getpid()}"


def _pipe() -> Optional[int]:
    global _fd, _known_in, _identity, _key
    if _known_in != os.getpid():
        _known_in = os.getpid()
        _identity, path = _expected()
        _key = _writer(path)
        text = os.environ.get("VRAMTRACK_MARK_FD", "")
        _fd = int(text) if text.isdigit() else None
        if _fd is not None and not _is_pipe(_fd):
            _fd = _open_by_path(path)
    elif _fd is not None and not _is_pipe(_fd):
        _fd = None
    return _fd


def _source_now() -> Any:
    """This process's allocator, if it exists already. A mark never starts CUDA."""
    global _source
    from vramtrack import sources

    if sources._default is not None:
        return sources._default
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    if _source is None:
        _source = sources.default_source()
    return _source


def _take_evidence(name: str, source: Any) -> None:
    """Takes evidence if the gate asks for it. Errors are ignored, because a mark must not end a training."""
    global _evidence
    folder = os.environ.get("VRAMTRACK_TEST_EVIDENCE", "")
    if not folder or not _evidence_lock.acquire(blocking=False):
        return
    try:
        if _evidence is None or _evidence[0] != os.getpid():
            from vramtrack.gate_evidence import GateEvidence

            _evidence = (os.getpid(), GateEvidence(folder, _key))
        _evidence[1].mark(name, source)
    except Exception:
        pass
    finally:
        _evidence_lock.release()


def _find_probe_mark() -> Optional[Callable[[bytes], None]]:
    """The probe of `vramtrack run`, if this process has it: it records the mark in the trace, between the allocations around it."""
    if not os.environ.get("VRAMTRACK_PROBE_DIR"):
        return None
    import ctypes

    try:
        function = ctypes.CDLL(None).vramtrack_probe_mark
    except (OSError, AttributeError):  # a static or setuid program has no probe
        return None
    function.argtypes = [ctypes.c_char_p]
    function.restype = None
    return function


_probe_mark = _find_probe_mark()


def _look() -> None:
    """Reports the categories of the memory to the probe from time to time, if the program uses PyTorch on a device."""
    if "torch" in sys.modules:
        from vramtrack import categories

        if categories.is_wanted:
            categories.look_now_and_then()


def mark(name: str = "iteration") -> None:
    """Reports the end of one iteration of `name`. It takes about a microsecond if nothing listens. ValueError: the name has blanks."""
    global _fd
    if not name or any(c.isspace() for c in name):
        raise ValueError(f"{name!r} is not a valid name of a mark; expected a word without spaces")
    if _probe_mark is not None:
        _look()  # first, so that the trace has it at the mark's time
        _probe_mark(name.encode())
    for listener in _listeners:
        listener(name)
    fd = _pipe()
    if fd is None:
        return
    try:
        source = _source_now()
        counters = None if source is None else source.counters()
        # An allocator that counts nothing reports nothing: the gate reads the process's memory itself.
        used = None if counters is None or (counters.allocated == 0 and counters.reserved == 0) else counters.allocated
    except Exception:  # a mark that cannot be measured is left out, because it must not end the training
        return
    line = f"{name}\n" if used is None else f"{name} {used} {_key}".rstrip() + "\n"
    try:
        os.write(fd, line.encode())
    except OSError:  # the gate has ended; the program continues without it
        _fd = None
    if source is not None:
        _take_evidence(name, source)


def listen(listener: Callable[[str], None]) -> Callable[[], None]:
    """Calls listener(name) at every mark. Returns a function that ends this."""
    with _lock:
        _listeners.append(listener)

    def end() -> None:
        with _lock:
            if listener in _listeners:
                _listeners.remove(listener)

    return end
