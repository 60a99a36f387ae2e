"""Two snapshots in PyTorch's format, compared in C++: which lines grew."""
import gzip
import pickle

import pytest

import vramtrack
from vramtrack.snapshots import growing_sites

MIB = 2**20


def frames(*lines):
    return [{"name": name, "filename": file, "line": line} for name, file, line in lines]


LEAK = frames(("empty", "/site-packages/torch/functional.py", 5), ("log_loss", "/job/train.py", 42), ("main", "/job/train.py", 7))
MODEL = frames(("build", "/job/model.py", 11))


def of_stack(stack, blocks, device=0):
    """A snapshot of this many blocks of 2 MiB, all of one stack."""
    at = (4 + 4 * device) * 2**30
    rows = [{"address": at + 2 * n * MIB, "size": 2 * MIB, "requested_size": 2 * MIB, "state": "active_allocated", "frames": stack}
            for n in range(blocks)]  # fmt: skip
    size = 2 * MIB * blocks
    return {"segments": [{"device": device, "address": at, "total_size": size, "allocated_size": size, "active_size": size,
                          "requested_size": size, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                          "is_expandable": False, "frames": [], "blocks": rows}], "device_traces": [[]]}  # fmt: skip


def snapshot(leaked, history=()):
    blocks = [{"address": 4096 * MIB, "size": 100 * MIB, "requested_size": 100 * MIB, "state": "active_allocated", "frames": MODEL}]
    for n in range(leaked):
        blocks.append({"address": (4200 + 2 * n) * MIB, "size": 2 * MIB, "requested_size": 2 * MIB - 512,
                       "state": "active_allocated", "frames": LEAK})  # fmt: skip
    total = sum(block["size"] for block in blocks)
    return {
        "segments": [{"device": 0, "address": 4096 * MIB, "total_size": total, "allocated_size": total, "active_size": total,
                      "requested_size": total, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                      "is_expandable": False, "frames": [], "blocks": blocks}],
        "device_traces": [list(history)],
    }  # fmt: skip


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_the_line_that_grew_is_named(protocol):
    before, after = (pickle.dumps(snapshot(n), protocol) for n in (3, 10))
    (site,) = growing_sites(before, after)
    assert (site.name, site.file, site.line) == ("log_loss", "/job/train.py", 42), "the innermost line that is not the framework's"
    assert site.growth_bytes == 7 * (2 * MIB - 512) and site.live_bytes == 10 * (2 * MIB - 512)
    assert site.stack[0].startswith("/site-packages/torch") and len(site.stack) == 3
    assert growing_sites(after, before) == [] and growing_sites(before, before) == []


def test_the_line_is_the_one_that_the_command_line_names():
    """A stack of a library, Python's own and C++: what a person would look at first is neither of them."""
    def grown(*lines):
        stack = frames(*lines)
        (site,) = growing_sites(of_stack(stack, 1), of_stack(stack, 5))
        return site.name, site.line

    torch, library = ("empty", "/usr/lib/python3/dist-packages/torch/functional.py", 5), ("fit", "/site-packages/trainer/loop.py", 6)
    standard, native = ("run", "/usr/lib/python3.11/threading.py", 7), ("at::native::empty", "Empty.cpp", 8)
    own = ("step", "/home/me/torch/train.py", 9)
    assert grown(native, torch, standard, library, own) == ("step", 9), "a folder of one's own that is called torch is one's own"
    assert grown(native, torch, standard, library) == ("fit", 6)
    assert grown(native, torch, standard) == ("empty", 5)
    assert grown(("PyEval_EvalFrame", "ceval.c", 1), native) == ("at::native::empty", 8)


def test_each_device_has_its_own_growth():
    def of_both(first, second):
        both = of_stack(LEAK, first)
        both["segments"] += of_stack(MODEL, second, device=1)["segments"]
        both["device_traces"].append([])
        return both

    before, after = of_both(3, 3), of_both(5, 10)
    assert [site.line for site in growing_sites(before, after)] == [11, 42]
    assert [site.line for site in growing_sites(before, after, device=0)] == [42]
    assert [site.line for site in growing_sites(before, after, device=1)] == [11]
    assert growing_sites(before, after, device=2) == []


def test_dictionaries_and_compressed_files_do_as_well():
    after = gzip.compress(pickle.dumps(snapshot(10)))
    assert growing_sites(snapshot(3), after)[0].line == 42


def test_what_is_no_snapshot_is_refused_with_the_place():
    class Evil:
        def __reduce__(self):
            return print, ("executed",)

    with pytest.raises(ValueError, match="first snapshot.*at byte .*(STACK_GLOBAL|GLOBAL)"):
        growing_sites(pickle.dumps(Evil()), b"")
    with pytest.raises(ValueError, match="second snapshot.*empty"):
        growing_sites(snapshot(1), b"")


def test_what_a_simulated_device_gives_is_a_snapshot(device):
    """It has to be the format that every reader takes: `vramtrack snapshot oom` on a simulated watch's evidence."""
    device.allocate(3 * MIB)
    device.start_stacks()
    before = device.snapshot()
    for _ in range(5):
        device.allocate(2 * MIB)  # the leaking line
    with pytest.raises(vramtrack.SimulatedOutOfMemoryError):
        device.allocate(100 * 2**30)
    after = device.snapshot()
    (site,) = growing_sites(before, after)
    assert (site.file, site.name, site.growth_bytes) == (__file__, "test_what_a_simulated_device_gives_is_a_snapshot", 10 * MIB)
    assert device.growing_sites(before, after)[0][:5] == site[:5]
    (segment,) = after["segments"]
    assert segment["total_size"] == device.counters().reserved == sum(block["size"] for block in segment["blocks"])
    assert [(entry["action"], entry["size"]) for entry in after["device_traces"][0]] == [("oom", 100 * 2**30)]
    assert growing_sites(vramtrack.SimulatedDevice().snapshot(), vramtrack.SimulatedDevice().snapshot()) == []
