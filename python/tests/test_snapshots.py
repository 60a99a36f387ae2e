"""Two snapshots in PyTorch's format, compared in C++: which lines grew."""
import gzip
import pickle

import pytest

from vramtrack.snapshots import growing_sites

MIB = 2**20


def frames(*lines):
    return [{"name": name, "filename": file, "line": line} for name, file, line in lines]


LEAK = frames(("empty", "/site-packages/torch/functional.py", 5), ("log_loss", "/job/train.py", 42), ("main", "/job/train.py", 7))
MODEL = frames(("build", "/job/model.py", 11))


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
