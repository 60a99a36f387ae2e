"""The figures of a Watch, as scalars for an experiment tracker: TensorBoard, Weights & Biases, MLflow. Each is imported only on request."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from vramtrack.rank_words import first_of
from vramtrack.units import MIB
from vramtrack.watch import Watch

Log = Callable[[Dict[str, float], int], None]
_GRADES = {"ok": 0.0, "watch": 1.0, "warning": 2.0, "critical": 3.0}


def scalars(watch: Watch, prefix: str = "vramtrack/") -> Dict[str, float]:
    """The last sample in MiB and the last verdict, by name. Figures that could not be read are left out. Empty before the first sample."""
    found: Dict[str, float] = {}
    last = watch.samples[-1] if watch.samples else None
    if last is not None:
        for name in ("allocator_allocated", "allocator_reserved", "device_used", "process_used", "host_pinned"):
            value = getattr(last, name, None)
            if value is not None:
                found[f"{prefix}{name}_mib"] = value / MIB
    verdict = watch.last_verdict
    if verdict is not None:
        found[f"{prefix}leak"] = float(verdict.leak)
        found[f"{prefix}leak_probability"] = float(verdict.confidence)
        found[f"{prefix}severity"] = _GRADES.get(verdict.severity, 0.0)
        if verdict.growth_bytes_per_s is not None:
            found[f"{prefix}growth_mib_per_min"] = verdict.growth_bytes_per_s.mid * 60 / MIB
        if verdict.oom_in_s is not None:
            found[f"{prefix}oom_in_s"] = float(verdict.oom_in_s.mid)
        for mark, growth in verdict.growth_per.items():
            found[f"{prefix}growth_mib_per_{mark}"] = growth / MIB
    known = watch._ranks.known() if watch._ranks is not None else []
    if known:
        found[f"{prefix}ranks_growing"] = float(sum(rank.grows for rank in known))
        first = first_of(known)
        if first is not None:
            found[f"{prefix}first_growing_rank"] = float(first.rank)
    return found


class Logger:
    """Logs a watch's figures: call it after each step, with or without the step's number. It logs on every `every`-th call."""

    def __init__(self, watch: Watch, log: Log, every: int = 10, prefix: str = "vramtrack/") -> None:
        if every < 1:
            raise ValueError("every must be 1 or more")
        self.watch, self.every, self.prefix = watch, every, prefix
        self._log, self._calls = log, 0

    def __call__(self, step: Optional[int] = None) -> None:
        self._calls += 1
        if (self._calls - 1) % self.every:
            return
        found = scalars(self.watch, self.prefix)
        if found:
            self._log(found, self._calls - 1 if step is None else int(step))


def tensorboard(watch: Watch, writer: Any = None, **options: Any) -> Logger:
    """Logs to `writer`, a SummaryWriter of torch.utils.tensorboard or tensorboardX; default: a new one from torch."""
    if writer is None:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter()

    def log(found: Dict[str, float], step: int) -> None:
        for name, value in found.items():
            writer.add_scalar(name, value, step)

    return Logger(watch, log, **options)


def wandb(watch: Watch, run: Any = None, **options: Any) -> Logger:
    """Logs to a run of Weights & Biases; default: the current one."""
    if run is None:
        import wandb as package

        run = package.run
        if run is None:
            raise ValueError("there is no run of Weights & Biases; call wandb.init() first, or pass run=")
    # W&B drops values logged for an earlier step than its current one, and each committed log() is a step. So the figures wait for the
    # program's own log() and share its row. If none has come since the previous figures, those become a separate row.
    waiting: Optional[int] = None

    def log(found: Dict[str, float], step: int) -> None:
        nonlocal waiting
        if waiting is not None and waiting == run.step:
            run.log({}, commit=True)
        run.log({**found, "vramtrack/step": step}, commit=False)
        waiting = run.step

    return Logger(watch, log, **options)


def mlflow(watch: Watch, client: Any = None, **options: Any) -> Logger:
    """Logs to the active run of MLflow or, with `client`, to any object that has log_metrics(metrics, step=)."""
    if client is None:
        import mlflow as package

        client = package
    return Logger(watch, lambda found, step: client.log_metrics(found, step=step), **options)


__all__ = ["Logger", "mlflow", "scalars", "tensorboard", "wandb"]
