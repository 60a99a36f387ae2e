"""Stream: a verdict on one series while its samples come in."""
from __future__ import annotations

from typing import Any, Dict, Optional

from vramtrack import _core
from vramtrack.verdict import Verdict, assignments, verdict_of


class Stream:
    """One series through the detectors, sample by sample. verdict() is what detect() gives for the same samples.

    Memory is bounded however many samples there are. A sample takes about 1 us and a verdict some 0.1 ms, the first as the
    millionth. Not thread-safe. ValueError: a metric or setting that does not exist.
    """

    def __init__(self, metric: str = "device_used", settings: Optional[Dict[str, Any]] = None, device_id: int = 0) -> None:
        self.metric = metric
        self._core = _core.Stream(metric, assignments(settings), device_id)
        self._capacity_bytes: Optional[float] = None

    def observe(self, time_s: float, used_bytes: Optional[float], capacity_bytes: Optional[float] = None) -> None:
        """Takes the next sample; None where nothing could be read. `capacity_bytes`: where memory ends from now on; None: as before.
        ValueError: a time before the last one, or a size below 0."""
        if capacity_bytes is not None and capacity_bytes != self._capacity_bytes:
            self._core.set_capacity(capacity_bytes)
            self._capacity_bytes = capacity_bytes
        self._core.observe(time_s, float("nan") if used_bytes is None else used_bytes)

    def verdict(self, explain: bool = False) -> Verdict:
        """The verdict so far."""
        return verdict_of(self._core.analysis(explain), self.metric)
