"""A callback for Lightning Fabric: Fabric(callbacks=[VramtrackCallback()]). Fabric calls its methods by name, so nothing is imported."""
from __future__ import annotations

from typing import Any, Callable, Optional

from vramtrack.optional_watch import watch_or_warn
from vramtrack.verdict import Verdict
from vramtrack.watch import Watch


class VramtrackCallback:
    """Watches from the first setup() on, and marks each step of an optimizer. A loop of one's own marks its epochs with
    fabric.call("on_train_epoch_end"), and ends the watch with fabric.call("on_fit_end") or stop(); else it ends with the program.

    before_oom    called once with the verdict, on the watch's thread, when the predicted out-of-memory error comes closer than
                  `checkpoint_s` seconds
    **watch       other arguments of Watch
    """

    def __init__(self, before_oom: Optional[Callable[[Verdict], None]] = None, checkpoint_s: float = 120.0, **watch: Any) -> None:
        self._before_oom, self._checkpoint_s, self._options = before_oom, checkpoint_s, watch
        self._is_refused = False
        self.watch: Optional[Watch] = None

    def on_after_setup(self, fabric: Any = None, module: Any = None, **more: Any) -> None:
        if self.watch is not None or self._is_refused:
            return
        self.watch = watch_or_warn(self._options)
        self._is_refused = self.watch is None
        if self.watch is None:
            return
        if self._before_oom is not None:
            self.watch.before_oom(self._before_oom, self._checkpoint_s)
        self.watch.start()

    def on_after_optimizer_step(self, *arguments: Any, **more: Any) -> None:
        if self.watch is not None:
            self.watch.step()

    def on_train_epoch_end(self, *arguments: Any, **more: Any) -> None:
        if self.watch is not None:
            self.watch.epoch()

    def on_fit_end(self, *arguments: Any, **more: Any) -> None:
        self.stop()

    def stop(self) -> None:
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.stop()
