"""Finds the keepers of a traced program's tensors, for the probe of `vramtrack run`: src/probe/kept.cpp runs this module, with
referrers.py, within the program, which does not have the package vramtrack. It defines the names answer() and at_end()."""
from __future__ import annotations

import atexit
import heapq
import os
import time
from typing import Any, Callable, Iterable, List

from vramtrack.referrers import _ONE_AT_A_TIME, Keeper, _Search, is_rooted

#: the longest time that the program waits for a look
_LOOK_S = 1.0
#: of the keepers, those of most tensors, and those of most bytes
_BY_TENSORS, _BY_BYTES = 24, 8
#: of the tensors of a keeper
_MOST_ADDRESSES = 64
#: the form of addresses in a line: half of the flags of Record::kept
_ROOTED, _WITH_GRAPHS, _NOTHING, _NOT_ASKED = 1, 2, 4, 8

answer: Callable[[str], None]
at_end: Callable[[], None]


def _chosen(keepers: List[Keeper]) -> List[Keeper]:
    by_tensors = sorted(keepers, key=lambda keeper: (keeper.tensors, keeper.bytes), reverse=True)[:_BY_TENSORS]
    return by_tensors + [keeper for keeper in keepers[:_BY_BYTES] if keeper not in by_tensors]


def _some_of(addresses: Iterable[int]) -> str:
    """A fixed choice for the same addresses, whatever keeps them, that favours none of those in alternating order."""
    return ",".join(map(str, heapq.nsmallest(_MOST_ADDRESSES, set(addresses), key=lambda each: (each >> 6) * 0x9E3779B97F4A7C15 % 2**64)))


def _line(search: Any, keeper: Keeper) -> str:
    flags = _ROOTED * is_rooted(keeper.path) + _WITH_GRAPHS * (keeper.graphs > 0)
    return f"K {flags} {keeper.bytes} {_some_of(search.storages(keeper.path))} {' '.join(keeper.path.split())}"


def _lines_of_unheld(search: Any) -> List[str]:
    """For objects without a known holder: those about which the garbage collector was queried, and the others."""
    out = []
    for flags, is_asked in ((_NOTHING, True), (_NOT_ASKED, False)):
        unheld = [search.facts[i] for i in search.unheld if (i in search.asked_tensors) == is_asked]
        if unheld:
            out.append(f"K {flags} {sum(facts[1] for facts in unheld)} {_some_of(facts[0] for facts in unheld)} -")
    return out


def _let_in() -> None:
    """Runs the script that opens the socket: `vramtrack attach` put it next to the rings, in a folder that only this user can enter."""
    path = os.path.join(os.environ.get("VRAMTRACK_PROBE_DIR", ""), f"attach.{os.getpid()}.py")
    try:
        with open(path) as file:
            source = file.read()
        os.unlink(path)
        exec(compile(source, "<vramtrack attach>", "exec"), {})
    except Exception:
        pass


def look() -> None:
    """Makes one look and stores its result: see take_answer()."""
    _let_in()
    begun = time.monotonic()
    lines: List[str] = []
    objects, reason = 0, "it was interrupted"
    search = None
    is_alone = _ONE_AT_A_TIME.acquire(timeout=_LOOK_S)
    try:
        search = _Search(None, lambda device, address: "", begun + _LOOK_S, is_whole=False)
        reason = "" if search.run() else f"stopped after {_LOOK_S:.0f} s, with tensors left"
        objects = len(search.facts)
        lines += [_line(search, keeper) for keeper in _chosen(search.keepers())] + _lines_of_unheld(search)
    except Exception as error:
        reason = f"the search failed: {type(error).__name__}"
    finally:
        if search is not None:
            search.clear()
        if is_alone:
            _ONE_AT_A_TIME.release()
        lines.append(f"E {objects} {int(1e6 * (time.monotonic() - begun))} {reason}")
        answer("\n".join(lines).encode("utf-8", "replace").decode())


if "at_end" in globals():
    atexit.register(at_end)
