"""Which lines leak: two snapshots of live blocks while a leak is suspected; and what is written when memory ran out."""
from __future__ import annotations

import contextlib
import json
import os
import pickle
import threading
import time
from typing import Any, Iterator, List, Optional

from vramtrack.memory_source import MemorySource, Site

_AGAIN_AFTER_S = 1800.0
_SETTLING_MARKS = 2
_MARKS = 8
_PATIENCE = 20  # times `seconds`: a program that marks no more is not recorded for ever


class Evidence:
    """Stage two of a watch: idle -> settling -> comparing -> idle. The recorder knows the lines of what is allocated while it
    is on, so what a step replaces is let settle before the first snapshot. Where the program marks its steps, both
    snapshots are taken within a mark of one name: at the same point of a step, with the same temporaries live or gone.
    The recorder is on only until both are there or something fails, and never switched off where somebody else had begun.
    Thread-safe."""

    def __init__(self, source: MemorySource, seconds: float) -> None:
        self.source = source
        self.seconds = seconds
        self.sites: List[Site] = []
        self._lock = threading.Lock()
        self._before: Any = None
        self._after: Any = None
        self._since: Optional[float] = None
        self._last: Optional[float] = None
        self._marks = 0
        self._name = ""

    @property
    def recording(self) -> bool:
        return self._since is not None

    def in_child(self) -> None:
        """Of a forked process: the lock may be held by a thread that is not there any more."""
        self._lock = threading.Lock()

    def mark(self, name: str, now: float) -> None:
        """Takes the snapshots; comparing them is left to advance(), on the watch's thread. Never waits for it: a mark that comes
        while advance() is at work is passed over."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._since is None or self._after is not None:
                return
            self._marks += 1
            with self._ended_by_errors(now):
                if self._before is None:
                    if self._marks > _SETTLING_MARKS:
                        self._first(name, now)
                elif name == self._name and self._marks >= _MARKS and now - self._since >= self.seconds:
                    self._after = self.source.snapshot()
        finally:
            self._lock.release()

    def advance(self, now: float, suspected: bool, has_marks: bool) -> None:
        """Begins when a leak is suspected, ends when there is enough to compare. `has_marks`: the program marks something often
        enough to wait for."""
        with self._lock:
            if self._since is None:
                if suspected and (self._last is None or now - self._last >= _AGAIN_AFTER_S):
                    self._last = now  # one that cannot be begun is not tried at every check
                    self.source.start_stacks()
                    self._since = now
                    self._marks = 0
                return
            with self._ended_by_errors(now):
                if not has_marks and now - self._since >= self.seconds:
                    if self._before is None:
                        self._first("", now)
                        return
                    self._after = self.source.snapshot()
                if self._after is None:
                    if now - self._since >= _PATIENCE * self.seconds:
                        self._finish(now)
                    return
            before, after = self._before, self._after
            self._finish(now)
        # Seconds of work for a large snapshot: with the recorder off, and no step waiting.
        self.sites = self.source.growing_sites(before, after)

    def cancel(self) -> None:
        with self._lock:
            if self._since is not None:
                self._finish(self._since)

    @contextlib.contextmanager
    def _ended_by_errors(self, now: float) -> Iterator[None]:
        try:
            yield
        except Exception:
            self._finish(now)
            raise

    def _first(self, name: str, now: float) -> None:
        self._before = self.source.snapshot()
        self._name = name
        self._since = now
        self._marks = 0

    def _finish(self, now: float) -> None:
        self._before = self._after = None
        self._since = None
        self._last = now
        self.source.stop_stacks()


def write_evidence(watch: Any, asked_bytes: int, free_bytes: int) -> str:
    """vramtrack-oom-PID-TIME.json (and .pickle, the allocator's snapshot, where there is one) in the watch's directory. Called
    while memory has run out, on the thread that asked for it: takes no GPU memory. At most five files a process."""
    directory = watch.directory
    os.makedirs(directory, exist_ok=True)
    mine = [name for name in os.listdir(directory) if name.startswith(f"vramtrack-oom-{os.getpid()}-")]
    if sum(name.endswith(".json") for name in mine) >= 5:
        return ""
    stem = os.path.join(directory, f"vramtrack-oom-{os.getpid()}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{len(mine)}")
    verdict = watch.verdict()
    counters = watch.source.counters()
    document = {
        "schema": "vramtrack.oom.v1",
        "pid": os.getpid(),
        "asked_bytes": asked_bytes,
        "device_free_bytes": free_bytes,
        "allocated_bytes": counters.allocated,
        "reserved_bytes": counters.reserved,
        "allocator_settings": watch.source.allocator_settings(),
        "verdict": verdict.raw.get("verdict"),
        "words": str(verdict),
        "growth_bytes_per": verdict.growth_per,
        "sites": [site._asdict() for site in watch.sites],
        "advice": watch.advice(),
        "samples": [list(sample) for sample in watch.samples[-600:]],
        "sample_fields": list(type(watch.samples[0])._fields) if watch.samples else [],
    }
    with open(stem + ".json", "w") as file:
        json.dump(document, file, indent=1, default=str)
    snapshot = watch.source.snapshot()
    if isinstance(snapshot, bytes):
        with open(stem + ".pickle", "wb") as file:
            file.write(snapshot)
    elif snapshot is not None:
        with open(stem + ".pickle", "wb") as file:
            pickle.dump(snapshot, file)
    return stem + ".json"
