"""vramtrack: finds GPU memory leaks and predicts out-of-memory.

detect()             gives a verdict on recorded samples
Watch, mark()        watch this process while it runs; before_oom() saves a checkpoint in time
GPUMemoryProfiler,   measure the effect of each call on memory and find patterns in the results
MemoryAnalyzer
check(), run_gate()  a leak gate for tests; see also `pytest --vramtrack` and `vramtrack test`
explain()            what an out-of-memory error says
kept_by()            which variables and containers keep tensors alive
allow_attach()       lets `vramtrack attach` record this process for a while

Importing the package does not import a framework, start a thread or open a file, unless VRAMTRACK_ATTACHABLE=1 or `vramtrack run` asks for
the socket of allow_attach(). docs/python.md is the manual.
"""
from vramtrack.analyzer import MemoryAnalyzer
from vramtrack.breakdown import Breakdown
from vramtrack.categories import Categories, Label, categorize, dump_snapshot
from vramtrack.confirmation import Confirmation
from vramtrack.attach_socket import allow_attach, open_if_asked
from vramtrack.errors import LeakError, NoDeviceError, SimulatedOutOfMemoryError
from vramtrack.explanation import Explanation, explain
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
from vramtrack.memory_source import Counters, MemorySource, Pool, Site
from vramtrack.rank_summary import Rank
from vramtrack.referrers import Keeper, Kept, kept_by
from vramtrack.simulated import SimulatedDevice
from vramtrack.sources import default_source, set_default_source, use_source
from vramtrack.verdict import Alert, End, Finding, Interval, Run, Suspect, Verdict, detect
from vramtrack.version import __version__
from vramtrack.watch import Watch
from vramtrack.watch_sample import WatchSample

open_if_asked()


def load_ipython_extension(shell: object) -> None:
    """%load_ext vramtrack: the magic %%vramtrack (vramtrack.jupyter)."""
    from vramtrack.jupyter import load_ipython_extension as load

    load(shell)


__all__ = [
    "Alert",
    "Breakdown",
    "Categories",
    "Confirmation",
    "Counters",
    "End",
    "Explanation",
    "Finding",
    "GPUMemoryProfiler",
    "GapFinding",
    "GateReport",
    "Interval",
    "Keeper",
    "Kept",
    "Label",
    "LeakError",
    "MemoryAnalyzer",
    "MemoryPattern",
    "MemorySnapshot",
    "MemorySource",
    "NoDeviceError",
    "PerformanceInsight",
    "Pool",
    "ProfileResult",
    "Rank",
    "Run",
    "SimulatedDevice",
    "SimulatedOutOfMemoryError",
    "Site",
    "Suspect",
    "Verdict",
    "Watch",
    "WatchSample",
    "__version__",
    "allow_attach",
    "categorize",
    "check",
    "default_source",
    "detect",
    "dump_snapshot",
    "explain",
    "get_global_profiler",
    "kept_by",
    "mark",
    "profile_context",
    "profile_function",
    "run_gate",
    "set_default_source",
    "set_global_profiler",
    "use_source",
]
