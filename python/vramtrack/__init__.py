"""vramtrack: finds GPU memory leaks and predicts out-of-memory.

detect()             a verdict on recorded samples
Watch, mark()        a verdict on this process while it runs; before_oom() to save a checkpoint in time
GPUMemoryProfiler,   what each call does to memory, and what that comes to
MemoryAnalyzer
check(), run_gate()  a leak gate for tests: also `pytest --vramtrack` and `vramtrack test`

Importing it imports no framework. docs/python.md is the manual.
"""
from vramtrack.analyzer import MemoryAnalyzer
from vramtrack.errors import LeakError, NoDeviceError, SimulatedOutOfMemoryError
from vramtrack.findings import GapFinding, MemoryPattern, PerformanceInsight
from vramtrack.gate import GateReport, check, run_gate
from vramtrack.marks import mark
from vramtrack.profiler import (
    GPUMemoryProfiler,
    MemorySnapshot,
    ProfileResult,
    get_global_profiler,
    profile_context,
    profile_function,
    set_global_profiler,
)
from vramtrack.memory_source import Counters, MemorySource, Site
from vramtrack.simulated import SimulatedDevice
from vramtrack.sources import default_source, set_default_source, use_source
from vramtrack.verdict import Alert, Finding, Interval, Suspect, Verdict, detect
from vramtrack.version import __version__
from vramtrack.watch import Confirmation, Watch, WatchSample

__all__ = [
    "Alert",
    "Confirmation",
    "Counters",
    "Finding",
    "GPUMemoryProfiler",
    "GapFinding",
    "GateReport",
    "Interval",
    "LeakError",
    "MemoryAnalyzer",
    "MemoryPattern",
    "MemorySnapshot",
    "MemorySource",
    "NoDeviceError",
    "PerformanceInsight",
    "ProfileResult",
    "SimulatedDevice",
    "SimulatedOutOfMemoryError",
    "Site",
    "Suspect",
    "Verdict",
    "Watch",
    "WatchSample",
    "__version__",
    "check",
    "default_source",
    "detect",
    "get_global_profiler",
    "mark",
    "profile_context",
    "profile_function",
    "run_gate",
    "set_default_source",
    "set_global_profiler",
    "use_source",
]
