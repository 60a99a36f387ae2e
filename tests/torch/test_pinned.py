"""Pinned host memory of real PyTorch as a series of a Watch."""
import pytest
import torch

import vramtrack
from vramtrack import loggers

MIB = 2**20


@pytest.fixture
def watch():
    now = [1_750_000_000.0]
    watch = vramtrack.Watch(clock=lambda: now[0], evidence=False)
    watch.advance = lambda: now.__setitem__(0, now[0] + 5)
    pinned = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
    if watch.sample().host_pinned is None:
        assert not hasattr(torch.cuda, "host_memory_stats"), "a version that counts it"
        pytest.skip("this version of PyTorch does not count pinned memory")
    yield watch
    del pinned


def test_it_grows_while_pinned_tensors_are_kept(watch):
    before, kept = watch.sample().host_pinned, []
    for _ in range(3):
        kept.append(torch.empty(64 * MIB, dtype=torch.uint8, pin_memory=True))
        assert kept[-1].is_pinned()
    assert watch.sample().host_pinned - before == 192 * MIB
    assert loggers.scalars(watch)["vramtrack/host_pinned_mib"] == (before + 192 * MIB) / MIB
    assert f"{(before / MIB + 192):,.0f} MiB" in str(watch.breakdown()).split("pinned host memory")[1]
    assert "host_pinned" in watch.samples[-1]._fields and watch.samples[-1].host_pinned == before + 192 * MIB


def test_a_leak_of_it_is_found_and_one_that_is_used_again_is_none(watch):
    kept = []
    for step in range(240):
        batch = torch.empty(4 * MIB, dtype=torch.uint8, pin_memory=True)
        kept.append(batch)
        if step < 80:
            kept.clear()
        watch.advance()
        watch.sample()
        if step == 79:
            assert not watch.verdict("host_pinned").leak
    verdict = watch.verdict("host_pinned")
    assert verdict.growth_bytes_per_s.mid > 0 and verdict.headline.startswith("pinned host memory: ") and verdict.growth_per == {}
    assert verdict.series.high_bytes[-1] - verdict.series.low_bytes[0] >= 600 * MIB
    assert "<svg" in verdict._repr_html_()
    del kept, batch
