"""Pinned host memory as a separate series: its verdict, and the limit of host memory."""
from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Dict, Optional

from vramtrack.stream import Stream
from vramtrack.units import format_rate
from vramtrack.verdict import Verdict

HOST_PINNED = "host_pinned"
_TITLE = "pinned host memory"


def host_memory_bytes(proc: str = "/proc", cgroup: str = "/sys/fs/cgroup") -> Optional[int]:
    """The memory of this machine, or the limit of this process's cgroup if that is less. None: unknown."""
    found = []
    try:
        with open(f"{proc}/meminfo") as file:
            found.append(int(file.readline().split()[1]) * 1024)
        with open(f"{proc}/self/cgroup") as file:
            own = next(line.strip()[3:] for line in file if line.startswith("0::"))
        with open(f"{cgroup}{own}/memory.max") as file:
            found.append(int(file.read()))
    except (OSError, ValueError, IndexError, StopIteration):  # no cgroup version 2, or no limit ("max")
        pass
    return min(found, default=None)


class PinnedSeries:
    """Runs the detectors on pinned host memory, separately from the device's, because its limit is that of host memory. Not thread-safe."""

    def __init__(self, settings: Optional[Dict[str, Any]], device_id: int) -> None:
        self._stream = Stream("process_used", settings, device_id)
        self._device_id = device_id
        self._end = host_memory_bytes()

    def observe(self, time_s: float, pinned_bytes: Optional[int]) -> None:
        if pinned_bytes is not None:
            self._stream.observe(time_s, pinned_bytes, self._end)

    def works(self, time_s: float) -> None:
        self._stream.works(time_s)

    def verdict(self) -> Verdict:
        verdict = self._stream.verdict()
        raw = dict(verdict.raw)
        if "series" in raw:
            raw["series"] = {**raw["series"], "metric": HOST_PINNED}
        if verdict.samples == 0:
            return replace(verdict, metric=HOST_PINNED, raw=raw, because="this version of PyTorch does not count it, or nothing was pinned yet")
        return replace(verdict, metric=HOST_PINNED, raw=raw, text=verdict.text.replace(f"GPU {self._device_id}", _TITLE, 1))

    def advice(self) -> Optional[str]:
        """The remedy for its growth. None: it does not grow like a leak."""
        verdict = self._stream.verdict()
        if not verdict.leak:
            return None
        return (f"pinned host memory grows by {format_rate(verdict.growth_bytes_per_s.mid)} (Watch.verdict(\"{HOST_PINNED}\")): look for batches that stay pinned after their "
                "copy to the GPU, and for pinned buffers whose sizes keep changing, which PyTorch caches")  # fmt: skip
