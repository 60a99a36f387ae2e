"""A simulated device for every test, driven by the test; the real one is asked for by name."""
import gc
import os
import sys
import threading

import hypothesis
import pytest
from fake_torch import FakeTorch

import vramtrack

MIB = 2**20
# Nothing is kept in the source tree, and a slow machine is not a failure.
hypothesis.settings.register_profile("gate", database=None, deadline=None)
hypothesis.settings.load_profile("gate")


def pytest_collection_modifyitems(items):
    """Hypothesis draws the same numbers in each run; VRAMTRACK_TEST_SEED chooses others."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            hypothesis.seed(int(os.environ.get("VRAMTRACK_TEST_SEED", "1")))(item.obj)


@pytest.fixture
def device():
    with vramtrack.use_source(vramtrack.SimulatedDevice(capacity_bytes=24 * 2**30)) as source:
        yield source


@pytest.fixture
def profiler(device):
    return vramtrack.GPUMemoryProfiler(source=device)


@pytest.fixture
def run_at_once():
    """Runs functions at once, each in a thread. Threads take turns every `switch_s` seconds."""

    def run(functions, switch_s):
        threads = [threading.Thread(target=function) for function in functions]
        usual_s = sys.getswitchinterval()
        sys.setswitchinterval(switch_s)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(usual_s)

    return run


class Clock:
    """Time that the test moves."""

    def __init__(self, now=1_750_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def library(tmp_path, monkeypatch):
    """The fake NVML library; call it with a scenario. It reads that when it is loaded: who had it before has to be gone."""
    gc.collect()
    path = os.path.join(os.environ.get("VRAMTRACK_BUILD_DIR", ""), "fake_nvml", "current", "libnvidia-ml.so.1")
    if not os.path.exists(path):
        pytest.skip("the fake NVML library was not built")

    def write(*lines):
        (tmp_path / "scenario.txt").write_text("\n".join(lines) + "\n")
        monkeypatch.setenv("VRAMTRACK_FAKE_NVML", str(tmp_path / "scenario.txt"))
        return path

    return write


@pytest.fixture
def torch(monkeypatch):
    """PyTorch that sees one GPU, the driver's second."""
    fake = FakeTorch()
    del fake.properties[1]
    fake.properties[0].uuid = "bb1"
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake
