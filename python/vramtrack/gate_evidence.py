"""The lines that grow, for `vramtrack test`, which names a folder for them in VRAMTRACK_TEST_EVIDENCE.

Snapshots are taken within a mark at marks 32, 48, 64, 96, 128, ... of one name. The latest is compared with the one two before it,
which covers a third to a half of the run. Each comparison rewrites the file `KEY.sites` (docs/leak-gate.md) in the folder, since
any mark may be the last and the process may end in any way.
"""
from __future__ import annotations

import os
from typing import Any, Dict, List, Tuple

from vramtrack.memory_source import MemorySource, Site
from vramtrack.printable import printable

_BEGIN = 16  # before the first snapshot, so that the program has replaced its buffers
_FIRST = 32
_LAST = 1536
_SITES = 5


class GateEvidence:
    """The evidence of one process. It records from mark 16 to mark 1536, which takes about 2 us per allocation. Not thread-safe: the caller
    must hold a lock."""

    def __init__(self, folder: str, key: str) -> None:
        self.path = os.path.join(folder, f"{key or 'main'}.sites")
        self._counts: Dict[str, int] = {}
        self._name = ""
        self._taken: List[Tuple[int, Any]] = []
        self._next = _FIRST
        self._recording = False
        self._ended = False

    def mark(self, name: str, source: MemorySource) -> None:
        """Raises the recorder's exceptions. After one, no more evidence is taken."""
        if self._ended or (self._name and name != self._name) or (len(self._counts) >= 64 and name not in self._counts):
            return
        count = self._counts[name] = self._counts.get(name, 0) + 1
        try:
            if not self._name and count == _BEGIN:
                self._name = name
                source.start_stacks()
                self._recording = True
            elif count == self._next:
                self._compare(count, source)
                self._next = count * 3 // 2 if count & (count - 1) == 0 else count * 4 // 3
                if count >= _LAST:
                    self._end(source)
        except Exception:
            self._end(source)
            raise

    def _end(self, source: MemorySource) -> None:
        self._ended = True
        self._taken = []
        if self._recording:
            self._recording = False
            source.stop_stacks()

    def _compare(self, count: int, source: MemorySource) -> None:
        self._taken = [*self._taken[-2:], (count, source.snapshot())]
        if len(self._taken) < 2:
            return
        (begin, before), (end, after) = self._taken[0], self._taken[-1]
        self._write(begin, end, source.growing_sites(before, after, _SITES))

    def _write(self, begin: int, end: int, sites: List[Site]) -> None:
        lines = [f"{printable(self._name)} {begin} {end}"]
        for site in sites:
            where = printable(" ".join(f"{site.file}:{site.line} in {site.name}".split()))
            lines.append(f"{site.growth_bytes} {where}")
        with open(self.path + ".new", "w", encoding="utf-8", errors="replace") as file:
            file.write("\n".join(lines) + "\n")
        os.replace(self.path + ".new", self.path)
