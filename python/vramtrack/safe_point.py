"""Runs a function for another thread at a point where the program's own thread is between two steps, or at least between two lines."""
from __future__ import annotations

import ctypes
import sys
import threading
import time
from typing import Any, Callable, List, Tuple

#: marks that are less frequent than this are not waited for
_OFTEN_S = 5.0
#: a main thread that works in C, or waits, for longer than this is not waited for
_PATIENCE_S = 2.0
#: the callbacks that Py_AddPendingCall() has not called yet: they must stay in memory until then
_pending: List[Any] = []


class MarkClock:
    """Records when vramtrack.mark() was last called, between begin() and end(). Without the package there are no marks."""

    def __init__(self) -> None:
        self.last_s = float("-inf")
        self._end: Any = None

    def begin(self) -> None:
        marks = sys.modules.get("vramtrack.marks")
        if marks is not None and self._end is None:
            self._end = marks.listen(self._take)

    def _take(self, name: str) -> None:
        self.last_s = time.monotonic()

    def end(self) -> None:
        if self._end is not None:
            self._end()
            self._end = None

    def are_marks_frequent(self) -> bool:
        return time.monotonic() - self.last_s < _OFTEN_S


class _Once:
    """A function that only the first caller runs; later callers do nothing."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._lock = threading.Lock()
        self.where = ""
        self.done = threading.Event()
        self.value: Any = None
        self.error: Any = None

    def call(self, where: str) -> None:
        with self._lock:
            if self.where:
                return
            self.where = where
        try:
            self.value = self._function()
        except Exception as error:
            self.error = error
        finally:
            self.done.set()


def _in_main_thread(once: _Once) -> None:
    """Runs it as a pending call, which Python's main thread runs between two bytecodes."""
    add = getattr(ctypes.pythonapi, "Py_AddPendingCall", None)
    if add is None:
        return
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

    def called(_: Any) -> int:
        once.call("in the main thread")
        return 0

    entry = kind(called)
    # A call that has returned is dropped by the next one: it must not free itself while it runs.
    _pending[:] = [(old, its) for old, its in _pending if not its.done.is_set()] + [(entry, once)]
    add.restype = ctypes.c_int
    add.argtypes = [kind, ctypes.c_void_p]
    add(entry, None)  # fails if the queue is full: then it is not called


def at_safe_point(function: Callable[[], Any], clock: MarkClock, patience_s: float = _PATIENCE_S) -> Tuple[Any, str]:
    """The result of `function`, and where it ran: "at a mark", in the thread that calls vramtrack.mark(); "in the main thread", between two
    of its bytecodes; or "beside the program", in this thread, if neither came within `patience_s`. It runs exactly once, and its exceptions
    are raised here. Blocks this thread, but the program only for as long as `function` takes."""
    once = _Once(function)
    if threading.current_thread() is threading.main_thread():
        once.call("in the main thread")
    if not once.done.is_set() and clock.are_marks_frequent():
        end = sys.modules["vramtrack.marks"].listen(lambda name: once.call("at a mark"))
        once.done.wait(patience_s)
        end()
    if not once.where:
        _in_main_thread(once)
        once.done.wait(patience_s)
    once.call("beside the program")
    once.done.wait()  # it has begun elsewhere
    if once.error is not None:
        raise once.error
    return once.value, once.where
