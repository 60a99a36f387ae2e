"""The documented rules of gpumemprof's MemoryAnalyzer, unchanged, for comparison and for users who rely on them.

docs/python.md lists the leaks they miss and their false reports. rules="documented" selects them.
"""
from __future__ import annotations

from typing import Any, Dict, List, Sequence

from vramtrack.findings import MemoryPattern, PerformanceInsight, repeated_pattern, spikes_pattern
from vramtrack.profiler import ProfileResult
from vramtrack.statistics import linear_fit, mean, quantile, stdev
from vramtrack.units import GIB, MIB

Thresholds = Dict[str, float]
#: points that a finding costs
COST = {"critical": 20, "warning": 10, "info": 5}


def _by_function(results: Sequence[ProfileResult]) -> Dict[str, List[ProfileResult]]:
    functions: Dict[str, List[ProfileResult]] = {}
    for result in results:
        functions.setdefault(result.function_name, []).append(result)
    return functions


def memory_leaks(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """Per function: mean growth > 0, share of growing calls > memory_leak_ratio, total growth > 100 MiB."""
    patterns = []
    for name, calls in _by_function(results).items():
        if len(calls) < thresholds["min_calls_for_analysis"]:
            continue
        changes = [call.memory_diff() for call in calls]
        total = sum(changes)
        positive = sum(change > 0 for change in changes) / len(changes)
        if total > 100 * MIB and positive > thresholds["memory_leak_ratio"]:
            patterns.append(
                MemoryPattern(
                    "memory_leak",
                    f"Function '{name}' shows potential memory leak pattern",
                    "critical" if total > GIB else "warning",
                    [name],
                    {
                        "total_memory_growth": total,
                        "average_growth_per_call": total / len(changes),
                        "positive_growth_ratio": positive,
                        "call_count": len(changes),
                    },
                    [
                        f"Review memory management in '{name}'",
                        "Check for uncleaned tensors or variables",
                        "Use torch.cuda.empty_cache() if appropriate",
                        "Consider using context managers for tensor lifecycle",
                    ],
                )
            )
    return patterns


def fragmentation(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """Mean of (reserved - allocated) / reserved after the calls > fragmentation_ratio."""
    ratios = []
    high = []
    for result in results:
        after = result.memory_after
        if after.reserved_memory > 0:
            ratio = (after.reserved_memory - after.allocated_memory) / after.reserved_memory
            ratios.append(ratio)
            if ratio > thresholds["fragmentation_ratio"]:
                high.append(result.function_name)
    if not ratios or mean(ratios) <= thresholds["fragmentation_ratio"]:
        return []
    affected = list(dict.fromkeys(high))
    return [
        MemoryPattern(
            "fragmentation",
            "High memory fragmentation detected across operations",
            "critical" if mean(ratios) > 0.5 else "warning",
            affected,
            {
                "average_fragmentation": mean(ratios),
                "max_fragmentation": max(ratios),
                "high_fragmentation_functions": len(affected),
            },
            [
                "Call torch.cuda.empty_cache() where a lot of memory was freed",
                "Restructure the code so that it allocates and frees less often",
                "Allocate buffers once and reuse them",
            ],
        )
    ]


def inefficient_allocations(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """Peak above the start, divided by the memory kept, below inefficient_allocation_ratio. The rule cannot fire if the peak is reset
    at the beginning of each call: the memory kept is part of the peak, so the ratio is 1 or more."""
    efficiency: Dict[str, List[float]] = {}
    limit = thresholds["inefficient_allocation_ratio"]
    for result in results:
        extra = result.peak_memory_usage() - result.memory_before.allocated_memory
        if result.memory_kept > 0 and extra > 0 and extra / result.memory_kept < limit:
            efficiency.setdefault(result.function_name, []).append(extra / result.memory_kept)
    worst = {
        name: mean(values) for name, values in efficiency.items() if len(values) >= thresholds["min_calls_for_analysis"]
    }
    if not worst:
        return []
    return [
        MemoryPattern(
            "inefficient_allocation",
            "Functions with inefficient memory allocation patterns detected",
            "warning",
            list(worst),
            {"inefficient_function_count": len(worst), "average_efficiency": mean(list(worst.values()))},
            ["Review what these functions allocate", "Work in place where possible", "Use views instead of copies"],
        )
    ]


def memory_spikes(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """Growing calls above Q3 + 1.5 IQR of all growing calls of all functions together."""
    grown = [result.memory_kept for result in results if result.memory_kept > 0]
    if len(grown) < 3:
        return []
    q1, q3 = quantile(grown, 0.25), quantile(grown, 0.75)
    limit = q3 + 1.5 * (q3 - q1)
    spikes = [result.function_name for result in results if result.memory_kept > limit]
    if not spikes:
        return []
    return [
        spikes_pattern(
            spikes,
            limit,
            grown,
            [
                "Look at what these functions allocate at once",
                "Process in smaller batches to lower the peak",
                "Use gradient checkpointing for large models",
            ],
        )
    ]


def repeated_allocations(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[MemoryPattern]:
    """Ten or more calls that grow by less than 50 MiB on average, including calls that do not grow."""
    frequent = []
    for name, calls in _by_function(results).items():
        total = sum(call.memory_kept for call in calls)
        if len(calls) >= 10 and total / len(calls) < 50 * MIB:
            frequent.append((total, name))
    return repeated_pattern(
        "Functions with frequent small allocations detected",
        frequent,
        [
            "Allocate memory once for functions that are called often",
            "Reuse buffers instead of allocating new ones",
            "Put several operations into one",
        ],
    )


def insights(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[PerformanceInsight]:
    return [
        *_execution_times(results, thresholds),
        *_memory_efficiency(results, thresholds),
        *_correlation(results),
        *trend(results),
    ]


def _execution_times(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[PerformanceInsight]:
    found = []
    times = {
        name: [call.execution_time for call in calls]
        for name, calls in _by_function(results).items()
        if len(calls) >= thresholds["min_calls_for_analysis"]
    }
    means = {name: mean(values) for name, values in times.items()}
    if means:
        limit = quantile(list(means.values()), thresholds["slow_function_percentile"])
        slow = sorted((name for name in means if means[name] > limit), key=lambda name: -means[name])
        if slow:
            found.append(
                PerformanceInsight(
                    "execution_time",
                    "Slow Function Detection",
                    f"Identified {len(slow)} functions with high execution times",
                    "high" if len(slow) > 3 else "medium",
                    0.8,
                    {
                        "slow_functions": slow[:5],
                        "slowest_function": slow[0],
                        "slowest_time": means[slow[0]],
                        "threshold": limit,
                    },
                    ["Profile the slow functions in detail", "Look for waits between CPU and GPU"],
                )
            )
    varying = [
        (name, stdev(values) / means[name])
        for name, values in times.items()
        if len(values) > 1 and means[name] > 0 and stdev(values) / means[name] > 0.5
    ]
    if varying:
        found.append(
            PerformanceInsight(
                "execution_time",
                "Inconsistent Execution Times",
                "Functions with highly variable execution times detected",
                "medium",
                0.7,
                {"variable_functions": [name for name, _ in varying], "highest_variance": max(varying, key=lambda v: v[1])},
                ["Look for inputs of different sizes", "Leave the first calls out of the timing"],
            )
        )
    return found


def _memory_efficiency(results: Sequence[ProfileResult], thresholds: Thresholds) -> List[PerformanceInsight]:
    rates = [(r.function_name, r.memory_kept / r.execution_time) for r in results if r.execution_time > 0]
    if not rates:
        return []
    limit = quantile([rate for _, rate in rates], thresholds["high_memory_percentile"])
    intensive = list(dict.fromkeys(name for name, rate in rates if rate > limit))
    if not intensive:
        return []
    return [
        PerformanceInsight(
            "memory_efficiency",
            "Memory-Intensive Functions",
            f"Identified {len(intensive)} memory-intensive functions",
            "medium",
            0.75,
            {"memory_intensive_functions": intensive[:5], "threshold_ratio": limit},
            ["Use smaller data types where they suffice", "Accumulate gradients to lower the peak"],
        )
    ]


def _correlation(results: Sequence[ProfileResult]) -> List[PerformanceInsight]:
    if len(results) < 10:
        return []
    _, r, _ = linear_fit([result.execution_time for result in results], [result.memory_kept for result in results])
    if abs(r) <= 0.7:
        return []
    return [
        PerformanceInsight(
            "correlation",
            "Time-Memory Correlation",
            f"Strong correlation ({r:.2f}) between execution time and memory",
            "medium",
            0.8,
            {"correlation_coefficient": r, "interpretation": "positive" if r > 0 else "negative"},
            ["Allocation takes a large part of the time: allocate once and reuse"],
        )
    ]


def trend(results: Sequence[ProfileResult]) -> List[PerformanceInsight]:
    """Least-squares fit of the memory after each call over time: slope > 0, |r| > 0.5, p < 0.05."""
    ordered = sorted(results, key=lambda result: result.memory_before.timestamp)
    if len(ordered) < 5:
        return []
    begin = ordered[0].memory_before.timestamp
    times = [result.memory_before.timestamp - begin for result in ordered]
    slope, r, p = linear_fit(times, [result.memory_after.allocated_memory for result in ordered])
    if not (slope > 0 and abs(r) > 0.5 and p < 0.05):
        return []
    data: Dict[str, Any] = {"growth_rate": slope, "correlation": r, "p_value": p, "time_span": max(times)}
    return [
        PerformanceInsight(
            "temporal",
            "Memory Growth Trend",
            "Detected upward trend in memory usage over time",
            "high" if slope > 1e6 else "medium",
            abs(r),
            data,
            ["Look for what is kept from one call to the next", "Run it longer: a warm-up ends, a leak does not"],
        )
    ]
