"""The memory summary that one rank of a job (torchrun) reports to the others."""
from __future__ import annotations

import hashlib
import json
import os
import socket
from typing import Any, Mapping, NamedTuple, Optional

from vramtrack.printable import printable
from vramtrack.verdict import Verdict

_MOST_RANKS = 65_536
MOST_BYTES = 4096  # a summary has about 400
RUNNING, ENDED, SILENT = "running", "ended", "silent"


class Rank(NamedTuple):
    """The summary of one rank. Times are seconds since 1970, by that rank's clock. None: unknown. `status` is "running", "ended" (its watch
    was stopped) or "silent" (no summary has come for a long time: it was killed, or hangs)."""

    rank: int
    world_size: int
    time_s: float
    host: str
    pid: int
    metric: str
    used_bytes: int
    grows: bool
    leak: bool
    state: str
    growth_bytes_per_s: float
    onset_s: Optional[float]
    oom_in_s: Optional[float]
    status: str = RUNNING


class Job(NamedTuple):
    """The information about its job that torchrun, or another launcher with the same variables, passes to a process."""

    rank: int
    world_size: int
    id: str


def job_of(environment: Mapping[str, str] = os.environ) -> Optional[Job]:
    """The job to which this process belongs as a rank. None: the job has no other ranks, or the variables are invalid."""
    try:
        rank, world_size = int(environment["RANK"]), int(environment["WORLD_SIZE"])
    except (KeyError, ValueError):
        return None
    if not 0 <= rank < world_size or not 2 <= world_size <= _MOST_RANKS:
        return None
    # The address and port distinguish jobs whose run has no name ("none"). A restarted job starts over.
    names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")
    known = "\n".join(environment.get(name, "") for name in names)
    return Job(rank, world_size, hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()[:16])


def summary_of(job: Job, verdict: Verdict, used_bytes: int, first_s: float, now_s: float) -> Rank:
    """`first_s`: the time of the first sample, from which the verdict's times count."""
    grows = (verdict.leak or verdict.state in ("growing", "slow_growth")) and verdict.growth_bytes_per_s.mid > 0
    return Rank(
        job.rank,
        job.world_size,
        now_s,
        socket.gethostname()[:64],
        os.getpid(),
        verdict.metric,
        used_bytes,
        grows,
        verdict.leak,
        verdict.state,
        verdict.growth_bytes_per_s.mid,
        first_s + verdict.onset_s if grows and verdict.onset_s is not None else None,
        verdict.oom_in_s.mid if verdict.oom_in_s is not None else None,
    )


def parsed(text: bytes) -> Optional[Rank]:
    """A summary in which every field is valid, otherwise None."""
    if len(text) > MOST_BYTES:
        return None
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict):
        return None
    line.setdefault("status", RUNNING)  # from an older version
    values = [_checked(name, line.get(name)) for name in Rank._fields]
    optional = ("onset_s", "oom_in_s")
    if any(value is None and name not in optional for name, value in zip(Rank._fields, values)):
        return None
    return Rank(*values)


_STATUSES = (RUNNING, ENDED)  # a rank cannot report that it is silent
_TEXTS, _FLAGS, _COUNTS = ("host", "metric", "state"), ("grows", "leak"), ("rank", "world_size", "pid", "used_bytes")


def _checked(name: str, value: Any) -> Any:
    """The value if it has the field's type; None: it does not, or it is missing."""
    if name == "status":
        return value if value in _STATUSES else None
    if name in _TEXTS:
        return printable(value[:64]) if isinstance(value, str) else None
    if name in _FLAGS:
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if name in _COUNTS:
        return value if isinstance(value, int) and 0 <= value < 2**63 else None
    # Compared before conversion: an integer may be larger than any float. NaN is not less than anything.
    return float(value) if abs(value) < 1e15 else None
