"""explain(): the cause of an out-of-memory error."""
from __future__ import annotations

import json
import sys
import traceback
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Set, Tuple, Union

from vramtrack import _core


@dataclass(frozen=True)
class Explanation:
    """Why memory could not be allocated, by the messages in an error or a log. str() is the output of `vramtrack explain`."""

    #: "leak", "fragmentation", "too_big", "full", "limit", "outside", "host", "resource" (memory on the chip, threads, addresses), or
    #: "unknown" if the message does not show it
    cause: str
    #: the figures behind it, in words
    because: str
    #: the owner of the memory
    fault: str
    #: the remedy; "" if the cause is unknown
    next_step: str
    #: what would determine the cause; "" if it is known
    would_tell: str
    #: the order of events, how often it failed and whether it grew; "" if there is a single failure
    story: str
    #: failures of different kinds and warnings, in order, as in docs/formats/explain.md; empty if there is one kind
    events: Tuple[Dict[str, Any], ...]
    #: each failure as in docs/formats/explain.md: its program, its line, its figures in bytes
    failures: Tuple[Dict[str, Any], ...]
    text: str

    def __str__(self) -> str:
        return self.text


def _program_words(error: BaseException) -> str:
    """The tracebacks of an error and of those that led to it, without vramtrack's own verdicts."""
    tracebacks: List[str] = []
    seen: Set[int] = set()
    one: Optional[BaseException] = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        if not getattr(one, "is_verdict", False):
            tracebacks.insert(0, "".join(traceback.format_exception(type(one), one, one.__traceback__, chain=False)))
        one = one.__cause__ if one.__suppress_context__ else one.__context__
    return "\n".join(tracebacks)


def explain(error: Union[BaseException, str, bytes]) -> Optional[Explanation]:
    """Explains an out-of-memory error, from its message and those of the errors that led to it, or the messages in a text. None: it has no
    out-of-memory message that vramtrack recognises. vramtrack's own error about a leak (LeakError) is not such a message.

    try:
        train()
    except torch.OutOfMemoryError as error:
        print(vramtrack.explain(error))
        raise
    """
    if isinstance(error, BaseException):
        error = _program_words(error)
    text = error.encode("utf-8", "replace") if isinstance(error, str) else bytes(error)
    explained = _core.explain(text)
    if explained is None:
        return None
    document = json.loads(explained[0])
    return Explanation(
        cause=document["cause"],
        because=document["because"],
        fault=document["fault"],
        next_step=document["next_step"],
        would_tell=document["would_tell"],
        story=document["story"],
        events=tuple(document["events"]),
        failures=tuple(document["failures"]),
        text=explained[1].rstrip("\n"),
    )


def explained_words(error: Optional[BaseException]) -> Optional[str]:
    """The text to print below a traceback; None for errors that are not about memory. It never raises."""
    if error is None:
        return None
    try:
        explanation = explain(error)
    except Exception:  # the error itself is what matters
        return None
    return None if explanation is None else f"vramtrack: {explanation}"


def print_explanation(error: Optional[BaseException]) -> None:
    """Prints explained_words() to standard error, if there are any."""
    words = explained_words(error)
    if words is not None:
        print(words, file=sys.stderr)
