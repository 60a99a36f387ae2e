"""The leak gate: repeats a body until it is known whether memory grows with it. Its statistics are C++ and shared with
`vramtrack test`; docs/leak-gate.md has their mathematics."""
from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from vramtrack import _core
from vramtrack.errors import LeakError
from vramtrack.sources import MemorySource, Site, default_source

_SETTLING_ITERATIONS = 2
_EVIDENCE_ITERATIONS = 16
GrowthResult = _core.GrowthResult


@dataclass(frozen=True)
class GateReport:
    """What a gate concluded: `result` (outcome, growth_bytes, low_bytes, high_bytes, because, ...), and on failure the lines that
    grew."""

    limit: str
    result: Any
    used_bytes: Tuple[float, ...] = field(repr=False, default=())
    sites: Tuple[Site, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.result.failed

    def __str__(self) -> str:
        lines = [str(self.result.because)]
        if self.sites:
            lines.append(f"grew most over {_EVIDENCE_ITERATIONS} more iterations:")
            lines += [f"  {site}" for site in self.sites]
        return "\n".join(lines)


def _limit_bytes(limit: Union[str, float]) -> float:
    return float(_core.parse_growth_limit(limit)) if isinstance(limit, str) else float(limit)


def test_growth(
    used_bytes: Sequence[float], limit: Union[str, float] = 0.0, *, error_rate: float = 1e-4, caches: int = 4
) -> Any:
    """Tests a series that is already there: memory after each iteration, in bytes."""
    from vramtrack.verdict import _column

    return _core.test_growth(_column(used_bytes, "used_bytes"), _limit_bytes(limit), error_rate, caches)


test_growth.__test__ = False  # type: ignore[attr-defined]  # pytest: no test


def run_gate(
    body: Callable[[], Any],
    limit: Union[str, float] = "0.2 MiB/iter",
    *,
    source: Optional[MemorySource] = None,
    error_rate: float = 1e-4,
    iterations: Tuple[int, int] = (128, 1024),
    caches: int = 4,
    collect: bool = True,
    evidence: bool = True,
) -> GateReport:
    """Repeats body() and tests the memory that is live after each iteration.

    limit       growth an iteration that is allowed: "0.2 MiB/iter", or bytes
    error_rate  at most this share of healthy bodies fails
    iterations  it is looked at after the first number of them, and each time that has doubled, up to the second number
    caches      of 24 stretches so many may hold a cache that takes another piece
    collect     gc.collect() after each iteration: garbage in cycles is none of a leak's. Costs what a collection costs
    evidence    after a failure, 18 more iterations while the allocator records, to name the lines

    What body returns is dropped. Exceptions end it at once. LeakError is not raised here: see check().
    """
    memory = source if source is not None else default_source()
    gate = _core.LeakGate(_limit_bytes(limit), error_rate, iterations[0], iterations[1], caches)
    while not gate.finished:
        body()
        if collect:
            gc.collect()
        gate.add(float(memory.counters().allocated))
    sites: List[Site] = []
    if gate.result.failed and evidence:
        memory.start_stacks()
        try:
            # What each iteration replaces is let settle: the recorder knows no line of what was there before it.
            for _ in range(_SETTLING_ITERATIONS):
                body()
            gc.collect()
            before = memory.snapshot()
            for _ in range(_EVIDENCE_ITERATIONS):
                body()
            gc.collect()
            sites = memory.growing_sites(before, memory.snapshot())
        finally:
            memory.stop_stacks()
    words = limit if isinstance(limit, str) else str(_core.growth_text(limit))
    return GateReport(words, gate.result, tuple(gate.used_bytes), tuple(sites))


def check(body: Callable[[], Any], limit: Union[str, float] = "0.2 MiB/iter", **options: Any) -> GateReport:
    """run_gate(), and LeakError when it fails: an AssertionError with the figures and the growing lines."""
    report = run_gate(body, limit, **options)
    if not report.passed:
        raise LeakError(f"GPU memory {report}", report.result, report.sites)
    return report


__all__ = ["GateReport", "check", "run_gate", "test_growth"]
