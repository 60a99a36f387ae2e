"""What to do next, from what is in force here: the allocator's settings, and whose process it is."""
from __future__ import annotations

import gc
import os
import sys
from typing import Dict, List, Optional, Sequence

from vramtrack.driver import ProcessMemory
from vramtrack.memory_source import Counters, MemorySource, Site
from vramtrack.verdict import Verdict

MIB = 2**20
_LEAST_GROWTH_BYTES = 64 * MIB


def dataloader_worker() -> Optional[str]:
    """"DataLoader worker 2 of 8" where this process is one."""
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data is not None else None
    return None if info is None else f"DataLoader worker {info.id} of {info.num_workers}"


def dataloader_workers() -> Dict[int, str]:
    """"DataLoader worker 2 of 8" by pid, of the loaders that are alive in this process. Costs a look at all objects."""
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
    `workers`: what dataloader_workers() gives, where it is at hand."""
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
    # By a fork server a worker is not this process's own child, and yet its loader's.
    whose = ", a child of this process" if parent == os.getpid() or known else ""
    # PyTorch names its workers so since 2.6.
    if known or name.startswith("pt_data_worker"):
        return f"{known or 'DataLoader worker'} (pid {pid}{whose})"
    return f"pid {pid} {command or name}" + (f" ({whose[2:]})" if whose else "")


def _of_others(others: Sequence[ProcessMemory]) -> List[str]:
    """The processes beside this one that grew, three at most."""
    grown = [process for process in others if process.growth_bytes >= _LEAST_GROWTH_BYTES][:3]
    workers = dataloader_workers() if grown else {}
    said = []
    for process in grown:
        who = describe_process(process.pid, workers=workers)
        words = (
            f"{who} has grown by {process.growth_bytes / MIB:.0f} MiB on this GPU in {process.seconds / 60:.0f} min, to "
            f"{process.used_bytes / MIB:.0f} MiB"
        )
        if who.startswith("DataLoader worker"):
            words += "; return CPU tensors from the dataset and move them in the training loop"
        said.append(words)
    return said


def advice(
    verdict: Verdict,
    counters: Counters,
    source: MemorySource,
    sites: Sequence[Site] = (),
    reserved_grows: bool = False,
    others: Sequence[ProcessMemory] = (),
) -> List[str]:
    """Sentences, the most useful first. They differ by what was found and by the settings that are in force."""
    settings: Dict[str, str] = source.allocator_settings()
    said: List[str] = []
    worker = dataloader_worker()
    if worker and counters.allocated:
        said.append(
            f"this is {worker}: it holds {counters.allocated / MIB:.0f} MiB on the GPU; return CPU tensors from the dataset and "
            "move them in the training loop"
        )
    said += _of_others(others)
    if sites:
        said.append(f"look at {sites[0]}")
    if verdict.leak:
        if not sites and verdict.metric != "device_used":
            said.append("something keeps tensors from one step to the next: lists, caches, losses that keep their graph")
        elif not sites:
            said.append(
                "it grows outside PyTorch's allocator: other processes, NCCL, CUDA graphs, libraries with memory of their own"
            )
        said.append("confirm it at a safe point: watch.verdict(confirm=True) collects garbage and empties the cache")
        if verdict.oom_in_s is not None:
            said.append(f"save a checkpoint within {max(0.0, verdict.oom_in_s.low) / 60:.0f} min")
    unused = counters.reserved - counters.allocated
    if reserved_grows and unused > 0.3 * counters.reserved:
        said.append(f"{unused / MIB:.0f} MiB are reserved and unused, and their share grows: {_against_fragments(source)}")
    return said


def _against_fragments(source: MemorySource) -> str:
    """The next setting of the allocator that helps and is not in force."""
    settings = dict(source.allocator_settings())
    now = ",".join(f"{key}:{value}" for key, value in settings.items())
    if settings.get("backend", "native") != "native":
        return f"the allocator is {settings['backend']}, which has no setting against it; try it without backend:{settings['backend']}"
    if settings.get("expandable_segments", "").lower() != "true":
        settings["expandable_segments"] = "True"
    elif "roundup_power2_divisions" not in settings:
        settings["roundup_power2_divisions"] = "8"
    else:
        return "expandable_segments and roundup_power2_divisions are set already; round sizes that vary to a few fixed ones"
    wanted = ",".join(f"{key}:{value}" for key, value in settings.items())
    return f"set {source.settings_variable}={wanted} (it is {now or 'not set'} now)"
