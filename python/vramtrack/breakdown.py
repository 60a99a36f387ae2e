"""Breakdown: the composition of a process's memory at one moment."""
from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

from vramtrack.memory_source import MemorySource, Pool
from vramtrack.units import format_size

_SHOWN_POOLS = 8


class Breakdown(NamedTuple):
    """Bytes. `allocated` and `reserved` include the private pools. str() gives it in words."""

    allocated: int
    reserved: int
    pools: Tuple[Pool, ...]  # private ones (CUDA graphs, MemPool), largest first
    outside: Optional[int]  # on the device but not reserved: contexts, libraries, other processes. None: unknown
    host_pinned: Optional[int]  # pinned host memory, in use or cached. None: not counted

    def __str__(self) -> str:
        rows = [("allocated", self.allocated), ("reserved, not allocated", self.reserved - self.allocated)]
        if self.outside is not None:
            rows.append(("outside the allocator", self.outside))
        if self.host_pinned is not None:
            rows.append(("pinned host memory", self.host_pinned))
        lines = [f"{name:<24}{format_size(size):>14}" for name, size in rows]
        if self.pools:
            lines.append(f"{'in private pools':<24}{format_size(sum(pool.reserved_bytes for pool in self.pools)):>14}")
        lines += [f"  {pool}" for pool in self.pools[:_SHOWN_POOLS]]
        if len(self.pools) > _SHOWN_POOLS:
            lines.append(f"  and {len(self.pools) - _SHOWN_POOLS} more")
        return "\n".join(lines)


def breakdown(source: MemorySource) -> Breakdown:
    """The current breakdown of a source. It takes as long as the source's pools()."""
    counters, used = source.counters(), source.device_used_bytes()
    outside = None if used is None else max(0, used - counters.reserved)
    return Breakdown(counters.allocated, counters.reserved, tuple(source.pools()), outside, source.host_pinned_bytes())


def advice_on_pools(found: Breakdown, least_bytes: int) -> List[str]:
    """The remedy for private pools that keep memory which nothing else can use."""
    reserved = sum(pool.reserved_bytes for pool in found.pools)
    unused = reserved - sum(pool.allocated_bytes for pool in found.pools)
    if unused < least_bytes or unused < 0.3 * reserved:
        return []
    count = f"{len(found.pools)} private pools (CUDA graphs, MemPool)" if len(found.pools) > 1 else "a private pool (a CUDA graph's, or a MemPool)"
    keeps = "keep" if len(found.pools) > 1 else "keeps"
    return [
        f"{count} {keeps} {format_size(unused)} of {format_size(reserved)} unused, which only captures into the same pool can use; capture "
        "graphs that do not run at the same time into one pool (pool=), and drop graphs that are no longer replayed"
    ]
