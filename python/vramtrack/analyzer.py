"""MemoryAnalyzer: patterns, insights and a report from profiling results."""
from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List, Optional, Sequence

from vramtrack import documented_rules, own_rules
from vramtrack.findings import GapFinding, MemoryPattern, PerformanceInsight
from vramtrack.gaps import analyze_gaps
from vramtrack.html_table import table
from vramtrack.profiler import GPUMemoryProfiler, ProfileResult
from vramtrack.units import MIB

_RULES = {"vramtrack": own_rules, "documented": documented_rules}
_GRADES = (
    (90, "A", "Excellent memory usage patterns"),
    (80, "B", "Good memory usage with minor issues"),
    (70, "C", "Acceptable memory usage with some optimization potential"),
    (60, "D", "Poor memory usage patterns requiring attention"),
    (0, "F", "Critical memory usage issues requiring immediate attention"),
)
_INSIGHT_COST = {"high": 15, "medium": 8, "low": 3, "info": 0}


class MemoryAnalyzer:
    """Analyses a profiler's results.

    rules="vramtrack" (default): memory that persists over the run is a leak, however many functions it is spread over.
    rules="documented": gpumemprof's documented rules (each function alone, more than 100 MiB, more than 10 % of its calls).
    `thresholds` may be changed at any time; both sets of rules use them.
    """

    def __init__(self, profiler: Optional[GPUMemoryProfiler] = None, rules: str = "vramtrack") -> None:
        if rules not in _RULES:
            raise ValueError(f"unknown rules {rules!r}; expected 'vramtrack' or 'documented'")
        self.profiler = profiler
        self.rules = rules
        self.thresholds: Dict[str, float] = {
            "memory_leak_ratio": 0.1,
            "fragmentation_ratio": 0.3,
            "inefficient_allocation_ratio": 0.5,
            "slow_function_percentile": 0.9,
            "high_memory_percentile": 0.9,
            "min_calls_for_analysis": 3,
            "gap_ratio_threshold": 0.05,
            "gap_spike_zscore": 2.0,
            "gap_drift_r_squared": 0.6,
            "gap_fragmentation_ratio": 0.3,
            # For the default rules only: smaller growth is not a leak anywhere in vramtrack.
            "min_leak_growth_bytes": 64 * MIB,
        }

    def _results(self, results: Optional[Sequence[ProfileResult]]) -> List[ProfileResult]:
        if results is None:
            return list(self.profiler.results) if self.profiler is not None else []
        return list(results)

    def analyze_memory_patterns(self, results: Optional[Sequence[ProfileResult]] = None) -> List[MemoryPattern]:
        """The patterns in `results` (default: the profiler's): memory_leak, fragmentation, inefficient_allocation, memory_spikes and
        repeated_allocations. O(n log n)."""
        found = self._results(results)
        if not found:
            return []
        rules = _RULES[self.rules]
        return [
            *rules.memory_leaks(found, self.thresholds),
            *rules.fragmentation(found, self.thresholds),
            *rules.inefficient_allocations(found, self.thresholds),
            *rules.memory_spikes(found, self.thresholds),
            *rules.repeated_allocations(found, self.thresholds),
        ]

    def generate_performance_insights(self, results: Optional[Sequence[ProfileResult]] = None) -> List[PerformanceInsight]:
        """Observations on times and trends. The category "temporal" is memory growth over time."""
        found = self._results(results)
        return _RULES[self.rules].insights(found, self.thresholds) if found else []

    def analyze_memory_gaps(self, events: Sequence[Any]) -> List[GapFinding]:
        """Gaps between the driver's figure and the allocator's; see vramtrack.gaps.analyze_gaps()."""
        return analyze_gaps(events, self.thresholds)

    def generate_optimization_report(
        self, results: Optional[Sequence[ProfileResult]] = None, events: Optional[Sequence[Any]] = None
    ) -> Dict[str, Any]:
        """All results in one dictionary: summary, critical_issues, high_impact_insights, all_patterns, all_insights, recommendations (at
        most 10, by priority), optimization_score (score, grade, description, issues_found), and gap_analysis if `events` are
        given."""
        found = self._results(results)
        patterns = self.analyze_memory_patterns(found)
        insights = self.generate_performance_insights(found)
        report: Dict[str, Any] = {
            "summary": {
                "total_functions_analyzed": len({r.function_name for r in found}),
                "total_function_calls": len(found),
                "total_memory_allocated": sum(r.memory_kept for r in found),
                "total_execution_time": sum(r.execution_time for r in found),
                "analysis_timestamp": found[-1].memory_after.timestamp if found else None,
            },
            "critical_issues": [asdict(p) for p in patterns if p.severity == "critical"],
            "high_impact_insights": [asdict(i) for i in insights if i.impact == "high"],
            "all_patterns": [asdict(p) for p in patterns],
            "all_insights": [asdict(i) for i in insights],
            "recommendations": _recommendations(patterns, insights),
            "optimization_score": _score(patterns, insights, _RULES[self.rules].COST),
        }
        if events is not None:
            report["gap_analysis"] = [asdict(f) for f in self.analyze_memory_gaps(events)]
        return report

    def _repr_html_(self) -> str:
        """In a notebook: the score, and each pattern and insight with its remedy."""
        report = self.generate_optimization_report()
        score, summary = report["optimization_score"], report["summary"]
        rows = [(one["description"], one["pattern_type"].replace("_", " "), one["severity"], "; ".join(one["suggestions"][:2])) for one in report["all_patterns"]]
        rows += [(one["title"], one["category"].replace("_", " "), one["impact"], "; ".join(one["recommendations"][:2])) for one in report["all_insights"]]
        headline = f"{score['score']} of 100 ({score['grade']}): {score['description']}; {summary['total_function_calls']:,} calls of {summary['total_functions_analyzed']:,} functions"
        return table(headline, ("finding", "kind.", "severity.", "what to do."), rows, [] if rows else ["No pattern was found"])


def _recommendations(patterns: List[MemoryPattern], insights: List[PerformanceInsight]) -> List[Dict[str, Any]]:
    def of_pattern(priority: str, p: MemoryPattern) -> Dict[str, Any]:
        return {
            "priority": priority,
            "category": p.pattern_type,
            "description": p.description,
            "suggestions": list(p.suggestions),
        }

    chosen = [of_pattern("high", p) for p in patterns if p.severity == "critical"]
    chosen += [
        {"priority": "high", "category": i.category, "description": i.description, "suggestions": list(i.recommendations)}
        for i in insights
        if i.impact == "high"
    ]
    chosen += [of_pattern("medium", p) for p in patterns if p.severity == "warning"]
    return chosen[:10]


def _score(patterns: List[MemoryPattern], insights: List[PerformanceInsight], cost: Dict[str, int]) -> Dict[str, Any]:
    lost = sum(cost[p.severity] for p in patterns) + sum(_INSIGHT_COST.get(i.impact, 3) for i in insights)
    score = max(0, 100 - lost)
    grade, description = next((grade, words) for least, grade, words in _GRADES if score >= least)
    issues = sum(cost[p.severity] > 0 for p in patterns) + sum(i.impact != "info" for i in insights)
    return {"score": score, "grade": grade, "description": description, "issues_found": issues}
