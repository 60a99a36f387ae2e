"""The callbacks of a Watch, each called once: on_leak, and before_oom when the predicted end is near."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, List, Optional

from vramtrack.verdict import Verdict

Callback = Callable[[Verdict], None]


@dataclass
class _BeforeOom:
    callback: Callback
    seconds: float
    was_called: bool = False


class Callbacks:
    """`note` receives their exceptions, which do not end the watch."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.before_oom: List[_BeforeOom] = []
        self._note = note
        self._has_reported = False

    def add_before_oom(self, callback: Callback, seconds: float) -> None:
        if not seconds > 0:
            raise ValueError("seconds must be greater than 0: it is the time that saving a checkpoint takes")
        self.before_oom.append(_BeforeOom(callback, float(seconds)))

    def call(self, verdict: Verdict, on_leak: Optional[Callback]) -> None:
        """Calls the callbacks that are due."""
        if verdict.leak and not self._has_reported and on_leak is not None:
            self._has_reported = True
            self._call("on_leak", on_leak, verdict)
        if verdict.leak and verdict.oom_in_s is not None:
            for one in list(self.before_oom):
                if not one.was_called and verdict.oom_in_s.low <= one.seconds:
                    one.was_called = True
                    self._call("before_oom", one.callback, verdict)

    def next_check_in(self, verdict: Verdict, check_every_s: float, interval_s: float) -> float:
        """check_every_s, or less if a before_oom callback would otherwise come too late."""
        if not verdict.leak or verdict.oom_in_s is None:
            return check_every_s
        left = [verdict.oom_in_s.low - one.seconds for one in self.before_oom if not one.was_called]
        soonest = max(min(interval_s, 1.0), 0.5 * min(left)) if left else check_every_s
        return min(check_every_s, soonest)

    def _call(self, what: str, callback: Callback, verdict: Verdict) -> None:
        try:
            callback(verdict)
        except Exception as error:
            self._note(f"{what}: {type(error).__name__}: {error}")
