"""The extras against minimal stand-ins of their base classes: what the frameworks call, in their order."""
import importlib
import sys
import types

import pytest

import vramtrack

MIB = 2**20


def stand_in(monkeypatch, name, **attributes):
    parts = name.split(".")
    for n in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:n]), types.ModuleType(".".join(parts[:n])))
    for key, value in attributes.items():
        setattr(sys.modules[name], key, value)


def load(monkeypatch, module):
    monkeypatch.delitem(sys.modules, module, raising=False)
    return importlib.import_module(module)


def test_lightning(device, monkeypatch):
    stand_in(monkeypatch, "lightning.pytorch.callbacks", Callback=type("Callback", (), {}))
    callback = load(monkeypatch, "vramtrack.lightning").VramtrackCallback(before_oom=lambda trainer, verdict: None, interval_s=10)
    trainer = object()
    callback.on_fit_start(trainer, None)
    for epoch in range(2):
        for n in range(5):
            callback.on_train_batch_end(trainer, None, None, None, n)
        callback.on_train_epoch_end(trainer, None)
    callback.on_fit_end(trainer, None)
    assert callback.watch._marks.series["step"].count == 10 and callback.watch._marks.series["epoch"].count == 2
    assert callback.watch._thread is None


def test_lightning_calls_back_at_the_end_of_a_batch_and_once(device, monkeypatch):
    stand_in(monkeypatch, "lightning.pytorch.callbacks", Callback=type("Callback", (), {}))
    told = []
    callback = load(monkeypatch, "vramtrack.lightning").VramtrackCallback(before_oom=lambda *args: told.append(args), interval_s=10)
    trainer, verdict = object(), vramtrack.detect([0, 1], [1, 2])
    callback.on_fit_start(trainer, None)
    callback._closer(verdict)  # by the watch's thread, amid a batch
    assert told == []
    for n in range(2):
        callback.on_train_batch_end(trainer, None, None, None, n)
    callback.on_fit_end(trainer, None)
    assert told == [(trainer, verdict)]


def test_hugging_face_saves_in_time(device, monkeypatch):
    stand_in(monkeypatch, "transformers", TrainerCallback=type("TrainerCallback", (), {}))
    callback = load(monkeypatch, "vramtrack.huggingface").VramtrackCallback(save_before_oom=True, interval_s=10)
    control = types.SimpleNamespace(should_save=False)
    callback.on_train_begin(None, None, control)
    callback.on_step_end(None, None, control)
    assert not control.should_save
    callback._closer(vramtrack.detect([0, 1], [1, 2]))
    callback.on_step_end(None, None, control)
    assert control.should_save
    control.should_save = False
    callback.on_step_end(None, None, control)
    assert not control.should_save, "once"
    callback.on_epoch_end(None, None, control)
    callback.on_train_end(None, None, control)
    assert callback.watch._marks.series["step"].count == 3


@pytest.mark.parametrize("module, base, begin", [
    ("vramtrack.lightning", ("lightning.pytorch.callbacks", "Callback"), lambda c: c.on_fit_start(None, None)),
    ("vramtrack.huggingface", ("transformers", "TrainerCallback"), lambda c: c.on_train_begin(None, None, None)),
])  # fmt: skip
def test_training_that_is_tried_again_after_an_error(device, monkeypatch, tmp_path, module, base, begin):
    """Nothing reports the end of the first attempt."""
    stand_in(monkeypatch, base[0], **{base[1]: type(base[1], (), {})})
    callback = load(monkeypatch, module).VramtrackCallback(interval_s=10, directory=str(tmp_path))
    begin(callback)
    listeners, observers, first = len(vramtrack.marks._listeners), len(device._observers), callback.watch
    begin(callback)
    assert callback.watch is not first and first._thread is None
    assert (len(vramtrack.marks._listeners), len(device._observers)) == (listeners, observers)
    callback.watch.stop()


@pytest.mark.parametrize("module, base, calls", [
    ("vramtrack.lightning", ("lightning.pytorch.callbacks", "Callback"),
     lambda c: (c.on_fit_start(None, None), c.on_train_batch_end(None, None, None, None, 0), c.on_train_epoch_end(None, None), c.on_fit_end(None, None))),
    ("vramtrack.huggingface", ("transformers", "TrainerCallback"),
     lambda c: (c.on_train_begin(None, None, None), c.on_step_end(None, None, None), c.on_epoch_end(None, None, None), c.on_train_end(None, None, None))),
])  # fmt: skip
def test_without_a_device_it_warns_and_stays_idle(monkeypatch, module, base, calls):
    monkeypatch.setitem(sys.modules, "torch", None)
    stand_in(monkeypatch, base[0], **{base[1]: type(base[1], (), {})})
    callback = load(monkeypatch, module).VramtrackCallback()
    with pytest.warns(UserWarning, match="vramtrack is not watching: PyTorch cannot be imported"):
        calls(callback)
    assert callback.watch is None


@pytest.mark.parametrize("module, hidden, words", [
    ("vramtrack.lightning", ("lightning", "pytorch_lightning"), "pip install lightning$"),
    ("vramtrack.huggingface", ("transformers",), "pip install transformers$"),
])  # fmt: skip
def test_without_the_framework_the_error_says_what_to_install(monkeypatch, module, hidden, words):
    for name in hidden:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(ImportError, match=words):
        importlib.import_module(module)


def test_fabric_calls_by_name(device):
    from vramtrack.fabric import VramtrackCallback

    told = []
    callback = VramtrackCallback(before_oom=told.append, source=device, interval_s=60.0)
    callback.on_after_optimizer_step(strategy=None, optimizer=None)  # before setup(): nothing is watched
    callback.on_after_setup(fabric=None, module=None)
    watch = callback.watch
    callback.on_after_setup(fabric=None, module=None)  # of a second model
    assert callback.watch is watch and watch is not None
    for _ in range(3):
        callback.on_after_optimizer_step(strategy=None, optimizer=None)
    callback.on_train_epoch_end()
    assert watch._marks.series["step"].count == 3 and watch._marks.series["epoch"].count == 1
    callback.on_fit_end()
    assert callback.watch is None and watch._thread is None


def test_fabric_without_a_device_warns_once(monkeypatch):
    from vramtrack import optional_watch
    from vramtrack.errors import NoDeviceError
    from vramtrack.fabric import VramtrackCallback

    def no_device(**options):
        raise NoDeviceError("no CUDA device")

    monkeypatch.setattr(optional_watch, "Watch", no_device)
    callback = VramtrackCallback()
    with pytest.warns(UserWarning, match="vramtrack is not watching: no CUDA device") as warned:
        callback.on_after_setup()
        callback.on_after_setup()
    assert len(warned) == 1
    callback.on_after_optimizer_step()
    callback.stop()
