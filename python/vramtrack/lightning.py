"""A callback for Lightning: Trainer(callbacks=[VramtrackCallback()]). It needs lightning or pytorch_lightning."""
from __future__ import annotations

from typing import Any, Callable, Optional

from vramtrack.verdict import Verdict
from vramtrack.optional_watch import watch_or_warn
from vramtrack.watch import Watch

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback
    except ImportError:
        raise ImportError("vramtrack.lightning needs Lightning: pip install lightning") from None


class VramtrackCallback(Callback):
    """Watches the training and marks steps and epochs.

    before_oom    called once with (trainer, verdict), at the end of the batch in which the predicted out-of-memory error comes closer
                  than `checkpoint_s` seconds. The training waits for it
    **watch       other arguments of Watch
    """

    def __init__(
        self, before_oom: Optional[Callable[[Any, Verdict], None]] = None, checkpoint_s: float = 120.0, **watch: Any
    ) -> None:
        super().__init__()
        self._before_oom, self._checkpoint_s, self._options = before_oom, checkpoint_s, watch
        self._due: Optional[Verdict] = None
        self.watch: Optional[Watch] = None

    def _closer(self, verdict: Verdict) -> None:  # called on the watch's thread
        self._due = verdict

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        if self.watch is not None:  # left by an attempt that ended with an exception and is being retried
            self.watch.stop()
        self._due = None
        self.watch = watch_or_warn(self._options)
        if self.watch is None:
            return
        if self._before_oom is not None:
            self.watch.before_oom(self._closer, self._checkpoint_s)
        self.watch.start()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.watch is not None:
            self.watch.step()
        due, self._due = self._due, None
        if due is not None and self._before_oom is not None:
            self._before_oom(trainer, due)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self.watch is not None:
            self.watch.epoch()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        if self.watch is not None:
            self.watch.stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.on_fit_end(trainer, pl_module)
