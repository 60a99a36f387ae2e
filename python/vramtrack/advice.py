"""Advice on the next step, from the verdict, the allocator's settings and the kind of process."""
from __future__ import annotations

import gc
import os
import sys
from typing import Dict, List, Optional, Sequence

from vramtrack.driver import ProcessMemory
from vramtrack.memory_source import Counters, MemorySource, Site
from vramtrack.units import MIB, format_size
from vramtrack.verdict import Verdict

_LEAST_GROWTH_BYTES = 64 * MIB


def dataloader_worker() -> Optional[str]:
    """"DataLoader worker 2 of 8" if this process is a worker, otherwise None."""
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data is not None else None
    return None if info is None else f"DataLoader worker {info.id} of {info.num_workers}"


def dataloader_workers() -> Dict[int, str]:
    """The workers of this process's live data loaders by pid: "DataLoader worker 2 of 8". It walks all Python objects."""
    loader = sys.modules.get("torch.utils.data.dataloader")
    kind = getattr(loader, "_MultiProcessingDataLoaderIter", None)
    if kind is None:
        return {}
    workers: Dict[int, str] = {}
    for one in gc.get_objects():
        if issubclass(type(one), kind):
            processes = getattr(one, "_workers", ())
            for n, process in enumerate(processes):
                workers[process.pid] = f"DataLoader worker {n} of {len(processes)}"
    return workers


def describe_process(pid: int, proc: str = "/proc", workers: Optional[Dict[int, str]] = None) -> str:
    """A process in words: "DataLoader worker 2 of 8 (pid 4242, a child of this process)", "pid 4242 python serve.py".
    `workers`: the result of dataloader_workers(), if the caller has it."""
    known = (dataloader_workers() if workers is None else workers).get(pid)
    try:
        with open(f"{proc}/{pid}/comm") as file:
            name = file.read().strip()
        with open(f"{proc}/{pid}/stat") as file:
            parent = int(file.read().rsplit(")", 1)[1].split()[1])
        with open(f"{proc}/{pid}/cmdline", "rb") as file:
            command = file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:200]
    except OSError:
        return f"pid {pid}, which has ended or cannot be seen"
    # A worker that a fork server started belongs to the loader, but is not a child of this process.
    relation = ", a child of this process" if parent == os.getpid() or known else ""
    # PyTorch 2.6 and newer name their workers like this.
    if known or name.startswith("pt_data_worker"):
        return f"{known or 'DataLoader worker'} (pid {pid}{relation})"
    return f"pid {pid} {command or name}" + (f" ({relation[2:]})" if relation else "")


def _of_others(others: Sequence[ProcessMemory]) -> List[str]:
    """At most three other processes that grew."""
    grown = [process for process in others if process.growth_bytes >= _LEAST_GROWTH_BYTES][:3]
    workers = dataloader_workers() if grown else {}
    lines = []
    for process in grown:
        who = describe_process(process.pid, workers=workers)
        words = (
            f"{who} has grown by {format_size(process.growth_bytes)} on this GPU in {process.seconds / 60:.0f} min, to "
            f"{format_size(process.used_bytes)}"
        )
        if who.startswith("DataLoader worker"):
            words += "; return CPU tensors from the dataset and move them in the training loop"
        lines.append(words)
    return lines


def advice(
    verdict: Verdict,
    counters: Counters,
    source: MemorySource,
    sites: Sequence[Site] = (),
    reserved_grows: bool = False,
    others: Sequence[ProcessMemory] = (),
) -> List[str]:
    """Sentences of advice, most useful first."""
    settings: Dict[str, str] = source.allocator_settings()
    lines: List[str] = []
    worker = dataloader_worker()
    if worker and counters.allocated:
        lines.append(
            f"this process is {worker} and holds {format_size(counters.allocated)} on the GPU; return CPU tensors from the dataset and "
            "move them in the training loop"
        )
    lines += _of_others(others)
    if sites:
        lines.append(f"look at {sites[0]}")
    if verdict.leak:
        if not sites and verdict.metric != "device_used":
            lines.append("the program keeps tensors from one step to the next; look for lists, caches and losses that keep their graph")
        elif not sites:
            lines.append(
                "memory grows outside PyTorch's allocator; look for other processes, NCCL, CUDA graphs and libraries with their own memory"
            )
        lines.append("call watch.verdict(confirm=True) at a safe point to confirm the leak: it collects garbage and empties the cache")
        if verdict.oom_in_s is not None:
            lines.append(f"save a checkpoint within {max(0.0, verdict.oom_in_s.low) / 60:.0f} min")
    unused = counters.reserved - counters.allocated
    if reserved_grows and unused > 0.3 * counters.reserved:
        lines.append(f"{format_size(unused)} are reserved but unused, and their share grows: {_against_fragments(source)}")
    return lines


def _against_fragments(source: MemorySource) -> str:
    """The next allocator setting that helps and is not set yet."""
    settings = dict(source.allocator_settings())
    now = ",".join(f"{key}:{value}" for key, value in settings.items())
    if settings.get("backend", "native") != "native":
        return f"the allocator backend {settings['backend']} has no setting against fragmentation; try to run without backend:{settings['backend']}"
    if settings.get("expandable_segments", "").lower() != "true":
        settings["expandable_segments"] = "True"
    elif "roundup_power2_divisions" not in settings:
        settings["roundup_power2_divisions"] = "8"
    else:
        return "expandable_segments and roundup_power2_divisions are set already; round varying sizes to a few fixed ones"
    wanted = ",".join(f"{key}:{value}" for key, value in settings.items())
    return f"set {source.settings_variable}={wanted} (now: {now or 'not set'})"
