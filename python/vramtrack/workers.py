"""A watch in processes that a framework starts: the workers of verl, vLLM, SGLang and Ray, which nobody wants to modify.

VRAMTRACK_WATCH=1 asks for it where the package is installed: verl, vLLM and SGLang load the plugin by themselves in each of their processes.
VRAMTRACK_WATCH=FOLDER also writes evidence of an out-of-memory error into the folder. Ray calls start() in each worker:
ray.init(runtime_env={"worker_process_setup_hook": "vramtrack.workers.start"}).
"""
from __future__ import annotations

import os
import sys
import threading
from typing import Any, Dict, Optional

from vramtrack.marks import mark
from vramtrack.printable import printable
from vramtrack.torch_source import TorchSource
from vramtrack.verdict import Verdict
from vramtrack.watch import Watch

_FIRST_S = 1.0  # between two checks of whether the process uses a GPU
_LATER_S = 15.0  # likewise, of whether it uses another one

_options: Optional[Dict[str, Any]] = None  # of the watches; None: not started
_watches: Dict[int, Watch] = {}
_marks_steps = False
_lock = threading.Lock()


def start(**watch: Any) -> None:
    """Watches each GPU that this process uses, from the time when it has memory there; never starts CUDA. Each step of an optimizer is a
    mark. A leak is reported once on standard error. Arguments are those of Watch. Later calls do nothing."""
    global _options
    with _lock:
        if _options is not None:
            return
        folder = os.environ.get("VRAMTRACK_WATCH", "")
        _options = {"directory": None if folder in ("", "0", "1") else folder, **watch}
    _start_thread()


def start_if_asked() -> None:
    """start(), if VRAMTRACK_WATCH asks for it."""
    if os.environ.get("VRAMTRACK_WATCH", "") not in ("", "0"):
        start()


def watches() -> Dict[int, Watch]:
    """The watches of this process, by PyTorch's number of their device. Empty while it uses none."""
    return dict(_watches)


def _start_thread() -> None:
    threading.Thread(target=_run, name="vramtrack-workers", daemon=True).start()


def _run() -> None:
    end = threading.Event()
    while True:
        try:
            _look()
        except Exception:  # PyTorch is being imported or torn down: check again at the next look
            pass
        if end.wait(_LATER_S if _watches else _FIRST_S):
            return


def _look() -> None:
    """Starts a watch for each device on which memory was allocated since the last look."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    for device in range(torch.cuda.device_count()):
        # The allocator's own counters: reading them takes no device memory and starts nothing there.
        if device not in _watches and torch.cuda.memory_reserved(device) > 0:
            _watches[device] = Watch(TorchSource(device), **{"on_leak": _reporter(device), **(_options or {})}).start()
            _mark_steps()


def _mark_steps() -> None:
    global _marks_steps
    if not _marks_steps:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(lambda *_: mark("step"))
        _marks_steps = True


def _reporter(device: int) -> Any:
    def report(verdict: Verdict) -> None:
        pid = os.getpid()
        words = f"vramtrack: process {pid}, cuda:{device}: leak: {verdict.because}. 'vramtrack attach {pid}' names the lines that grow"
        print(printable(words), file=sys.stderr, flush=True)

    return report


def _in_child() -> None:
    """A forked child has none of these threads, and does not use its parent's GPUs."""
    global _lock
    _lock = threading.Lock()
    _watches.clear()
    if _options is not None:
        _start_thread()


os.register_at_fork(after_in_child=_in_child)
start_if_asked()  # the plugins of verl are imported, not called
