"""Properties, by hypothesis: what holds whatever the samples are."""
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vramtrack
from vramtrack.gate import test_growth as growth_of
from vramtrack.torch_source import parse_alloc_conf

MIB = 2**20
sizes = st.floats(min_value=0, max_value=200 * 2**30)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(sizes, st.just(math.nan)), max_size=200), st.one_of(st.none(), st.floats(1e6, 1e12)))
def test_any_samples_give_a_verdict_that_shows_itself(used, capacity):
    most = max((value for value in used if not math.isnan(value)), default=0)
    if capacity is not None and most > 1.01 * capacity:
        with pytest.raises(ValueError, match="above capacity_bytes"):
            vramtrack.detect(list(range(len(used))), used, capacity)
        return
    verdict = vramtrack.detect(list(range(len(used))), used, capacity)
    assert 0 <= verdict.confidence <= 1 and verdict.growth_bytes_per_s.low <= verdict.growth_bytes_per_s.high
    shown = sum(not math.isnan(value) for value in used) > 1
    assert str(verdict) and ("<svg" in verdict._repr_html_()) == shown
    if capacity is None:
        assert verdict.oom_in_s is None


@settings(max_examples=30, deadline=None)
@given(sizes, st.integers(2, 2000), st.floats(0.1, 60))
def test_a_constant_series_is_never_a_leak(level, n, period):
    assert not vramtrack.detect([k * period for k in range(n)], [level] * n, 300 * 2**30).leak


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e12, 1e12), max_size=300), st.one_of(st.just(0.0), st.floats(1, 1e9)))
def test_a_gate_takes_anything(used, limit):
    result = growth_of(used, limit)
    assert result.iterations == len(used) and (not result.failed or result.low_bytes > limit)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 64), min_size=1, max_size=60), st.randoms())
def test_the_simulated_devices_books_balance(blocks, rng):
    device = vramtrack.SimulatedDevice()
    live = {device.allocate(size * MIB): size for size in blocks}
    for handle in rng.sample(sorted(live), len(live) // 2):
        device.free(handle)
        del live[handle]
    counters = device.counters()
    assert counters.allocated == sum(live.values()) * MIB <= counters.reserved
    assert counters.peak_allocated == sum(blocks) * MIB and counters.allocations == len(live)
    device.empty_cache()
    assert device.counters().reserved - counters.allocated < device.SEGMENT


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_allocator_settings_are_read_whatever_is_written(text):
    assert all(key and isinstance(value, str) for key, value in parse_alloc_conf(text).items())


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-30, 60), min_size=1, max_size=60), st.sampled_from(["vramtrack", "documented"]))
def test_any_run_gives_a_report(steps, rules):
    device = vramtrack.SimulatedDevice()
    profiler = vramtrack.GPUMemoryProfiler(source=device)
    held = []

    def step(size):
        if size >= 0:
            held.append(device.allocate(size * MIB))
        elif held:
            device.free(held.pop())

    for size in steps:
        profiler.profile_function(step, size)
    report = vramtrack.MemoryAnalyzer(profiler, rules=rules).generate_optimization_report()
    assert 0 <= report["optimization_score"]["score"] <= 100 and len(report["recommendations"]) <= 10
