"""The ranks of one job (torchrun), seen together: each rank's watch writes a short summary to a folder that all of them read."""
from __future__ import annotations

import json
import os
import stat
import tempfile
import threading
from dataclasses import replace
from typing import Callable, Dict, List, Optional, Tuple, Union

from vramtrack.advice import dataloader_worker
from vramtrack.rank_summary import ENDED, MOST_BYTES, RUNNING, SILENT, Job, Rank, job_of, parsed, summary_of
from vramtrack.rank_words import CLOCKS_DIFFER_S, words
from vramtrack.verdict import Verdict

_AT_ONE_LOOK = 64  # files read per check; those of a larger job are read in turns
_SILENT_AFTER_CHECKS, _SILENT_AFTER_S = 4, 30.0  # without a new summary; the longer of the two


def ranks_of(wanted: Union[bool, str], directory: Optional[str], clock: Callable[[], float], check_every_s: float) -> Optional["Ranks"]:
    """The job's folder, from a Watch's `ranks` and `directory`. None: this process is not a rank, or the folder is not wanted."""
    # A DataLoader worker has the variables of its rank, but is not the rank.
    job = job_of() if wanted is not False and dataloader_worker() is None else None
    if job is None:
        return None
    silent_after_s = max(_SILENT_AFTER_S, _SILENT_AFTER_CHECKS * check_every_s)
    return Ranks(job, wanted if isinstance(wanted, str) else directory, clock, silent_after_s)


class Ranks:
    """The folder of one job. The file of each rank is replaced as a whole, so a reader never sees half of one; files that are missing,
    damaged or from another run are left out. Never waits for another rank. Thread-safe; known() and note() access no file.

    folder          on a file system that all machines of the job share. None: a folder of this machine, which only its own ranks see;
                    the last of them removes it
    clock           the time in seconds; summaries from before now belong to an earlier run
    silent_after_s  a rank whose summary has not changed for this long, by this clock, is silent
    """

    def __init__(self, job: Job, folder: Optional[str], clock: Callable[[], float], silent_after_s: float = _SILENT_AFTER_S) -> None:
        self.job = job
        self._clock = clock
        self._silent_after_s = silent_after_s
        self._since_s = clock() - CLOCKS_DIFFER_S
        self._is_own = folder is None
        base = os.path.join(tempfile.gettempdir(), f"vramtrack-{os.getuid()}") if folder is None else folder
        self.folder = f"{base}-ranks-{job.id}" if folder is None else os.path.join(base, f"vramtrack-ranks-{job.id}")
        self._seen: Dict[int, Rank] = {}
        self._came: Dict[int, Tuple[float, float]] = {}  # by rank: the summary's time by its clock, and when it was first read by ours
        self._next = 0
        self._lock = threading.Lock()

    def add_to(self, verdict: Verdict, used_bytes: int, first_s: float, now_s: float) -> Verdict:
        """Notes this rank's verdict and returns it, with a sentence on all ranks if one grows or is silent. Accesses no file."""
        self.note(summary_of(self.job, verdict, used_bytes, first_s, now_s))
        known = self.known()
        if len(known) < 2 or not any(rank.grows or rank.status == SILENT for rank in known):
            return verdict
        return replace(verdict, ranks=words(known, self.job.world_size))

    def share(self, note: Callable[[str], None]) -> None:
        """Writes this rank's last summary for the others, and reads theirs. `note` receives the reason if that fails."""
        mine = self._seen.get(self.job.rank)
        try:
            if mine is not None:
                self.put(mine)
            self.look()
        except OSError as error:
            note(f"ranks: {error}")

    def note(self, summary: Rank) -> None:
        """Stores a summary without writing it."""
        self._seen = {**self._seen, summary.rank: summary}

    def put(self, summary: Rank) -> None:
        """Replaces this rank's summary. OSError: it cannot be written."""
        self.note(summary)
        with self._lock:
            self._make()
            self._write(summary)

    def _write(self, summary: Rank) -> None:
        path, new = self._path(summary.rank), f"{self._path(summary.rank)}.{os.getpid()}.new"
        try:
            os.unlink(new)
        except FileNotFoundError:
            pass
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            with os.fdopen(file, "w") as out:
                out.write(json.dumps(summary._asdict()))
            os.replace(new, path)
        except BaseException:
            os.unlink(new)
            raise

    def look(self, all_of_them: bool = False) -> List[Rank]:
        """The latest known summaries by rank. It reads at most 64 files, the next ones at each look, unless `all_of_them`."""
        size, now = self.job.world_size, self._clock()
        with self._lock:
            read: Dict[int, Rank] = {}
            for _ in range(size if all_of_them else min(size, _AT_ONE_LOOK)):
                rank, self._next = self._next, (self._next + 1) % size
                found = self._now(rank, now) if rank != self.job.rank else None
                if found is not None:
                    read[rank] = found
            self._seen = {**self._seen, **read}
        return self.known()

    def _now(self, rank: int, now: float) -> Optional[Rank]:
        """The rank's summary, or its last known one, with its status."""
        found = self._read(rank) or self._seen.get(rank)
        if found is None or found.status == ENDED:
            return found
        if self._is_own and not os.path.lexists(self._path(rank)):
            return found._replace(status=ENDED)
        time_s, came_s = self._came.get(rank, (None, now))
        if time_s != found.time_s:
            came_s = now
        self._came[rank] = (found.time_s, came_s)
        # Its clock may be behind ours, so the time counts from when we last saw a newer summary.
        unchanged_s = now - max(came_s, found.time_s)
        return found._replace(status=SILENT if unchanged_s > self._silent_after_s else RUNNING)

    def known(self) -> List[Rank]:
        """The last known summaries by rank, without reading anything."""
        return [summary for _, summary in sorted(self._seen.items())]

    def leave(self) -> None:
        """Reports that this rank's watch ends. In a folder on this machine, its summary is removed, and with the last one the folder."""
        try:
            if self._is_own:
                os.unlink(self._path(self.job.rank))
                os.rmdir(self.folder)
            elif self.job.rank in self._seen:
                self.put(self._seen[self.job.rank]._replace(status=ENDED, time_s=self._clock()))
        except OSError:  # it never wrote one; others are still in the folder; the folder is gone
            pass

    def _path(self, rank: int) -> str:
        return os.path.join(self.folder, f"rank-{rank}.json")

    def _make(self) -> None:
        if not self._is_own:
            os.makedirs(self.folder, exist_ok=True)
            return
        # Anybody may create files in the folder for temporary files: this one must be a folder of ours that nobody else can write.
        try:
            os.mkdir(self.folder, 0o700)
        except FileExistsError:
            pass
        made = os.lstat(self.folder)
        if not stat.S_ISDIR(made.st_mode) or made.st_uid != os.getuid() or made.st_mode & 0o022:
            raise PermissionError(f"{self.folder} is not a folder that only this user can write")

    def _read(self, rank: int) -> Optional[Rank]:
        try:
            # Not blocking, because it may be a FIFO.
            file = os.open(self._path(rank), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return None
            text = os.read(file, MOST_BYTES + 1)
        except OSError:
            return None
        finally:
            os.close(file)
        found = parsed(text)
        if found is None or (found.rank, found.world_size) != (rank, self.job.world_size) or found.time_s < self._since_s:
            return None
        return found
