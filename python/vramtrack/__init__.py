"""vramtrack: finds GPU memory leaks and predicts out-of-memory.

detect()             gives a verdict on recorded samples
Watch, mark()        watch this process while it runs; before_oom() saves a checkpoint in time
GPUMemoryProfiler,   measure the effect of each call on memory and find patterns in the results
MemoryAnalyzer
check(), run_gate()  a leak gate for tests; see also `pytest --vramtrack` and `vramtrack test`

Importing the package does not import a framework. docs/python.md is the manual.
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
from vramtrack.verdict import Alert, End, Finding, Interval, Run, Suspect, Verdict, detect
from vramtrack.version import __version__
from vramtrack.watch import Confirmation, Watch, WatchSample

__all__ = [
    "Alert",
    "Confirmation",
    "Counters",
    "End",
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
    "Run",
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
