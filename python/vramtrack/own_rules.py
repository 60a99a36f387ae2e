"""The default rules: what persists over the whole run is a leak, whoever allocated it; what comes back is none.

The series looked at is the allocator's total after each call, in the order of time, over all functions: a leak that is
spread over forty functions is seen in it, and what A allocates and B frees is not. The functions are named afterwards.
"""
from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Dict, Iterator, List, Sequence, Tuple

from vramtrack import _core
from vramtrack import documented_rules as documented
from vramtrack.findings import MemoryPattern, PerformanceInsight, spikes_pattern
from vramtrack.profiler import ProfileResult
from vramtrack.statistics import mann_kendall_p, mean, median, quantile

MIB = 2**20
GIB = 2**30
Thresholds = Dict[str, float]

_ERROR_RATE = 1e-3
_CONTAMINATED = 4
_FEWEST_WINDOWS = 8
#: points that a finding takes off the score; what is normal in training (kept until backward()) takes none
COST = {"critical": 20, "warning": 10, "info": 0}


class Growth:
    """How the total grew over a run: `leaks`, from call number `begin` on, by `total_bytes`; `because` in words."""

    def __init__(self, leaks: bool, begin: int, total_bytes: int, because: str) -> None:
        self.leaks = leaks
        self.begin = begin
        self.total_bytes = total_bytes
        self.because = because


def in_time(results: Sequence[ProfileResult]) -> List[ProfileResult]:
    """By the end of the call: that is when `after` was read. Nested calls then come before the one around them."""
    return sorted(results, key=lambda r: r._time + r.execution_time)


def growth_of(ordered: Sequence[ProfileResult], thresholds: Thresholds) -> Growth:
    """Looks at the total after each call; and, where the functions take turns at allocating and freeing, at what is left at
    the lowest point of every round of calls, and of every block of them, should there be no rounds."""
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
    """Where windows of calls begin, several ways. A round: from one call of the rarest function to the next, whatever number
    of calls that is (gradients are accumulated over 64 calls of forward, then comes one step). Where the order is
    irregular: equal blocks, few enough to hold several rounds each."""
    calls: Dict[str, List[int]] = {}
    for at, result in enumerate(ordered):
        calls.setdefault(result.function_name, []).append(at)
    often = [places for places in calls.values() if len(places) >= _FEWEST_WINDOWS]
    if often:
        yield "round", min(often, key=len)
    for blocks in (24, 12):
        if len(ordered) >= 8 * blocks:
            yield "block of calls", [k * len(ordered) // blocks for k in range(blocks)]


def _keeps_rising(floors: Sequence[float]) -> bool:
    """Whether what is kept for ever (the lowest of all that follows) rises throughout, and not by four steps, as caches do."""
    kept = list(floors)
    for at in range(len(kept) - 2, -1, -1):
        kept[at] = min(kept[at], kept[at + 1])
    rises = sorted(b - a for a, b in zip(kept, kept[1:]))
    steps = min(_CONTAMINATED, len(floors) // 4)
    return sum(rises[: len(rises) - steps]) >= sum(rises) / 3 > 0


def _grows(totals: Sequence[float], thresholds: Thresholds, begins: Sequence[int], each: str) -> Growth:
    """`totals`: one for each window of calls; `begins`: with which call it begins; `each`: what it is in words."""
    n = len(totals)
    if n < max(4, thresholds["min_calls_for_analysis"]):
        return Growth(False, 0, 0, f"{n} calls: too few to tell")
    result = _core.test_growth(array("d", totals), 0.0, _ERROR_RATE, _CONTAMINATED, each)
    warm_up = int(result.warm_up_iterations)
    begin = begins[min(warm_up, n - 1)]
    rest = totals[warm_up:]
    end = max(1, len(rest) // 10)
    # From the median of the first tenth to that of the last, which lie nine tenths apart. A round has its own growth, too.
    total = int(median(rest[-end:]) - median(rest[:end]))
    if len(rest) > end:
        total = int(total * (len(rest) - (each == "call")) / (len(rest) - end))
    if result.outcome != "too_short":
        leaks = result.failed and total >= thresholds["min_leak_growth_bytes"]
        return Growth(leaks, begin, total, str(result.because))
    # A short run: every pair of calls is asked which is higher (Mann-Kendall), and no third may lie below the one before.
    if len(rest) < 6:
        return Growth(False, begin, total, f"{len(rest)} times one {each} after warm-up: too few to tell")
    p = mann_kendall_p(rest)
    third = len(rest) // 3
    floors = [min(rest[:third]), min(rest[third : 2 * third]), min(rest[2 * third :])]
    rising = floors[0] < floors[1] < floors[2] and floors[2] >= quantile(rest[:third], 0.5)
    slowing = (floors[2] - floors[1]) < 0.5 * (floors[1] - floors[0])
    leaks = p < _ERROR_RATE and rising and not slowing and total >= thresholds["min_leak_growth_bytes"]
    return Growth(leaks, begin, total, f"it rises from {each} to {each}, {len(rest)} of them, p = {p:.2g} (Mann-Kendall)")


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
    # Asked of the calls of those that are named: one that leaks at each call is not hidden by many that do not.
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
            f"Memory grows by {total / MIB:.0f} MiB over {len(changes)} calls {who}: {growth.because}",
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
                else "Profile more functions: none of these keeps what is lost",
                "Lists, caches and losses that keep their graph: .detach(), .item(), a bounded cache",
                "Confirm it: gc.collect() and torch.cuda.empty_cache() at a safe point; what persists is the leak",
                "Name the lines: vramtrack.Watch, or two snapshots and `vramtrack snapshot leaks`",
            ],
        )
    ]


def _positive_share(changes: Sequence[int]) -> float:
    return sum(change > 0 for change in changes) / len(changes)


def _growers(net: Dict[str, int], total: int) -> Tuple[List[str], int]:
    """The functions whose net growth makes up 95 % of the total, the largest first, and what lies outside of all. What one
    allocates and another frees cancels: the freeing functions' sum is taken off the largest growers first."""
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
    """A gap between reserved and allocated is the cache at work. It is fragmentation when it is large and still grows
    while what is allocated at the peaks does not."""
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
            f"Reserved memory grew by {reserved_growth / MIB:.0f} MiB in the last third of the calls, allocated memory by "
            f"{max(0, used_growth) / MIB:.0f} MiB",
            "critical" if late > 0.5 else "warning",
            affected,
            {
                "average_fragmentation": mean(ratios),
                "max_fragmentation": max(ratios),
                "high_fragmentation_functions": len(affected),
                "reserved_growth": reserved_growth,
            },
            [
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                "Round sizes that vary to a few fixed ones (batch, sequence length)",
                "torch.cuda.empty_cache() at a point where most is freed",
            ],
        )
    ]


def inefficient_allocations(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """What is kept, over the peak it took to make it, below inefficient_allocation_ratio in most of the calls that keep
    anything. Calls that keep nothing (a training step) have temporaries, and that is what they are for."""
    worst: Dict[str, float] = {}
    limit = thresholds["inefficient_allocation_ratio"]
    for name, calls in documented._by_function(results).items():
        kept = []
        for call in calls:
            extra = call.peak_memory_usage() - call._before.allocated
            if call.memory_allocated >= MIB and extra > 0:
                kept.append(call.memory_allocated / extra)
        enough = max(thresholds["min_calls_for_analysis"], 0.5 * len(calls))
        if len(kept) >= enough and mean(kept) < limit:
            worst[name] = mean(kept)
    if not worst:
        return []
    names = sorted(worst, key=lambda name: worst[name])
    return [
        MemoryPattern(
            "inefficient_allocation",
            f"'{names[0]}' keeps {100 * worst[names[0]]:.0f} % of the memory it takes to make it",
            "warning",
            names,
            {"inefficient_function_count": len(names), "average_efficiency": mean(list(worst.values()))},
            ["Work in place, or in pieces", "Free what is not needed any more before the next large allocation"],
        )
    ]


def memory_spikes(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """Within each function: calls that grow above Q3 + 1.5 IQR of its growing calls, and twice the median, and 64 MiB. A
    function's first call is its warm-up."""
    spikes: List[str] = []
    grown_all: List[int] = []
    limits: List[float] = []
    for name, calls in documented._by_function(results).items():
        grown = [call.memory_allocated for call in calls[1:] if call.memory_allocated > 0]
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
            ["Look at the inputs of these calls: one batch much larger than the others?", "Process in smaller batches"],
        )
    ]


def repeated_allocations(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """Ten calls or more of which most allocate anew, less than 50 MiB each, and it is freed again elsewhere: churn. What is
    not freed is a leak and told as one."""
    ordered = in_time(results)
    allocated = sum(r.memory_allocated for r in ordered)
    freed = sum(r.memory_freed for r in ordered)
    if allocated == 0 or freed < 0.5 * allocated:
        return []
    frequent = []
    for name, calls in documented._by_function(results).items():
        growing = [call.memory_allocated for call in calls if call.memory_allocated >= MIB]
        if len(calls) >= 10 and len(growing) > len(calls) / 2 and mean(growing) < 50 * MIB:
            frequent.append((sum(growing), name))
    if not frequent:
        return []
    frequent.sort(key=lambda entry: -entry[0])
    top = [name for _, name in frequent[:5]]
    return [
        MemoryPattern(
            "repeated_allocations",
            f"'{top[0]}' allocates anew in most of its calls, and it is freed again",
            "info",
            top,
            {
                "function_count": len(frequent),
                "total_impact_functions": top,
                "total_memory_from_repeated": sum(total for total, _ in frequent),
            },
            ["Allocate once and use it again (out=, copy_)", "Put several operations into one"],
        )
    ]


def insights(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[PerformanceInsight]:
    """The documented observations; only a trend of memory that the leak test confirms costs points."""
    found = [*documented._execution_times(results, thresholds), *documented._correlation(results)]
    for insight in found:
        insight.impact = "info"
    if growth_of(in_time(results), thresholds).leaks:
        found += documented.trend(results)
    return found
