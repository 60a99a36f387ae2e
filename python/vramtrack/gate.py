"""The leak gate: repeats a body until it is clear whether memory grows with each repetition. The statistics are in C++ code shared with
`vramtrack test`; docs/leak-gate.md explains them."""
from __future__ import annotations

import contextlib
import difflib
import gc
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from vramtrack import _core
from vramtrack.errors import LeakError
from vramtrack.garbage import only_new_objects
from vramtrack.gate_meter import GateMeter
from vramtrack.memory_source import MemorySource, Site
from vramtrack.printable import printable
from vramtrack.sources import default_source
from vramtrack.verdict import column

_SETTLING_ITERATIONS = 2
_EVIDENCE_ITERATIONS = 16
_FIRST_LOOK = 128
_WHEN_INCONCLUSIVE = ("warn", "fail", "ignore")
GrowthResult = _core.GrowthResult


@dataclass(frozen=True)
class GateReport:
    """The result of a gate: `because` in words, `result` with the figures (outcome, growth_bytes, low_bytes, high_bytes, ...), and after a
    failure `sites`, the lines that grew. `metric` names the memory that was tested, and `notes` has further remarks."""

    limit: str
    result: Any
    used_bytes: Tuple[float, ...] = field(repr=False, default=())
    sites: Tuple[Site, ...] = ()
    metric: str = "allocator_allocated"
    notes: Tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Growth above the limit is excluded."""
        return bool(self.result.passed)

    @property
    def failed(self) -> bool:
        """Growth above the limit is shown, at the error rate."""
        return bool(self.result.failed)

    @property
    def inconclusive(self) -> bool:
        """Growth above the limit is neither shown nor excluded."""
        return not self.passed and not self.failed

    @property
    def because(self) -> str:
        return "; ".join((str(self.result.because), *self.notes))

    def __str__(self) -> str:
        lines = [self.because]
        if self.sites:
            lines.append(f"largest growth over {_EVIDENCE_ITERATIONS} more iterations:")
            lines += [f"  {site}" for site in self.sites]
        return "\n".join(lines)


def _limit_bytes(limit: Union[str, float]) -> float:
    if isinstance(limit, str):
        return float(_core.parse_growth_limit(printable(limit)))
    if isinstance(limit, bool) or not isinstance(limit, (int, float)):
        raise TypeError(f'the limit is {limit!r}; expected, for example, "0.2 MiB/iter", or a number of bytes per iteration')
    if 0 < limit < 1:
        raise ValueError(f'a limit of {limit:g} bytes per iteration is too small to mean anything; write "{limit:g} MiB/iter"')
    return float(limit)


def _unit(limit: Union[str, float]) -> str:
    """The limit's word for one iteration: "step" in "0.2 MiB/step"."""
    unit = printable(limit).partition("/")[2].strip() if isinstance(limit, str) else ""
    return "iteration" if unit in ("", "iter") else unit


def _least_and_most(iterations: Union[int, Tuple[int, int]]) -> Tuple[int, int]:
    """A single number is the maximum. LeakGate lowers the first look to it."""
    pair = (iterations, iterations) if isinstance(iterations, int) else iterations
    whole = isinstance(pair, (tuple, list)) and len(pair) == 2 and all(type(n) is int for n in pair)
    if not whole or not 1 <= pair[0] <= pair[1]:
        raise ValueError(
            f"iterations is {iterations!r}; expected the maximum, for example 1024, or the first look and the maximum, (128, 1024)"
        )
    return (_FIRST_LOOK, pair[1]) if isinstance(iterations, int) else (pair[0], pair[1])


def refuse_unknown(names: Iterable[str], allowed: Sequence[str], what: str) -> None:
    """Raises TypeError with the nearest known name and a list of all names."""
    for name in names:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            meant = f"; did you mean {near[0]}?" if near else ";"
            raise TypeError(f"{what} has no argument {name!r}{meant} It has {', '.join(sorted(allowed))}")


def check_arguments(limit: Union[str, float], options: Dict[str, Any], what: str) -> None:
    """Raises the TypeError or ValueError that run_gate() would raise, without running anything."""
    refuse_unknown(options, option_names(), what)
    rate, caches = options.get("error_rate", 1e-4), options.get("caches", 4)
    if not isinstance(rate, (int, float)) or not isinstance(caches, int):
        raise TypeError(f"error_rate is {rate!r} and caches is {caches!r}; expected numbers")
    first, most = _least_and_most(options.get("iterations", (_FIRST_LOOK, 1024)))
    _core.LeakGate(_limit_bytes(limit), rate, first, most, caches, _unit(limit))


def option_names() -> List[str]:
    """The keywords of run_gate()."""
    return list(run_gate.__kwdefaults__ or {})


def _called(body: Callable[[], Any], number: int, most: int) -> None:
    """Calls body. An exception in a later call names the number of the call."""
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
    """Tests a recorded series: memory in bytes after each iteration."""
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
    """Repeats body() and tests the live memory after each iteration.

    limit       allowed growth per iteration: "0.2 MiB/iter", or a number of bytes
    error_rate  at most this share of healthy bodies fails
    iterations  (first, most): the gate tests after `first` iterations and each time their number has doubled, up to `most`. One
                number is `most`; `first` is then 128 or that number. If `most` is too small for a leak to be detected, it is
                raised, with a warning
    caches      how many of 24 stretches of the run may hold a step of a growing cache
    collect     True: calls gc.collect() after each iteration, so that garbage in cycles does not look like a leak. Objects from before
                the gate are frozen meanwhile (gc.freeze()), which makes a collection take microseconds
    evidence    True: after a failure, records 18 more iterations to name the lines that grew

    The result of body() is dropped. An exception in body() ends the gate; if it is an out-of-memory error and memory grew with every
    iteration until then, that is the result. If the allocator counts nothing (PYTORCH_NO_CUDA_MEMORY_CACHING=1, a pluggable
    allocator), the driver's figure is tested, and `metric` says so. run_gate() does not raise LeakError; check() does.
    """
    __tracebackhide__ = True  # under pytest: the caller's line is of interest
    memory = source if source is not None else default_source()
    first, most = _least_and_most(iterations)

    def new_gate() -> Any:
        capacity = memory.limit_bytes() or memory.capacity_bytes() or 0
        return _core.LeakGate(_limit_bytes(limit), error_rate, first, most, caches, _unit(limit), float(capacity))

    meter = GateMeter(memory, new_gate)
    if meter.gate.most > most:
        warnings.warn(
            f"iterations={iterations!r} is raised to {meter.gate.most}: fewer iterations cannot show a leak at an error rate of {_core.error_rate_words(error_rate)}",
            stacklevel=2,
        )
    notes: List[str] = []
    calls = 0
    result = None
    with only_new_objects() if collect else contextlib.nullcontext():
        while result is None:
            calls += 1
            try:
                _called(body, calls, meter.gate.most)
            except Exception as error:
                result = _result_at_out_of_memory(error, meter, limit, error_rate, caches)
                if result is None:
                    raise
                notes.append(f"call {calls} ran out of memory")
                evidence = False  # more iterations would fail, too
                break
            if collect:
                gc.collect()
            meter.read()
            if meter.gate.finished:
                result = meter.gate.result
        sites: List[Site] = []
        if result.failed and evidence:
            try:
                sites = _growing_sites(body, memory, calls, collect)
            except Exception as error:  # the verdict stands
                notes.append(printable(f"the lines could not be found: {type(error).__name__}: {error}".split("\n")[0]))
    words = limit if isinstance(limit, str) else str(_core.growth_text(limit))
    return GateReport(words, result, tuple(meter.gate.used_bytes), tuple(sites), meter.metric, (*meter.notes, *notes))


def _result_at_out_of_memory(
    error: Exception, meter: GateMeter, limit: Union[str, float], error_rate: float, caches: int
) -> Optional[Any]:
    """The failure, if the error is an out-of-memory error and memory grew until then."""
    if "out of memory" not in str(error).lower():
        return None
    result = _core.test_growth(column(meter.gate.used_bytes, "used_bytes"), _limit_bytes(limit), error_rate, caches, _unit(limit))
    return result if result.failed else None


def _growing_sites(body: Callable[[], Any], memory: MemorySource, calls: int, collect: bool) -> List[Site]:
    __tracebackhide__ = True
    memory.start_stacks()
    try:
        # The first iterations replace buffers allocated before the recording, and the recorder has no lines for those.
        last = calls + _SETTLING_ITERATIONS + _EVIDENCE_ITERATIONS
        for _ in range(_SETTLING_ITERATIONS):
            calls += 1
            _called(body, calls, last)
        if collect:
            gc.collect()
        before = memory.snapshot()
        for _ in range(_EVIDENCE_ITERATIONS):
            calls += 1
            _called(body, calls, last)
        if collect:
            gc.collect()
        return memory.growing_sites(before, memory.snapshot())
    finally:
        memory.stop_stacks()


def check(
    body: Callable[[], Any], limit: Union[str, float] = "0.2 MiB/iter", *, inconclusive: str = "warn", **options: Any
) -> GateReport:
    """Like run_gate(), and raises LeakError if the body leaks: an AssertionError with the figures and the lines that grew.

    inconclusive  what happens if growth above the limit is neither shown nor excluded: "warn" (the default), "fail" (LeakError) or
                  "ignore"
    """
    __tracebackhide__ = True
    if inconclusive not in _WHEN_INCONCLUSIVE:
        raise ValueError(f"inconclusive is {inconclusive!r}; expected warn, fail or ignore")
    refuse_unknown(options, option_names(), "check()")
    report = run_gate(body, limit, **options)
    if report.failed or (report.inconclusive and inconclusive == "fail"):
        raise LeakError(f"GPU memory {report}", report.result, report.sites)
    if report.inconclusive and inconclusive == "warn":
        warnings.warn(f"the leak gate is inconclusive: GPU memory {report}", stacklevel=2)
    return report


__all__ = ["GateReport", "check", "run_gate", "test_growth"]
