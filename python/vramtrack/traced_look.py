"""What keeps a traced program's tensors, for the probe of `vramtrack run`: src/probe/kept.cpp runs this module, with referrers.py, within
the program, which has no package vramtrack. It gives the names answer() and at_end()."""
from __future__ import annotations

import atexit
import os
import time
from typing import Any, Callable, List

from vramtrack.referrers import _ONE_AT_A_TIME, Keeper, _Search, is_rooted

#: the program waits for a look for so long at most
_LOOK_S = 1.0
#: of the keepers, those of the most tensors, and those of the most bytes
_BY_TENSORS, _BY_BYTES = 24, 8
#: of the tensors of a keeper
_MOST_ADDRESSES = 64

answer: Callable[[str], None]
at_end: Callable[[], None]


def _chosen(keepers: List[Keeper]) -> List[Keeper]:
    by_tensors = sorted(keepers, key=lambda keeper: (keeper.tensors, keeper.bytes), reverse=True)[:_BY_TENSORS]
    return by_tensors + [keeper for keeper in keepers[:_BY_BYTES] if keeper not in by_tensors]


def _line(search: Any, keeper: Keeper) -> str:
    addresses = [search.facts[i][0] for i in search.found[keeper.path]]
    some = addresses[:: -(-len(addresses) // _MOST_ADDRESSES)]
    words = " ".join(keeper.path.split())
    return f"K {int(is_rooted(keeper.path))} {keeper.bytes} {','.join(map(str, some))} {words}"


def _let_in() -> None:
    """`vramtrack attach` has put the script that opens its door beside the rings, in a folder that only this user can enter."""
    path = os.path.join(os.environ.get("VRAMTRACK_PROBE_DIR", ""), f"attach.{os.getpid()}.py")
    try:
        with open(path) as file:
            source = file.read()
        os.unlink(path)
        exec(compile(source, "<vramtrack attach>", "exec"), {})
    except Exception:
        pass


def look() -> None:
    """One look, and what it found: see take_answer()."""
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
        lines += [_line(search, keeper) for keeper in _chosen(search.keepers())]
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
