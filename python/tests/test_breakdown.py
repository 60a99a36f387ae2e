"""What memory consists of: private pools, pinned host memory, and what lies outside the allocator."""
import json

import pytest
from fake_torch import GIB, MIB, nested

import vramtrack
from vramtrack.evidence import write_evidence
from vramtrack.torch_source import TorchSource


def segment(pool, total, allocated, device=0):
    return {"device": device, "segment_pool_id": pool, "total_size": total * MIB, "allocated_size": allocated * MIB}


@pytest.fixture
def watch(torch):
    torch.stats = {0: nested(1000 * MIB, 3000 * MIB, 0, 0, 0, 0, 9)}
    return vramtrack.Watch(TorchSource(0), driver_library=None, evidence=False)


def test_private_pools_beside_the_common_one(torch, watch):
    asked = []
    segments = [segment((0, 0), 900, 400), segment((1, 0), 600, 100), segment((1, 0), 400, 100), segment((0, 2), 1100, 400), segment((7, 0), 5, 5, 1)]
    torch.cuda.memory_snapshot = lambda include_traces=True: asked.append(include_traces) or segments
    found = watch.breakdown()
    assert asked == [False], "the history is not copied"
    assert found.pools == (((0, 2), 1100 * MIB, 400 * MIB), ((1, 0), 1000 * MIB, 200 * MIB)), "of this device"
    assert (found.allocated, found.reserved, found.outside, found.host_pinned) == (1000 * MIB, 3000 * MIB, 20 * GIB - 3000 * MIB, None)
    assert str(found).splitlines() == [
        "allocated                   1000.0 MiB",
        "reserved, not allocated        2.0 GiB",
        "outside the allocator         17.1 GiB",
        "in private pools               2.1 GiB",
        "  pool 0.2: 1.1 GiB reserved, 400.0 MiB of it allocated",
        "  CUDA graph 1: 1000.0 MiB reserved, 200.0 MiB of it allocated",
    ]
    watch.sample()
    (said,) = [line for line in watch.advice() if "private pools" in line]
    assert said.startswith("2 private pools (CUDA graphs, MemPool) keep 1.5 GiB of 2.1 GiB unused")
    del segments[1:4]
    assert not any("private" in line for line in watch.advice())
    segments += [segment((n, 0), 10, 10) for n in range(1, 12)]
    assert str(watch.breakdown()).endswith("  and 3 more")


def test_versions_without_pools_or_without_the_argument(torch, watch):
    assert watch.breakdown().pools == (), "no memory_snapshot()"
    torch.cuda.memory_snapshot = lambda: [{"device": 0, "total_size": 1, "allocated_size": 1}, segment((3, 0), 2, 1)]
    assert [pool.id for pool in watch.breakdown().pools] == [(3, 0)], "a segment without one is the common pool's"

    def refuse(include_traces=True):
        raise RuntimeError("CUDAPluggableAllocator does not yet support snapshot")

    torch.cuda.memory_snapshot = refuse
    with pytest.raises(RuntimeError):
        watch.breakdown()
    watch.sample()
    watch.advice()
    assert watch.errors == ["pools: CUDAPluggableAllocator does not yet support snapshot"]
    torch.cuda.get_allocator_backend = lambda: "pluggable"
    assert watch.breakdown().pools == ()


def test_pinned_host_memory_as_a_series(torch, watch):
    assert watch.sample().host_pinned is None, "a version that does not count it"
    stats = {}
    torch.cuda.host_memory_stats_as_nested_dict = lambda: stats
    assert watch.sample().host_pinned is None, "before the first allocation"
    for pinned in (64, 128):
        stats["allocated_bytes"] = {"current": pinned * MIB, "peak": 999 * MIB}
        stats["active_bytes"] = {"current": MIB, "peak": MIB}
        watch.sample()
    assert [sample.host_pinned for sample in watch.samples] == [None, None, 64 * MIB, 128 * MIB]
    assert "pinned host memory           128.0 MiB" in str(watch.breakdown())

    def refuse():
        raise RuntimeError("not supported")

    torch.cuda.host_memory_stats_as_nested_dict = refuse
    assert watch.sample().host_pinned is None and watch.errors == []


def test_the_evidence_of_an_end_has_both(torch, watch, tmp_path):
    torch.cuda.host_memory_stats_as_nested_dict = lambda: {"allocated_bytes": {"current": 5 * MIB}}
    torch.cuda.memory_snapshot = lambda include_traces=True: [segment((1, 0), 600, 100)]
    watch.directory = str(tmp_path)
    watch.sample()
    document = json.load(open(write_evidence(watch, GIB, 0)))
    assert document["pools"] == [{"id": [1, 0], "reserved_bytes": 600 * MIB, "allocated_bytes": 100 * MIB}]
    assert document["samples"][0][document["sample_fields"].index("host_pinned")] == 5 * MIB
