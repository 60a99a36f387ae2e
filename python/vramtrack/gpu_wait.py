"""Waits in a test until GPU memory is free: runs `vramtrack wait` and fails the test with its message."""
from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any, Iterable, List, Union

from vramtrack.printable import printable
from vramtrack.pytest_outcome import fail, skip

_MET, _TIME_OVER = 0, 1


def _words(value: Union[None, int, str, Iterable[Union[int, str]]]) -> List[str]:
    if value is None:
        return []
    return [str(value)] if isinstance(value, (int, str)) else [str(one) for one in value]


class GpuWait:
    """The fixture gpu_wait. Each argument is an option of `vramtrack wait`; see docs/wait.md."""

    def __init__(self, no_gpu: str) -> None:
        self._no_gpu = no_gpu

    def __call__(self, *, free: Union[None, int, str] = None, empty: bool = False, gpu: Any = None, pid: Any = None, gone: bool = False,
                 user: Any = None, container: Any = None, timeout_s: float = 60.0) -> None:  # fmt: skip
        """Returns when the condition is met. Fails after `timeout_s`, naming who holds the memory. `free`: bytes, or text like "20GiB"."""
        __tracebackhide__ = True
        command = [self._program(), "wait", "--timeout", f"{timeout_s:g}s"]
        if free is not None:
            command += ["--free", f"{free}B" if isinstance(free, int) else free]
        for name, values in (("--gpu", gpu), ("--pid", pid), ("--user", user), ("--container", container)):
            for value in _words(values):
                command += [name, value]
        command += ["--empty"] * empty + ["--gone"] * gone
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if done.returncode == _MET:
            return
        message = done.stderr.decode(errors="replace").strip()
        message = "\n".join(printable(line) for line in message.splitlines()) or f"{command[0]} wait ended with {done.returncode}"
        if done.returncode != _TIME_OVER and "no GPU found" in message and self._no_gpu == "skip":
            skip(message)
        fail(message)

    @staticmethod
    def _program() -> str:
        __tracebackhide__ = True
        found = os.environ.get("VRAMTRACK_PROGRAM") or shutil.which("vramtrack")
        if found is None:
            fail("gpu_wait needs the program vramtrack, which the Python package does not contain: install it, "
                 "or name it in VRAMTRACK_PROGRAM")  # fmt: skip
        return found
