"""PyTorch's recorder of allocations: there is one per process, shared by everything that needs it."""
from __future__ import annotations

import threading
from typing import Any, List, Optional, Tuple

#: the functions that _record_memory_history() calls, by version of PyTorch
_RECORDERS = ("_cuda_record_memory_history", "_cuda_record_memory_history_legacy", "_cuda_recordMemoryHistory")


class Recorder:
    """The recorder of `torch`. All Recorders of a process share one state, so starts may nest, even across threads: the last stop ends the
    recording that the first start began. A recording that someone else began is used, and left on. Thread-safe."""

    _lock = threading.Lock()
    _depth = 0
    _not_ours = False
    _changed_by_others = False
    _replaced: List[Tuple[str, Any, Any]] = []

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def start(self, enabled: str, context: str) -> bool:
        """Whether this call started the recording."""
        cls = Recorder
        with cls._lock:
            if cls._depth == 0:
                # A recording that someone else started continues afterwards, with their settings.
                cls._not_ours = self.is_on()
                if not cls._not_ours:
                    self._record(enabled, context)
                    self._notice_others()
            cls._depth += 1
            return cls._depth == 1 and not cls._not_ours

    def stop(self) -> None:
        cls = Recorder
        with cls._lock:
            cls._depth -= 1
            if cls._depth == 0 and not cls._not_ours:
                self._stop_noticing()
                if not cls._changed_by_others:  # a recording that the program began or ended meanwhile is left alone
                    self._record(None, None)

    def is_on(self) -> bool:
        """Whether anybody is recording. False if this version of PyTorch does not report it."""
        enabled = getattr(self._torch._C, "_cuda_isHistoryEnabled", None)
        return bool(enabled()) if enabled is not None else False

    def _record(self, enabled: Optional[str], context: Optional[str]) -> None:
        record = self._torch.cuda.memory._record_memory_history
        try:
            if enabled is None:
                record(enabled=None)
            else:
                record(enabled=enabled, context=context, stacks="python", max_entries=100_000)
        except TypeError:  # PyTorch 2.0 has another signature, and its blocks always have frames
            if enabled == "all":
                record(True, trace_alloc_max_entries=100_000, trace_alloc_record_context=True)
            else:
                record(enabled is not None)

    def _notice_others(self) -> None:
        """Detects whether the program begins or ends a recording of its own while ours runs. PyTorch reports only whether there is one, so
        the function below _record_memory_history() is replaced meanwhile."""
        Recorder._changed_by_others = False
        Recorder._replaced = []
        for name in _RECORDERS:
            below = getattr(self._torch._C, name, None)
            if below is None:
                continue

            def noticed(*arguments: Any, _below: Any = below, **options: Any) -> Any:
                Recorder._changed_by_others = True
                return _below(*arguments, **options)

            setattr(self._torch._C, name, noticed)
            Recorder._replaced.append((name, below, noticed))

    def _stop_noticing(self) -> None:
        for name, below, noticed in Recorder._replaced:
            if getattr(self._torch._C, name, None) is noticed:
                setattr(self._torch._C, name, below)
        Recorder._replaced = []
