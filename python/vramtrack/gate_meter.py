"""The memory that the leak gate reads after each iteration: the allocator's live bytes, or the driver's figure if it counts nothing."""
from __future__ import annotations

import os
import time
from typing import Any, Callable, List, Optional

from vramtrack.driver import DEFAULT_LIBRARY, DriverMemory
from vramtrack.memory_source import MemorySource


class GateMeter:
    """Feeds a _core.LeakGate. While the allocator's counters are 0, it feeds the driver's figure for this process, otherwise for the whole
    device. Once they are above 0, a new gate gets the allocator's figures from the start."""

    def __init__(self, source: MemorySource, new_gate: Callable[[], Any]) -> None:
        self.gate = new_gate()
        self.metric = "allocator_allocated"
        self._source, self._new_gate = source, new_gate
        self._counted = False  # the allocator was above 0 at least once
        self._zeros = 0
        self._driver: Optional[DriverMemory] = None

    def read(self) -> None:
        """Call it after each iteration."""
        counters = self._source.counters()
        if not self._counted and counters.allocated == 0 and counters.reserved == 0:
            self._zeros += 1
            self.gate.add(self._by_the_driver())
            return
        if not self._counted:
            self._counted = True
            if self._zeros > 0:
                self.gate, self.metric = self._new_gate(), "allocator_allocated"
                for _ in range(self._zeros):
                    self.gate.add(0.0)
        self.gate.add(float(counters.allocated))

    @property
    def notes(self) -> List[str]:
        if self.metric == "process_used":
            return ["the allocator's counters are 0, so the driver's figure for this process was tested"]
        if self.metric == "device_used":
            return ["the allocator's counters are 0, so the driver's figure for the whole device was tested: other processes count, too"]
        if not self._counted:
            return ["the allocator's counters are 0 and the driver reports no figure"]
        return []

    def _by_the_driver(self) -> float:
        """Bytes; NaN if there is no figure."""
        if self.metric != "device_used":
            used = self._by_process()
            if used is not None:
                self.metric = "process_used"
                return float(used)
            if self.metric == "process_used":
                return float("nan")
        used = self._source.device_used_bytes()
        if used is None:
            return float("nan")
        self.metric = "device_used"
        return float(used)

    def _by_process(self) -> Optional[int]:
        if self._driver is None:
            self._driver = DriverMemory(self._source.identity(), DEFAULT_LIBRARY)
        try:
            listed = self._driver.read(time.monotonic(), anyway=True)
        except ValueError:  # the device does not answer
            return None
        return None if listed is None else listed.get(os.getpid())
