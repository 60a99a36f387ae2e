"""The default rules: memory that persists over the whole run is a leak, whichever function allocated it.

The rules test one series: the allocator's total after each call, in time order, over all functions. It shows a leak that is spread
over forty functions, and does not show memory that A allocates and B frees. The functions are named afterwards.
"""
from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Dict, Iterator, List, Sequence, Tuple

from vramtrack import _core
from vramtrack import documented_rules as documented
from vramtrack.findings import MemoryPattern, PerformanceInsight, repeated_pattern, spikes_pattern
from vramtrack.profiler import ProfileResult
from vramtrack.statistics import mean, median, quantile
from vramtrack.units import GIB, MIB, format_size

Thresholds = Dict[str, float]

_ERROR_RATE = 1e-3
_CONTAMINATED = 4
_FEWEST_WINDOWS = 8
#: points that a finding costs; normal behaviour in training (memory kept until backward()) costs none
COST = {"critical": 20, "warning": 10, "info": 0}


class Growth:
    """How the total grew over a run: whether it `leaks`, from call number `begin` on, by `total_bytes`, and `because` in words."""

    def __init__(self, leaks: bool, begin: int, total_bytes: int, because: str) -> None:
        self.leaks = leaks
        self.begin = begin
        self.total_bytes = total_bytes
        self.because = because


def in_time(results: Sequence[ProfileResult]) -> List[ProfileResult]:
    """Results ordered by the end of the call, when `after` was read. A nested call precedes the call around it."""
    return sorted(results, key=lambda r: r._time + r.execution_time)


def growth_of(ordered: Sequence[ProfileResult], thresholds: Thresholds) -> Growth:
    """Tests the total after each call. If functions take turns allocating and freeing, it also tests the lowest total of every round of
    calls, or of every block of calls if there are no rounds."""
    totals = [float(r._after.allocated) for r in ordered]
    growth = _grows(totals, thresholds, range(len(totals)), "call")
    if growth.leaks or len({r.function_name for r in ordered}) < 2:
        return growth
    for each, begins in _windows(ordered):
        floors = [min(totals[begin:end]) for begin, end in zip(begins, [*begins[1:], len(totals)])]
        by_window = _grows(floors, thresholds, begins, each)
        if by_window.leaks and _keeps_rising(floors[bisect_left(begins, by_window.begin) :]):
            return by_window
    return growth


def _windows(ordered: Sequence[ProfileResult]) -> Iterator[Tuple[str, List[int]]]:
    """Several ways to divide the calls into windows, given as the numbers of their first calls. A round lasts from one call of the rarest
    function to the next, for example 64 calls of forward and one step. If the order is irregular, the windows are equal blocks, each long
    enough for several rounds."""
    calls: Dict[str, List[int]] = {}
    for at, result in enumerate(ordered):
        calls.setdefault(result.function_name, []).append(at)
    often = [indices for indices in calls.values() if len(indices) >= _FEWEST_WINDOWS]
    if often:
        yield "round", min(often, key=len)
    for blocks in (24, 12):
        if len(ordered) >= 8 * blocks:
            yield "block of calls", [k * len(ordered) // blocks for k in range(blocks)]


def _keeps_rising(floors: Sequence[float]) -> bool:
    """Whether the memory kept forever (the lowest of all later values) rises throughout, rather than in four steps as caches do."""
    kept = list(floors)
    for at in range(len(kept) - 2, -1, -1):
        kept[at] = min(kept[at], kept[at + 1])
    rises = sorted(b - a for a, b in zip(kept, kept[1:]))
    steps = min(_CONTAMINATED, len(floors) // 4)
    return sum(rises[: len(rises) - steps]) >= sum(rises) / 3 > 0


def _grows(totals: Sequence[float], thresholds: Thresholds, begins: Sequence[int], each: str) -> Growth:
    """`totals`: one per window of calls. `begins`: the first call of each window. `each`: the word for a window."""
    n = len(totals)
    if n < max(4, thresholds["min_calls_for_analysis"]):
        return Growth(False, 0, 0, f"{n} calls are too few to tell")
    result = _core.test_growth(array("d", totals), 0.0, _ERROR_RATE, _CONTAMINATED, each)
    warm_up = int(result.warm_up_iterations)
    begin = begins[min(warm_up, n - 1)]
    rest = totals[warm_up:]
    end = max(1, len(rest) // 10)
    # From the median of the first tenth to that of the last, which are nine tenths apart. Growth within a round counts as well.
    total = int(median(rest[-end:]) - median(rest[:end]))
    if len(rest) > end:
        total = int(total * (len(rest) - (each == "call")) / (len(rest) - end))
    if result.outcome != "too_short":
        leaks = result.failed and total >= thresholds["min_leak_growth_bytes"]
        return Growth(leaks, begin, total, str(result.because))
    if len(rest) < 6:
        return Growth(False, begin, total, f"too few to tell after warm-up: {len(rest)} (one per {each})")
    leaks, p = _core.test_short_growth(array("d", rest), _ERROR_RATE, total, thresholds["min_leak_growth_bytes"])
    return Growth(leaks, begin, total, f"memory rises from each {each} to the next, {len(rest)} in all, p = {p:.2g} (Mann-Kendall)")


def memory_leaks(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    ordered = in_time(results)
    growth = growth_of(ordered, thresholds)
    if not growth.leaks:
        return []
    after_warm_up = ordered[growth.begin :]
    by_function: Dict[str, List[int]] = {}
    for result in after_warm_up:
        by_function.setdefault(result.function_name, []).append(result.memory_diff())
    net = {name: sum(changes) for name, changes in by_function.items()}
    changes = [change for each in by_function.values() for change in each]
    functions, elsewhere = _growers(net, growth.total_bytes)
    # Only calls of the named functions count, so that a function that leaks at each call is not hidden by many that do not.
    share = {name: _positive_share(by_function[name]) for name in functions}
    if functions:
        functions = [name for name in functions if share[name] > thresholds["memory_leak_ratio"]]
        if not functions:
            return []
    positive = max(share.values()) if share else _positive_share(changes)
    total = growth.total_bytes
    if len(functions) == 1:
        who = f"in '{functions[0]}'"
    elif functions:
        who = f"over {len(functions)} functions, most of it in '{functions[0]}'"
    else:
        who = "outside the profiled functions"
    return [
        MemoryPattern(
            "memory_leak",
            f"Memory grows by {format_size(total)} over {len(changes)} calls {who}: {growth.because}",
            "critical" if total > GIB else "warning",
            functions,
            {
                "total_memory_growth": total,
                "average_growth_per_call": total / len(changes),
                "positive_growth_ratio": positive,
                "call_count": len(changes),
                "growth_by_function": {name: net[name] for name in functions},
                "growth_elsewhere": elsewhere,
                "warm_up_calls": growth.begin,
            },
            [
                f"Look at what {functions[0]!r} keeps from one call to the next" if functions
                else "Profile more functions: none of the profiled ones keeps the memory",
                "Check lists, caches and losses that keep their graph; use .detach(), .item() or a bounded cache",
                "Confirm the leak: call gc.collect() and torch.cuda.empty_cache() at a safe point; what persists is the leak",
                "Find the lines with vramtrack.Watch, or with two snapshots and `vramtrack snapshot leaks`",
            ],
        )
    ]


def _positive_share(changes: Sequence[int]) -> float:
    return sum(change > 0 for change in changes) / len(changes)


def _growers(net: Dict[str, int], total: int) -> Tuple[List[str], int]:
    """The functions whose net growth makes up 95 % of the total, largest first, and the growth outside all functions. Memory that one
    function allocates and another frees cancels out: the freed sum is subtracted from the largest growers first."""
    freed = -sum(change for change in net.values() if change < 0)
    growers = sorted((name for name in net if net[name] > 0), key=lambda name: -net[name])
    own = dict(net)
    for name in growers:
        taken = min(own[name], freed)
        own[name] -= taken
        freed -= taken
    growers = sorted((name for name in growers if own[name] > 0), key=lambda name: -own[name])
    named: List[str] = []
    covered = 0
    for name in growers:
        if covered >= 0.95 * total:
            break
        named.append(name)
        covered += own[name]
    return named, max(0, total - sum(net.values()))


def fragmentation(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """A gap between reserved and allocated memory is normal for a cache. It is fragmentation if it is large and still grows while the
    allocated peaks do not."""
    ordered = in_time(results)
    rows = [r._after for r in ordered]
    rows = [row for row in rows if row.reserved > 0]
    if len(rows) < max(6, thresholds["min_calls_for_analysis"]):
        return []
    third = len(rows) // 3
    ratios = [(row.reserved - max(row.allocated, 0)) / row.reserved for row in rows]
    late = mean(ratios[-third:])
    if late <= thresholds["fragmentation_ratio"]:
        return []
    middle, last = rows[third : 2 * third], rows[-third:]
    reserved_growth = max(row.reserved for row in last) - max(row.reserved for row in middle)
    used_growth = max(max(r.allocated, r.peak_allocated) for r in last) - max(max(r.allocated, r.peak_allocated) for r in middle)
    if reserved_growth < thresholds["min_leak_growth_bytes"] or used_growth > 0.5 * reserved_growth:
        return []
    high = [
        r.function_name
        for r in ordered
        if r._after.reserved > 0
        and (r._after.reserved - r._after.allocated) / r._after.reserved > thresholds["fragmentation_ratio"]
    ]
    affected = list(dict.fromkeys(high))
    return [
        MemoryPattern(
            "fragmentation",
            f"Reserved memory grew by {format_size(reserved_growth)} in the last third of the calls, allocated memory by "
            f"{format_size(max(0, used_growth))}",
            "critical" if late > 0.5 else "warning",
            affected,
            {
                "average_fragmentation": mean(ratios),
                "max_fragmentation": max(ratios),
                "high_fragmentation_functions": len(affected),
                "reserved_growth": reserved_growth,
            },
            [
                "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                "Round varying sizes (batch, sequence length) to a few fixed ones",
                "Call torch.cuda.empty_cache() where most memory is free",
            ],
        )
    ]


def inefficient_allocations(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """Memory kept, divided by the peak that creating it took, is below inefficient_allocation_ratio in most calls that keep memory. Calls
    that keep nothing, such as a training step, are expected to have temporaries."""
    worst: Dict[str, float] = {}
    limit = thresholds["inefficient_allocation_ratio"]
    for name, calls in documented._by_function(results).items():
        kept = []
        for call in calls:
            extra = call.peak_memory_usage() - call._before.allocated
            if call.memory_kept >= MIB and extra > 0:
                kept.append(call.memory_kept / extra)
        enough = max(thresholds["min_calls_for_analysis"], 0.5 * len(calls))
        if len(kept) >= enough and mean(kept) < limit:
            worst[name] = mean(kept)
    if not worst:
        return []
    names = sorted(worst, key=lambda name: worst[name])
    return [
        MemoryPattern(
            "inefficient_allocation",
            f"'{names[0]}' keeps {100 * worst[names[0]]:.0f} % of the memory it allocates at its peak",
            "warning",
            names,
            {"inefficient_function_count": len(names), "average_efficiency": mean(list(worst.values()))},
            ["Work in place or in smaller pieces", "Free memory that is no longer needed before the next large allocation"],
        )
    ]


def memory_spikes(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """Within each function: calls that grow by more than Q3 + 1.5 IQR of its growing calls, twice their median, and 64 MiB. The first
    call of a function is warm-up and does not count."""
    spikes: List[str] = []
    grown_all: List[int] = []
    limits: List[float] = []
    for name, calls in documented._by_function(results).items():
        grown = [call.memory_kept for call in calls[1:] if call.memory_kept > 0]
        if len(grown) < 5:
            continue
        q1, q3 = quantile(grown, 0.25), quantile(grown, 0.75)
        limit = max(q3 + 1.5 * (q3 - q1), 2 * median(grown), 64.0 * MIB)
        found = [value for value in grown if value > limit]
        if found:
            spikes += [name] * len(found)
            grown_all += grown
            limits.append(limit)
    if not spikes:
        return []
    return [
        spikes_pattern(
            spikes,
            min(limits),
            grown_all,
            ["Look at the inputs of these calls: is one batch much larger than the others?", "Process in smaller batches"],
        )
    ]


def repeated_allocations(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """Churn: ten or more calls, most of which allocate less than 50 MiB that is freed elsewhere. Memory that is not freed is reported as a
    leak."""
    ordered = in_time(results)
    allocated = sum(r.memory_kept for r in ordered)
    freed = sum(r.memory_released for r in ordered)
    if allocated == 0 or freed < 0.5 * allocated:
        return []
    frequent = []
    for name, calls in documented._by_function(results).items():
        growing = [call.memory_kept for call in calls if call.memory_kept >= MIB]
        if len(calls) >= 10 and len(growing) > len(calls) / 2 and mean(growing) < 50 * MIB:
            frequent.append((sum(growing), name))
    return repeated_pattern(
        "'{}' allocates memory in most of its calls, which is then freed elsewhere",
        frequent,
        ["Allocate once and reuse the memory (out=, copy_)", "Combine several operations into one"],
    )


def insights(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[PerformanceInsight]:
    """The documented observations. Only a memory trend that the leak test confirms costs points."""
    found = [*documented._execution_times(results, thresholds), *documented._correlation(results)]
    for insight in found:
        insight.impact = "info"
    if growth_of(in_time(results), thresholds).leaks:
        found += documented.trend(results)
    return found
