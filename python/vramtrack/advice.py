"""What to do next, from what is in force here: the allocator's settings, and whose process it is."""
from __future__ import annotations

import os
import sys
from typing import Dict, List, Optional, Sequence

from vramtrack.sources import Counters, MemorySource, Site
from vramtrack.verdict import Verdict

MIB = 2**20


def dataloader_worker() -> Optional[str]:
    """"DataLoader worker 2 of 8" where this process is one."""
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data is not None else None
    return None if info is None else f"DataLoader worker {info.id} of {info.num_workers}"


def describe_process(pid: int, proc: str = "/proc") -> str:
    """A process in words: "DataLoader worker (pid 4242, a child of this process)", "pid 4242 python serve.py"."""
    try:
        with open(f"{proc}/{pid}/comm") as file:
            name = file.read().strip()
        with open(f"{proc}/{pid}/stat") as file:
            parent = int(file.read().rsplit(")", 1)[1].split()[1])
        with open(f"{proc}/{pid}/cmdline", "rb") as file:
            command = file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:200]
    except OSError:
        return f"pid {pid}, which has ended or cannot be seen"
    whose = ", a child of this process" if parent == os.getpid() else ""
    # PyTorch names its workers so since 2.6.
    if name.startswith("pt_data_worker"):
        return f"DataLoader worker (pid {pid}{whose})"
    return f"pid {pid} {command or name}" + (f" ({whose[2:]})" if whose else "")


def advice(verdict: Verdict, counters: Counters, source: MemorySource, sites: Sequence[Site] = (), reserved_grows: bool = False) -> List[str]:
    """Sentences, the most useful first. They differ by what was found and by the settings that are in force."""
    settings: Dict[str, str] = source.allocator_settings()
    said: List[str] = []
    worker = dataloader_worker()
    if worker and counters.allocated:
        said.append(
            f"this is {worker}: it holds {counters.allocated / MIB:.0f} MiB on the GPU; return CPU tensors from the dataset and "
            "move them in the training loop"
        )
    if sites:
        said.append(f"look at {sites[0]}")
    if verdict.leak:
        if not sites:
            said.append("something keeps tensors from one step to the next: lists, caches, losses that keep their graph")
        said.append("confirm it at a safe point: watch.verdict(confirm=True) collects garbage and empties the cache")
        if verdict.oom_in_s is not None:
            said.append(f"save a checkpoint within {max(0.0, verdict.oom_in_s.low) / 60:.0f} min")
    unused = counters.reserved - counters.allocated
    if reserved_grows and unused > 0.3 * counters.reserved:
        if settings.get("expandable_segments", "").lower() == "true":
            said.append(
                f"{unused / MIB:.0f} MiB are reserved and unused although expandable_segments is on: round sizes that vary to a few "
                "fixed ones"
            )
        else:
            now = ",".join(f"{key}:{value}" for key, value in settings.items())
            wanted = ",".join(filter(None, [now, "expandable_segments:True"]))
            said.append(
                f"{unused / MIB:.0f} MiB are reserved and unused, and their share grows: set PYTORCH_CUDA_ALLOC_CONF={wanted}"
                + (f" (it is {now} now)" if now else " (it is not set now)")
            )
    return said
