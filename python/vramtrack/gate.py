"""The leak gate: repeats a body until it is known whether memory grows with it. Its statistics are C++ and shared with
`vramtrack test`; docs/leak-gate.md has their mathematics."""
from __future__ import annotations

import difflib
import gc
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from vramtrack import _core
from vramtrack.errors import LeakError
from vramtrack.memory_source import MemorySource, Site
from vramtrack.sources import default_source
from vramtrack.verdict import column

_SETTLING_ITERATIONS = 2
_EVIDENCE_ITERATIONS = 16
_FIRST_LOOK = 128
GrowthResult = _core.GrowthResult


@dataclass(frozen=True)
class GateReport:
    """What a gate concluded: `because` in words, `result` (outcome, growth_bytes, low_bytes, high_bytes, ...), and on failure the
    lines that grew."""

    limit: str
    result: Any
    used_bytes: Tuple[float, ...] = field(repr=False, default=())
    sites: Tuple[Site, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.result.failed

    @property
    def because(self) -> str:
        return str(self.result.because)

    def __str__(self) -> str:
        lines = [self.because]
        if self.sites:
            lines.append(f"grew most over {_EVIDENCE_ITERATIONS} more iterations:")
            lines += [f"  {site}" for site in self.sites]
        return "\n".join(lines)


def _limit_bytes(limit: Union[str, float]) -> float:
    if isinstance(limit, str):
        return float(_core.parse_growth_limit(limit))
    if isinstance(limit, bool) or not isinstance(limit, (int, float)):
        raise TypeError(f'the limit is {limit!r}: expected for example "0.2 MiB/iter", or bytes an iteration')
    if 0 < limit < 1:
        raise ValueError(f'a limit of {limit:g} bytes an iteration is none; write "{limit:g} MiB/iter"')
    return float(limit)


def _unit(limit: Union[str, float]) -> str:
    """What the limit calls one iteration: "step" of "0.2 MiB/step"."""
    unit = limit.partition("/")[2].strip() if isinstance(limit, str) else ""
    return "iteration" if unit in ("", "iter") else unit


def _least_and_most(iterations: Union[int, Tuple[int, int]]) -> Tuple[int, int]:
    """A number is the most of them; LeakGate lowers the first look to it."""
    pair = (iterations, iterations) if isinstance(iterations, int) else iterations
    whole = isinstance(pair, (tuple, list)) and len(pair) == 2 and all(type(n) is int for n in pair)
    if not whole or not 1 <= pair[0] <= pair[1]:
        raise ValueError(
            f"iterations is {iterations!r}: expected the most of them, as 1024, or the first look and the most, as (128, 1024)"
        )
    return (_FIRST_LOOK, pair[1]) if isinstance(iterations, int) else (pair[0], pair[1])


def refuse_unknown(names: Iterable[str], allowed: Sequence[str], what: str) -> None:
    """TypeError with the nearest name there is, and all of them."""
    for name in names:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            meant = f"; did you mean {near[0]}?" if near else ";"
            raise TypeError(f"{what} has no argument {name!r}{meant} It has {', '.join(sorted(allowed))}")


def check_arguments(limit: Union[str, float], options: Dict[str, Any], what: str) -> None:
    """What run_gate() would refuse, without running anything: TypeError or ValueError, in one line."""
    refuse_unknown(options, option_names(), what)
    rate, caches = options.get("error_rate", 1e-4), options.get("caches", 4)
    if not isinstance(rate, (int, float)) or not isinstance(caches, int):
        raise TypeError(f"error_rate is {rate!r} and caches {caches!r}: expected numbers")
    first, most = _least_and_most(options.get("iterations", (_FIRST_LOOK, 1024)))
    _core.LeakGate(_limit_bytes(limit), rate, first, most, caches, _unit(limit))


def option_names() -> List[str]:
    """The keywords of run_gate()."""
    return list(run_gate.__kwdefaults__ or {})


def _called(body: Callable[[], Any], number: int, most: int) -> None:
    """Calls it; an exception of a later call says which call it was."""
    __tracebackhide__ = True
    try:
        body()
    except BaseException as error:
        if number > 1 and hasattr(error, "add_note"):
            error.add_note(repeated_words(number, most))
        raise


def repeated_words(number: int, most: Optional[int] = None) -> str:
    return f"call {number}{f' of up to {most}' if most else ''}; the leak gate repeats the body"


def test_growth(
    used_bytes: Sequence[float], limit: Union[str, float] = 0.0, *, error_rate: float = 1e-4, caches: int = 4
) -> Any:
    """Tests a series that is already there: memory after each iteration, in bytes."""
    return _core.test_growth(column(used_bytes, "used_bytes"), _limit_bytes(limit), error_rate, caches, _unit(limit))


test_growth.__test__ = False  # type: ignore[attr-defined]  # pytest: no test


def run_gate(
    body: Callable[[], Any],
    limit: Union[str, float] = "0.2 MiB/iter",
    *,
    source: Optional[MemorySource] = None,
    error_rate: float = 1e-4,
    iterations: Union[int, Tuple[int, int]] = (128, 1024),
    caches: int = 4,
    collect: bool = True,
    evidence: bool = True,
) -> GateReport:
    """Repeats body() and tests the memory that is live after each iteration.

    limit       growth an iteration that is allowed: "0.2 MiB/iter", or bytes
    error_rate  at most this share of healthy bodies fails
    iterations  it is looked at after the first number of them, and each time that has doubled, up to the second number. One
                number is the second; the first is 128, or that number. Raised, with a warning, to the fewest that can fail
    caches      of 24 stretches so many may hold a cache that takes another piece
    collect     gc.collect() after each iteration: garbage in cycles is none of a leak's. Costs what a collection costs
    evidence    after a failure, 18 more iterations while the allocator records, to name the lines

    What body returns is dropped. Exceptions end it at once. LeakError is not raised here: see check().
    """
    __tracebackhide__ = True  # under pytest: the caller's line is of interest
    memory = source if source is not None else default_source()
    first, most = _least_and_most(iterations)
    gate = _core.LeakGate(_limit_bytes(limit), error_rate, first, most, caches, _unit(limit))
    if gate.most > most:
        warnings.warn(
            f"iterations={iterations!r} is raised to {gate.most}: fewer cannot fail at an error rate of {_core.error_rate_words(error_rate)}",
            stacklevel=2,
        )
    calls = 0
    while not gate.finished:
        calls += 1
        _called(body, calls, gate.most)
        if collect:
            gc.collect()
        gate.add(float(memory.counters().allocated))
    sites: List[Site] = []
    if gate.result.failed and evidence:
        memory.start_stacks()
        try:
            # What each iteration replaces is let settle: the recorder knows no line of what was there before it.
            last = calls + _SETTLING_ITERATIONS + _EVIDENCE_ITERATIONS
            for _ in range(_SETTLING_ITERATIONS):
                calls += 1
                _called(body, calls, last)
            gc.collect()
            before = memory.snapshot()
            for _ in range(_EVIDENCE_ITERATIONS):
                calls += 1
                _called(body, calls, last)
            gc.collect()
            sites = memory.growing_sites(before, memory.snapshot())
        finally:
            memory.stop_stacks()
    words = limit if isinstance(limit, str) else str(_core.growth_text(limit))
    return GateReport(words, gate.result, tuple(gate.used_bytes), tuple(sites))


def check(body: Callable[[], Any], limit: Union[str, float] = "0.2 MiB/iter", **options: Any) -> GateReport:
    """run_gate(), and LeakError when it fails: an AssertionError with the figures and the growing lines."""
    __tracebackhide__ = True
    refuse_unknown(options, option_names(), "check()")
    report = run_gate(body, limit, **options)
    if not report.passed:
        raise LeakError(f"GPU memory {report}", report.result, report.sites)
    return report


__all__ = ["GateReport", "check", "run_gate", "test_growth"]
