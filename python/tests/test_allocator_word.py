"""What is allocated against what is reserved: growth of the reserve alone is cache or fragmentation."""
import math

import pytest
from fake_torch import GIB, MIB, nested

import vramtrack
from vramtrack.stream import Stream
from vramtrack.torch_source import TorchSource


def stepping(second):
    return int(3 * GIB + 512 * MIB * (second % 7) / 7)


def growing(second, mib=4):
    return 5 * GIB + max(0, second - 900) * mib * MIB


def watched(torch, allocated, reserved, seconds=3600):
    """A watch of a job of which PyTorch reports these two figures at each second."""
    now = [1_750_000_000.0]
    watch = vramtrack.Watch(TorchSource(0), clock=lambda: now[0], driver_library=None, evidence=False)
    total = torch.properties[0].total_memory = 24 * GIB
    for second in range(seconds):
        live, kept = allocated(second), reserved(second)
        torch.stats[0] = nested(live, kept, live, kept, live, 0, 100)
        torch.cuda.mem_get_info = lambda index, used=kept + GIB: (total - used, total)
        watch.sample()
        now[0] += 1
    return watch


def test_growth_of_the_reserve_alone_is_no_leak(torch):
    watch = watched(torch, stepping, growing)
    reserved = watch.verdict("allocator_reserved")
    assert not reserved.leak and reserved.stage is None and reserved.alerts == ()
    assert "cache or fragmentation, not a leak" in reserved.because
    assert reserved.oom_if_growth_continues_s == pytest.approx((23 * GIB - growing(3600)) / (4 * MIB), rel=0.1)
    assert not watch.verdict("device_used").leak and "cache or fragmentation" in watch.verdict("device_used").because
    assert not watch.verdict().leak


def test_growth_of_live_memory_is_the_leak(torch):
    watch = watched(torch, lambda second: growing(second) - 2 * GIB, growing)
    assert watch.verdict().leak and watch.verdict().metric == "allocator_allocated"
    assert watch.verdict("allocator_reserved").leak and "live memory grows" in watch.verdict("allocator_reserved").because


def test_live_memory_ends_where_the_cache_and_the_free_memory_do(torch):
    watch = watched(torch, growing, lambda second: 20 * GIB)
    assert watch.verdict().oom_in_s.mid == pytest.approx((23 * GIB - growing(3600)) / (4 * MIB), rel=0.1)


def test_a_recording_of_a_watch_says_the_same(torch):
    watch = watched(torch, stepping, growing)
    times = [sample.time_s for sample in watch.samples]
    reserved = [sample.allocator_reserved for sample in watch.samples]
    allocated = [sample.allocator_allocated for sample in watch.samples]
    assert vramtrack.detect(times, reserved, 24 * GIB, metric="allocator_reserved").leak
    verdict = vramtrack.detect(times, reserved, 24 * GIB, metric="allocator_reserved", beside={"allocator_allocated": allocated})
    assert not verdict.leak and "cache or fragmentation" in verdict.because
    used = [sample.device_used for sample in watch.samples]
    beside = {"allocator_allocated": allocated, "allocator_reserved": reserved}
    whole = vramtrack.detect(times, used, 24 * GIB, beside=beside)
    live = watch.verdict("device_used")
    assert whole.to_json() == live.to_json()


def test_what_cannot_be_given_beside():
    with pytest.raises(ValueError, match="3 values and beside"):
        vramtrack.detect([1, 2, 3], [1, 2, 3], beside={"allocator_allocated": [1, 2]})
    with pytest.raises(ValueError, match="unknown metric 'vram'"):
        vramtrack.detect([1], [1], beside={"vram": [1]})
    stream = Stream()
    stream.observe(10, GIB)
    with pytest.raises(ValueError, match="earlier"):
        stream.observe_beside("allocator_allocated", 9, GIB)
    stream.observe_beside("allocator_allocated", 10, None)
    stream.observe_beside("allocator_allocated", 11, math.nan)
    assert stream.verdict(metric="allocator_allocated").because == "no samples"
    assert stream.verdict().samples == 1
