"""A simulated device for every test, driven by the test; the real one is asked for by name."""
import pytest

import vramtrack

MIB = 2**20


@pytest.fixture
def device():
    with vramtrack.use_source(vramtrack.SimulatedDevice(capacity_bytes=24 * 2**30)) as source:
        yield source


@pytest.fixture
def profiler(device):
    return vramtrack.GPUMemoryProfiler(source=device)


class Clock:
    """Time that the test moves."""

    def __init__(self, now=1_750_000_000.0):
        self.now = now

    def __call__(self):
        return self.now
