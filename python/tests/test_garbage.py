"""Collections of the gate look only at what the gated body made."""
import gc
import subprocess
import sys
import weakref

import pytest

import vramtrack
from vramtrack.garbage import only_new_objects


class Node:
    def __init__(self):
        self.me = self


@pytest.fixture
def many_objects():
    return [{"number": n, "list": [n]} for n in range(300_000)]


def test_a_collection_does_not_look_at_what_was_there_before(device, many_objects):
    seen = []

    def body():
        seen.append(gc.get_freeze_count())
        device.free(device.allocate(1))

    assert vramtrack.check(body).result.iterations == 128
    assert min(seen) > 300_000, "frozen objects are not looked at"


def test_new_garbage_is_collected_and_everything_is_as_before(many_objects):
    frozen = gc.get_freeze_count()
    with only_new_objects():
        assert gc.get_freeze_count() > 300_000
        with only_new_objects():
            pass
        assert gc.get_freeze_count() > 300_000, "the outer block has not ended"
        node = weakref.ref(Node())
        gc.collect()
        assert node() is None
    assert gc.get_freeze_count() <= frozen


def test_after_an_error_too(device):
    def body():
        raise KeyError("body")

    with pytest.raises(KeyError):
        vramtrack.check(body)
    assert gc.get_freeze_count() < 5000


def test_what_the_program_has_frozen_stays_frozen():
    """In a separate process: there is no way to freeze a part."""
    code = ("import gc\nimport vramtrack\nkept = [[] for _ in range(20000)]\ngc.freeze()\nbefore = gc.get_freeze_count()\n"
            "device = vramtrack.SimulatedDevice()\nvramtrack.check(lambda: device.free(device.allocate(1)), source=device)\n"
            "assert gc.get_freeze_count() == before > 20000\n")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
