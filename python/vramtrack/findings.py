"""The analyzer's results: patterns, insights and gaps, with the fields of gpumemprof."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Sequence, Tuple

from vramtrack.statistics import median


@dataclass
class MemoryPattern:
    """One pattern: memory_leak, fragmentation, memory_spikes, repeated_allocations or inefficient_allocation."""

    pattern_type: str
    description: str
    severity: str  # "info", "warning" or "critical"
    affected_functions: List[str]
    metrics: Dict[str, Any]
    suggestions: List[str]


def spikes_pattern(functions: Sequence[str], limit: float, grown: Sequence[int], suggestions: List[str]) -> MemoryPattern:
    """`functions`: one name per spike. `grown`: the growth of all growing calls."""
    return MemoryPattern(
        "memory_spikes",
        f"Detected {len(functions)} memory allocation spikes",
        "warning" if len(functions) < 5 else "critical",
        list(dict.fromkeys(functions)),
        {
            "spike_count": len(functions),
            "spike_threshold": limit,
            "max_allocation": max(grown),
            "median_allocation": median(grown),
        },
        suggestions,
    )


def repeated_pattern(description: str, frequent: List[Tuple[int, str]], suggestions: List[str]) -> List[MemoryPattern]:
    """`frequent`: bytes allocated and name of each function that allocates often; without any, there is no pattern. `description` is
    formatted with the name of the function that allocates most."""
    if not frequent:
        return []
    frequent.sort(key=lambda entry: -entry[0])
    top = [name for _, name in frequent[:5]]
    return [
        MemoryPattern(
            "repeated_allocations",
            description.format(top[0]),
            "info",
            top,
            {
                "function_count": len(frequent),
                "total_impact_functions": top,
                "total_memory_from_repeated": sum(total for total, _ in frequent),
            },
            suggestions,
        )
    ]


@dataclass
class PerformanceInsight:
    """One observation. An impact of "info" costs no points; the documented rules never use it."""

    category: str  # "execution_time", "memory_efficiency", "correlation" or "temporal"
    title: str
    description: str
    impact: str  # "info", "low", "medium" or "high"
    confidence: float  # 0 to 1
    data: Dict[str, Any]
    recommendations: List[str]


@dataclass
class GapFinding:
    """Memory on the device that the driver counts but the allocator does not."""

    classification: str  # "transient_spike", "persistent_drift" or "fragmentation_like"
    severity: str
    confidence: float
    description: str
    evidence: Dict[str, Any] = field(default_factory=dict)
    remediation: List[str] = field(default_factory=list)
