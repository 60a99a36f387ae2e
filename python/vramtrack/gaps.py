"""Memory that the driver counts but the allocator does not: contexts, libraries, other processes."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence

from vramtrack.findings import GapFinding
from vramtrack.statistics import linear_fit, mean, stdev
from vramtrack.units import format_rate, format_size


def _value(event: Any, *names: str) -> float:
    for name in names:
        value = event.get(name) if isinstance(event, dict) else getattr(event, name, None)
        if value is not None:
            return float(value)
    return 0.0


def analyze_gaps(events: Sequence[Any], thresholds: Dict[str, float]) -> List[GapFinding]:
    """Finds gaps between the driver's figure and the allocator's: device_used - allocator_reserved. `events`: Watch.samples, or mappings
    or objects with timestamp, device_used, device_total, allocator_reserved and allocator_allocated."""
    rows = [
        (
            _value(e, "timestamp", "time_s"),
            _value(e, "device_used", "device_used_bytes"),
            _value(e, "device_total", "device_total_bytes", "capacity_bytes"),
            _value(e, "allocator_reserved", "allocator_reserved_bytes"),
            _value(e, "allocator_allocated", "allocator_allocated_bytes"),
        )
        for e in events
    ]
    rows = [row for row in rows if row[2] > 0]
    if len(rows) < 3:
        return []
    gaps = [used - reserved for _, used, _, reserved, _ in rows]
    if max(abs(gap) / row[2] for gap, row in zip(gaps, rows)) < thresholds["gap_ratio_threshold"]:
        return []
    found = []
    spread = stdev(gaps)
    if spread > 0:
        z = max((gap - mean(gaps)) / spread for gap in gaps)
        if z > thresholds["gap_spike_zscore"]:
            found.append(
                GapFinding(
                    "transient_spike",
                    "critical" if z > 4 else "warning",
                    min(1.0, z / 6),
                    f"memory outside the allocator rose to {format_size(max(gaps))} for a while",
                    {"max_zscore": z, "max_gap_bytes": max(gaps)},
                    ["Look at what ran at that time: collectives, cuDNN or cuBLAS workspaces, another process"],
                )
            )
    if len(rows) >= 5:
        slope, r, _ = linear_fit([row[0] - rows[0][0] for row in rows], gaps)
        if slope > 0 and r * r >= thresholds["gap_drift_r_squared"]:
            found.append(
                GapFinding(
                    "persistent_drift",
                    "critical" if r * r > 0.85 else "warning",
                    r * r,
                    f"memory outside the allocator grows by {format_rate(slope)}",
                    {"slope_bytes_per_s": slope, "r_squared": r * r},
                    ["Run `vramtrack watch` to see which process grows; a library or another process leaks"],
                )
            )
    waste = [(row[3] - row[4]) / row[3] for row in rows if row[3] > 0]
    if waste and mean(waste) >= thresholds["gap_fragmentation_ratio"]:
        found.append(
            GapFinding(
                "fragmentation_like",
                "critical" if mean(waste) > 0.5 else "warning",
                min(1.0, mean(waste) / 0.6),
                f"{100 * mean(waste):.0f} % of the memory that the allocator holds is not allocated",
                {"mean_unused_ratio": mean(waste)},
                ["Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "Call torch.cuda.empty_cache() where a lot of memory was freed"],
            )
        )
    order = {"critical": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda f: (order[f.severity], -f.confidence))
