"""The ranks of one job in words: which of them grow, which grew first, and which no longer report."""
from __future__ import annotations

import time
from typing import List, Optional

from vramtrack.rank_summary import ENDED, RUNNING, SILENT, Rank
from vramtrack.units import format_rate

CLOCKS_DIFFER_S = 60.0  # between the machines of a job; onsets within this time count as one
_NAMED = 8  # ranks listed in a sentence


def words(ranks: List[Rank], world_size: int) -> str:
    """Which ranks grow, and which of them grew first, in one sentence. Machines are named if there are several."""
    if not ranks:
        return f"none of the {world_size} ranks has been seen yet"
    several_hosts = len({rank.host for rank in ranks}) > 1

    def named(rank: Rank, of: str = "") -> str:
        return f"rank {rank.rank}{of}" + (f" ({rank.host})" if several_hosts else "")

    growing = sorted((rank for rank in ranks if rank.grows), key=lambda rank: -rank.growth_bytes_per_s)
    unseen = world_size - len(ranks)
    tail = _gone(ranks) + (f"; nothing is known about {unseen} other{'s' if unseen > 1 else ''}" if unseen > 0 else "")
    still = sum(not rank.grows and rank.status == RUNNING for rank in ranks)
    if not growing:
        return (f"none of the {world_size} ranks grows" if unseen == 0 else f"none of the {len(ranks)} ranks seen of {world_size} grows") + tail
    others = f"; the other{'s do' if still > 1 else ' does'} not grow" if still > 0 else ""
    if len(growing) == 1:
        return f"{named(growing[0], f' of {world_size}')} grows by {format_rate(growing[0].growth_bytes_per_s)}{_since(growing[0])}{others}{tail}"
    if len(growing) == world_size:
        who = f"all {world_size} ranks grow"
    else:
        who = f"{_listed(growing)} of {world_size} grow" if len(growing) <= _NAMED else f"{len(growing)} of {world_size} ranks grow"
    most = growing[0]
    first = first_of(ranks)
    if first is None:
        order = f", most of all {named(most)}, by {format_rate(most.growth_bytes_per_s)}"
    elif first.rank == most.rank:
        order = f", {named(first)} first and fastest: {format_rate(first.growth_bytes_per_s)}{_since(first)}"
    else:
        order = f", {named(first)} first: {format_rate(first.growth_bytes_per_s)}{_since(first)}; {named(most)} fastest: {format_rate(most.growth_bytes_per_s)}"
    return who + order + others + tail


def _listed(ranks: List[Rank]) -> str:
    numbers = [str(rank.rank) for rank in sorted(ranks)]
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    return f"ranks {', '.join(numbers[:-1])} and {numbers[-1]}" if len(numbers) <= _NAMED else f"{len(numbers)} ranks"


def _gone(ranks: List[Rank]) -> str:
    """The ranks that no longer report, silent ones first."""
    silent = [rank for rank in ranks if rank.status == SILENT]
    ended = [rank for rank in ranks if rank.status == ENDED]
    tail = ""
    if silent:
        since = _time(" since ", min(rank.time_s for rank in silent))
        tail += f"; {_listed(silent)} {'have' if len(silent) > 1 else 'has'} been silent{since}: killed or hung"
    if ended:
        tail += f"; {_listed(ended)} ended{_time(' at ', ended[0].time_s) if len(ended) == 1 else ''}"
    return tail


def first_of(ranks: List[Rank]) -> Optional[Rank]:
    """The rank that grew first. None: none grows, they began at about the same time, or an onset is unknown."""
    growing = [rank for rank in ranks if rank.grows]
    onsets = sorted((rank.onset_s, rank.rank, rank) for rank in growing if rank.onset_s is not None)
    if not growing or len(growing) == 1:
        return growing[0] if growing else None
    if len(onsets) < len(growing) or onsets[1][0] - onsets[0][0] < CLOCKS_DIFFER_S:
        return None
    return onsets[0][2]


def _since(rank: Rank) -> str:
    return "" if rank.onset_s is None else _time(" since ", rank.onset_s)


def _time(before: str, time_s: float) -> str:
    if not 0 <= time_s < 253_402_300_800:  # the year 10000
        return ""
    return before + time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time_s))
