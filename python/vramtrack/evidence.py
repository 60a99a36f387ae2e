"""The lines that leak, from two snapshots taken while a leak is suspected; and the file written when memory runs out."""
from __future__ import annotations

import contextlib
import json
import os
import pickle
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

from vramtrack import categories
from vramtrack.memory_source import MemorySource, Site
from vramtrack.printable import printable_values

_AGAIN_AFTER_S = 1800.0
_SETTLING_MARKS = 2
_MARKS = 8
_PATIENCE = 20  # a multiple of `seconds`: recording ends even if the program stops marking


class Evidence:
    """The second stage of a watch: idle -> settling -> comparing -> idle.

    The recorder knows only the lines of blocks allocated while it is on. The first snapshot therefore waits until a few steps have
    replaced their buffers. If the program marks its steps, both snapshots are taken within marks of one name: at the same point of a
    step, the same temporaries are live. The recorder is switched off once both snapshots exist or something fails. A recording
    that someone else started stays on. Thread-safe."""

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
        """In a forked process, a thread that no longer exists may hold the lock."""
        self._lock = threading.Lock()

    def mark(self, name: str, now: float) -> None:
        """Takes the snapshots. advance() compares them on the watch's thread. This never waits: a mark during advance() is
        ignored."""
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
        """Starts recording when a leak is suspected, and ends when there is enough to compare. `has_marks`: the program makes marks often
        enough to wait for them."""
        with self._lock:
            if self._since is None:
                if suspected and (self._last is None or now - self._last >= _AGAIN_AFTER_S):
                    self._last = now  # a recording that cannot start is not retried at every check
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
        # A large snapshot takes seconds; the recorder is off and no step waits.
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
    """Writes vramtrack-oom-PID-TIME.json and, if there is one, the allocator's snapshot (.pickle) into the watch's directory. It runs
    on the thread that ran out of memory and takes no GPU memory. It writes at most five files per process."""
    directory = watch.directory
    os.makedirs(directory, exist_ok=True)
    mine = [name for name in os.listdir(directory) if name.startswith(f"vramtrack-oom-{os.getpid()}-")]
    if sum(name.endswith(".json") for name in mine) >= 5:
        return ""
    stem = os.path.join(directory, f"vramtrack-oom-{os.getpid()}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{len(mine)}")
    counters = watch.source.counters()
    # Parts that fail are left out and reported: the file and the snapshot are written nevertheless.
    missing: List[str] = []

    def part(name: str, make: Callable[[], Any], otherwise: Any = None) -> Any:
        try:
            return make()
        except Exception as error:
            missing.append(f"{name}: {type(error).__name__}: {error}")
            return otherwise

    verdict = part("verdict", watch.verdict)
    found = part("categories", categories.categorize)
    document: Dict[str, Any] = {
        "schema": "vramtrack.oom.v1",
        "pid": os.getpid(),
        "asked_bytes": asked_bytes,
        "device_free_bytes": free_bytes,
        "limit_bytes": part("limit_bytes", watch.source.limit_bytes),
        "allocated_bytes": counters.allocated,
        "reserved_bytes": counters.reserved,
        "allocator_settings": part("allocator_settings", watch.source.allocator_settings, {}),
        "verdict": None if verdict is None else verdict.raw.get("verdict"),
        "words": "" if verdict is None else str(verdict),
        "categories": found.by_category if found is not None and found.labels else {},
        "growth_bytes_per": {} if verdict is None else verdict.growth_per,
        "sites": [site._asdict() for site in watch.sites],
        "ranks": [rank._asdict() for rank in known_ranks(watch)],
        "pools": [pool._asdict() for pool in part("pools", watch.source.pools, [])],
        "advice": part("advice", watch.advice, []),
        "samples": [list(sample) for sample in watch.samples[-600:]],
        "sample_fields": list(type(watch.samples[0])._fields) if watch.samples else [],
    }
    snapshot = part("snapshot", lambda: watch.source.snapshot_at_oom(asked_bytes, free_bytes))
    document["missing"] = missing
    with open(stem + ".json", "w") as file:
        json.dump(printable_values(json.loads(json.dumps(document, default=str))), file, indent=1)
    if snapshot is not None:
        with open(stem + ".pickle", "wb") as file:
            file.write(with_oom(snapshot, watch.source, asked_bytes, free_bytes, found))
    for what in missing:
        watch._note(f"writing evidence: {what}")
    return stem + ".json"


def known_ranks(watch: Any) -> List[Any]:
    """Those that were read last: when memory has run out, nothing is waited for."""
    return [] if watch._ranks is None else list(watch._ranks.known())


def with_oom(snapshot: Any, source: Any, asked_bytes: int, free_bytes: int, found: Optional[categories.Categories] = None) -> bytes:
    """The snapshot as a pickle with the request that failed, the memory that was free, and the categories of the blocks. `vramtrack
    snapshot` reads these fields; other readers skip them."""
    taken = pickle.loads(snapshot) if isinstance(snapshot, bytes) else snapshot
    if not isinstance(taken, dict):
        return pickle.dumps(taken)
    note = {"device": getattr(source, "device_id", 0), "asked_bytes": asked_bytes, "device_free_bytes": free_bytes}
    for name, value in (("device_total_bytes", source.capacity_bytes()), ("allowed_bytes", source.limit_bytes())):
        if value is not None:
            note[name] = value
    labelled = {"vramtrack_categories": categories.labels_for_snapshot(found)} if found is not None and found.labels else {}
    return pickle.dumps({**taken, "vramtrack_oom": note, **labelled})
