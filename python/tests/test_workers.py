"""A watch in processes that a framework starts."""
import os
import subprocess
import sys
import threading
import types

import pytest
from fake_torch import GIB, FakeTorch, nested

import vramtrack
from vramtrack import workers


@pytest.fixture
def torch(monkeypatch):
    """A stand-in on whose second device memory is used, once CUDA has been started."""
    fake = FakeTorch()
    fake.started, fake.hooks = False, []
    fake.cuda.is_initialized = lambda: fake.started
    fake.cuda.memory_reserved = lambda index: fake.stats.get(index, {}).get("reserved_bytes", {}).get("all", {}).get("current", 0)
    optimizer = types.ModuleType("torch.optim.optimizer")
    optimizer.register_optimizer_step_post_hook = fake.hooks.append
    for name, module in (("torch", fake), ("torch.optim", types.ModuleType("torch.optim")), ("torch.optim.optimizer", optimizer)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(workers, "_options", None)
    monkeypatch.setattr(workers, "_watches", {})
    monkeypatch.setattr(workers, "_marks_steps", False)
    monkeypatch.setattr(workers, "_start_thread", lambda: None)  # the tests look themselves
    monkeypatch.delenv("VRAMTRACK_WATCH", raising=False)
    yield fake
    for watch in workers.watches().values():
        watch.stop()


def uses(fake, device):
    fake.started = True
    fake.stats[device] = nested(GIB, 2 * GIB, GIB, 2 * GIB, GIB, 0, 4)


@pytest.mark.parametrize("word, asked, folder", [("", False, None), ("0", False, None), ("1", True, None), ("/evidence", True, "/evidence")])
def test_the_word_asks_for_it(torch, monkeypatch, word, asked, folder):
    monkeypatch.setenv("VRAMTRACK_WATCH", word)
    workers.start_if_asked()
    assert workers._options == ({"directory": folder} if asked else None)


def test_each_device_that_has_memory_is_watched_and_no_other(torch):
    workers.start(driver_library=None, ranks=False)
    workers._look()
    uses(torch, 1)
    torch.started = False
    workers._look()
    assert workers.watches() == {}, "CUDA has not been started"
    torch.started = True
    workers._look()
    workers._look()
    assert list(workers.watches()) == [1]
    uses(torch, 0)
    workers._look()
    assert {device: watch.source.device_id for device, watch in workers.watches().items()} == {1: 1, 0: 0}
    assert len(torch.hooks) == 1
    for _ in range(3):
        torch.hooks[0](None, (), {})
    assert [watch._marks.series["step"].count for watch in workers.watches().values()] == [3, 3]


def test_the_second_start_changes_nothing(torch):
    workers.start(interval_s=2.0)
    workers.start(interval_s=5.0)
    assert workers._options["interval_s"] == 2.0


def test_a_leak_is_said_once_with_what_to_do_next(torch, capsys):
    workers._reporter(1)(vramtrack.detect([0, 1], [1, 2]))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"vramtrack: process {os.getpid()}, cuda:1: leak: ")
    assert line.endswith(f"'vramtrack attach {os.getpid()}' names the lines that grow")


def test_a_forked_child_looks_by_itself(torch, monkeypatch):
    workers.start()
    workers._watches[0] = types.SimpleNamespace(stop=lambda: None)
    begun = []
    monkeypatch.setattr(workers, "_start_thread", lambda: begun.append(1))
    workers._in_child()
    assert workers.watches() == {} and begun == [1]


def test_not_asked_its_import_starts_no_thread():
    program = "import threading, vramtrack.workers; print([thread.name for thread in threading.enumerate()])"
    for word, threads in (("", "['MainThread']"), ("1", "['MainThread', 'vramtrack-workers']")):
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "VRAMTRACK_WATCH": word}, capture_output=True, text=True, timeout=60)
        assert done.stdout.strip() == threads, done.stderr
    assert not any(thread.name == "vramtrack-workers" for thread in threading.enumerate())
