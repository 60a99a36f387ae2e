"""A callback for the Hugging Face Trainer: Trainer(..., callbacks=[VramtrackCallback()]). It needs transformers."""
from __future__ import annotations

from typing import Any, Callable, Optional

from vramtrack.verdict import Verdict
from vramtrack.optional_watch import watch_or_warn
from vramtrack.watch import Watch

try:
    from transformers import TrainerCallback
except ImportError:
    raise ImportError("vramtrack.huggingface needs transformers: pip install transformers") from None


class VramtrackCallback(TrainerCallback):
    """Watches the training and marks steps and epochs.

    save_before_oom  True: the Trainer saves a checkpoint at the end of the step in which the predicted out-of-memory error comes
                     closer than `checkpoint_s` seconds
    before_oom       called once with the verdict at the same time, on the watch's thread
    **watch          other arguments of Watch
    """

    def __init__(
        self,
        save_before_oom: bool = False,
        checkpoint_s: float = 120.0,
        before_oom: Optional[Callable[[Verdict], None]] = None,
        **watch: Any,
    ) -> None:
        self._save, self._checkpoint_s, self._before_oom, self._options = save_before_oom, checkpoint_s, before_oom, watch
        self._save_now = False
        self.watch: Optional[Watch] = None

    def _closer(self, verdict: Verdict) -> None:
        self._save_now = self._save
        if self._before_oom is not None:
            self._before_oom(verdict)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.watch is not None:  # left by an attempt that ended with an exception and is being retried
            self.watch.stop()
        self._save_now = False
        self.watch = watch_or_warn(self._options)
        if self.watch is None:
            return
        self.watch.before_oom(self._closer, self._checkpoint_s)
        self.watch.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        if self.watch is not None:
            self.watch.step()
        if self._save_now:
            self._save_now = False
            control.should_save = True
        return control

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.watch is not None:
            self.watch.epoch()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.watch is not None:
            self.watch.stop()
