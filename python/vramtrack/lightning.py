"""Callback for Lightning: trainer = Trainer(callbacks=[VramtrackCallback()]). Needs lightning or pytorch_lightning."""
from __future__ import annotations

from typing import Any, Callable, Optional

from vramtrack.verdict import Verdict
from vramtrack.watch import Watch

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback
    except ImportError:
        raise ImportError("vramtrack.lightning needs Lightning: pip install 'vramtrack[lightning]'") from None


class VramtrackCallback(Callback):
    """Watches training and marks steps and epochs. `before_oom` and `checkpoint_s` as Watch.before_oom; the callback gets
    (trainer, verdict). Other arguments are Watch's."""

    def __init__(
        self, before_oom: Optional[Callable[[Any, Verdict], None]] = None, checkpoint_s: float = 120.0, **watch: Any
    ) -> None:
        super().__init__()
        self._before_oom, self._checkpoint_s, self._options = before_oom, checkpoint_s, watch
        self.watch: Optional[Watch] = None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self.watch = Watch(**self._options)
        if self._before_oom is not None:
            call = self._before_oom
            self.watch.before_oom(lambda verdict: call(trainer, verdict), self._checkpoint_s)
        self.watch.start()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.watch is not None:
            self.watch.step()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self.watch is not None:
            self.watch.epoch()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        if self.watch is not None:
            self.watch.stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.on_fit_end(trainer, pl_module)
