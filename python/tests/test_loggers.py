"""The loggers on doubles that do what each tracker does with the one method that it is asked for; TensorBoard's on tensorboardX where it is installed."""
import sys
import types

import pytest

import vramtrack
from vramtrack import loggers

MIB, GIB = 2**20, 2**30


@pytest.fixture
def watch(device):
    now = [0.0]
    watch = vramtrack.Watch(device, clock=lambda: now[0], evidence=False)
    device.allocate(4 * GIB)
    for n in range(1500):
        if n >= 600:
            device.allocate(8 * MIB)
        now[0] += 1
        watch.step()
        watch.sample()
    watch.check()
    return watch


def test_the_scalars_of_a_leak(watch):
    found = loggers.scalars(watch)
    assert found["vramtrack/allocator_allocated_mib"] == 4096 + 900 * 8
    assert found["vramtrack/leak"] == 1 and found["vramtrack/leak_probability"] > 0.5 and found["vramtrack/severity"] >= 1
    assert found["vramtrack/growth_mib_per_min"] == pytest.approx(480, rel=0.05)
    assert found["vramtrack/growth_mib_per_step"] == pytest.approx(8, rel=0.05)
    assert found["vramtrack/oom_in_s"] > 0 and "vramtrack/process_used_mib" not in found
    assert "vramtrack/host_pinned_mib" not in found
    watch.source.pinned_bytes = 96 * MIB
    watch.sample()
    assert loggers.scalars(watch)["vramtrack/host_pinned_mib"] == 96
    assert loggers.scalars(vramtrack.Watch(watch.source)) == {}, "nothing was seen yet"


class WandbRun:
    """Rows as W&B makes them: a row ends with a log() that commits, or with one for a later step; what comes for an earlier one is dropped."""

    def __init__(self):
        self.step, self.row, self.rows, self.dropped = 0, {}, [], []

    def log(self, found, step=None, commit=None):
        if step is not None and step < self.step:
            self.dropped.append(found)
            return
        if step is not None and step > self.step:
            self.end(step)
        self.row.update(found)
        if commit or (commit is None and step is None):
            self.end(self.step + 1)

    def end(self, step):
        if self.row:
            self.rows.append(self.row)
        self.step, self.row = step, {}


@pytest.mark.parametrize("order", ["figures first", "figures last", "without a step"])
def test_no_row_of_the_program_is_lost_in_wandb(watch, order):
    run = WandbRun()
    log = loggers.wandb(watch, run, every=2)
    for step in range(6):
        if order != "figures last":
            log(step)
        run.log({"loss": step}, **({} if order == "without a step" else {"step": step}))
        if order == "figures last":
            log(step)
    run.end(6)
    assert run.dropped == [] and [row["loss"] for row in run.rows] == list(range(6))
    assert [row["vramtrack/step"] for row in run.rows if "vramtrack/step" in row] == [0, 2, 4]


def test_each_row_is_kept_where_the_program_logs_nothing_to_wandb(watch):
    run = WandbRun()
    log = loggers.wandb(watch, run, every=1)
    for step in range(3):
        log(step)
    run.end(3)  # as finish() does
    assert [row["vramtrack/step"] for row in run.rows] == [0, 1, 2]


def test_each_tracker_gets_them_every_so_often(watch, monkeypatch):
    logged = []
    writer = types.SimpleNamespace(add_scalar=lambda name, value, step: logged.append(("tensorboard", name, step)))
    log = loggers.tensorboard(watch, writer, every=2)
    for step in range(100, 103):
        log(step)
    assert {entry[2] for entry in logged} == {100, 102} and ("tensorboard", "vramtrack/leak", 100) in logged

    run = WandbRun()
    loggers.wandb(watch, run)(7)
    assert run.row["vramtrack/step"] == 7 and run.row["vramtrack/leak"] == 1
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(run=None))
    with pytest.raises(ValueError, match=r"call wandb.init\(\) first"):
        loggers.wandb(watch)

    client = types.SimpleNamespace(log_metrics=lambda found, step: logged.append((step, found)))
    monkeypatch.setitem(sys.modules, "mlflow", client)
    log = loggers.mlflow(watch)
    log()
    assert logged[-1][0] == 0 and logged[-1][1]["vramtrack/leak"] == 1
    with pytest.raises(ValueError, match="every must be 1"):
        loggers.mlflow(watch, client, every=0)


def test_tensorboards_file(watch, tmp_path):
    tensorboardX = pytest.importorskip("tensorboardX")
    writer = tensorboardX.SummaryWriter(str(tmp_path))
    loggers.tensorboard(watch, writer)(1)
    writer.close()
    (file,) = tmp_path.iterdir()
    assert b"vramtrack/growth_mib_per_step" in file.read_bytes()
