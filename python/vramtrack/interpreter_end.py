"""Handles the end of the interpreter, and forks, for running watches."""
from __future__ import annotations

import atexit
import os
import time
from typing import Protocol, Set

_EXIT_S = 1.0  # the longest time that the end of the interpreter waits for a check


class Running(Protocol):
    """A watch with a running thread."""

    def ask_to_end(self) -> None:
        """Asks its thread to end, without waiting."""

    def wait_for_end(self, seconds: float) -> None:
        """Waits at most this long for its thread, and ends its effects that others can see."""

    def in_child(self) -> None:
        """Called in a forked child."""


_running: Set[Running] = set()


def add(watch: Running) -> None:
    _running.add(watch)


def remove(watch: Running) -> None:
    _running.discard(watch)


def _end_all() -> None:
    """Stops all watches at the end of the interpreter, before the memory that they read is freed."""
    watches = list(_running)
    for watch in watches:
        watch.ask_to_end()
    until = time.monotonic() + _EXIT_S
    for watch in watches:
        watch.wait_for_end(max(0.0, until - time.monotonic()))


def _after_fork() -> None:
    for watch in _running:
        watch.in_child()
    _running.clear()


# atexit runs after all non-daemon threads have ended, so a job that trains in such a thread is watched until its end.
atexit.register(_end_all)
os.register_at_fork(after_in_child=_after_fork)
