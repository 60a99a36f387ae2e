"""The default rules beside the documented ones, on the cases where the documented ones are wrong, and on those where both
are right."""
import random

import pytest

import vramtrack
from vramtrack.statistics import linear_fit, quantile

MIB = 2**20


def kinds(profiler, rules):
    return [p.pattern_type for p in vramtrack.MemoryAnalyzer(profiler, rules=rules).analyze_memory_patterns()]


def score(profiler, rules="vramtrack"):
    return vramtrack.MemoryAnalyzer(profiler, rules=rules).generate_optimization_report()["optimization_score"]


def named(function, name):
    function.__name__ = name
    return function


@pytest.fixture
def clean(device, profiler):
    """Two functions, 20 calls each, temporaries only."""

    def step(size_mib):
        with device.temporary(size_mib * MIB):
            pass

    device.allocate(500 * MIB)
    for _ in range(20):
        profiler.profile_function(named(lambda: step(300), "forward"))
        profiler.profile_function(named(lambda: step(20), "metrics"))
    return profiler


def test_a_clean_run_scores_100(clean):
    assert kinds(clean, "vramtrack") == []
    assert score(clean) == {"score": 100, "grade": "A", "description": "Excellent memory usage patterns", "issues_found": 0}


def test_a_clean_run_is_accused_by_the_documented_rules(clean):
    assert "repeated_allocations" in kinds(clean, "documented")
    assert score(clean, "documented")["score"] < 95


def test_a_leak_spread_over_forty_functions_is_found(device, profiler):
    for _ in range(9):
        for n in range(40):
            profiler.profile_function(named(lambda: device.allocate(10 * MIB), f"layer_{n}"))
    assert "memory_leak" not in kinds(profiler, "documented"), "90 MiB in each of forty functions"
    (leak,) = [p for p in vramtrack.MemoryAnalyzer(profiler).analyze_memory_patterns() if p.pattern_type == "memory_leak"]
    assert leak.severity == "critical"
    assert len(leak.affected_functions) >= 38, "95 % of the growth"
    assert leak.metrics["total_memory_growth"] == pytest.approx(3590 * MIB, rel=0.02)
    assert leak.metrics["average_growth_per_call"] == pytest.approx(10 * MIB, rel=0.02)


def test_one_leaking_function_among_forty_is_found(device, profiler):
    quiet = [named(lambda: None, f"f{n}") for n in range(1, 40)]
    leaking = named(lambda: device.allocate(20 * MIB), "f0")
    for _ in range(100):
        for function in [leaking, *quiet]:
            profiler.profile_function(function)
    [leak] = [p for p in vramtrack.MemoryAnalyzer(profiler).analyze_memory_patterns() if p.pattern_type == "memory_leak"]
    assert leak.affected_functions == ["f0"] and leak.metrics["positive_growth_ratio"] == 1


def test_alloc_in_a_free_in_b_is_no_leak(device, profiler):
    held = []
    for _ in range(20):
        profiler.profile_function(named(lambda: held.append(device.allocate(200 * MIB)), "a"))
        profiler.profile_function(named(lambda: device.free(held.pop()), "b"))
    assert "memory_leak" in kinds(profiler, "documented")
    assert kinds(profiler, "vramtrack") == []
    assert score(profiler)["score"] == 100


def accumulated(device, profiler, leak_mib, forwards, steps=20):
    """`forwards` calls of forward, whose 50 MiB are kept until step."""
    held = []

    def forward():
        held.append(device.allocate(50 * MIB))
        if leak_mib:
            device.allocate(leak_mib * MIB)

    def step():
        while held:
            device.free(held.pop())

    for _ in range(steps):
        for _ in range(forwards):
            profiler.profile_function(forward)
        profiler.profile_function(step)


def in_any_order(device, profiler, leak_mib, seed):
    """Up to four blocks wait in a queue; who is next is chance."""
    rng = random.Random(seed)
    queue = []

    def forward():
        queue.append(device.allocate(500 * MIB))
        if leak_mib:
            device.allocate(leak_mib * MIB)

    def step():
        device.free(queue.pop())

    for _ in range(600):
        profiler.profile_function(forward if not queue or (len(queue) < 4 and rng.random() < 0.5) else step)


PATTERNS = {
    **{f"accumulated over {n}": lambda d, p, leak, n=n: accumulated(d, p, leak, n) for n in (1, 2, 3, 4, 8, 16, 64)},
    **{f"accumulated over {n}, long": lambda d, p, leak, n=n: accumulated(d, p, leak, n, 60) for n in (1, 3, 16)},
    **{f"in any order, {seed}": lambda d, p, leak, seed=seed: in_any_order(d, p, leak, seed) for seed in (3, 4, 5)},
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_functions_that_take_turns(pattern):
    """Healthy: 100 points. With 5 MiB that each forward() keeps for ever: a leak, in forward()."""
    for leak_mib in (0, 5):
        device = vramtrack.SimulatedDevice(capacity_bytes=200 * 2**30)
        profiler = vramtrack.GPUMemoryProfiler(source=device)
        PATTERNS[pattern](device, profiler, leak_mib)
        found = vramtrack.MemoryAnalyzer(profiler).analyze_memory_patterns()
        leaks = [p for p in found if p.pattern_type == "memory_leak"]
        if leak_mib:
            assert [p.affected_functions for p in leaks] == [["forward"]], pattern
            assert 0.4 < leaks[0].metrics["total_memory_growth"] / device.counters().allocated < 1.3
        else:
            assert leaks == [] and score(profiler)["score"] == 100


def test_caches_that_grow_by_steps_behind_functions_that_take_turns(device, profiler):
    held = []
    for n in range(300):
        if n in (110, 210):
            device.allocate(300 * MIB)
        profiler.profile_function(named(lambda: held.append(device.allocate(200 * MIB)), "forward"))
        profiler.profile_function(named(lambda: device.free(held.pop()), "backward"))
    assert "memory_leak" not in kinds(profiler, "vramtrack")


def test_what_forward_keeps_until_backward_takes_no_points(device, profiler):
    held = []
    for _ in range(100):
        profiler.profile_function(named(lambda: held.append(device.allocate(20 * MIB)), "forward"))
        profiler.profile_function(named(lambda: device.free(held.pop()), "backward"))
    assert kinds(profiler, "vramtrack") == ["repeated_allocations"], "told, as information"
    assert score(profiler)["score"] == 100 and score(profiler)["issues_found"] == 0
    assert score(profiler, "documented")["score"] < 100


def test_a_leak_behind_alloc_in_a_free_in_b_names_who_leaks(device, profiler):
    held = []
    for _ in range(40):
        profiler.profile_function(named(lambda: held.append(device.allocate(200 * MIB)), "a"))
        profiler.profile_function(named(lambda: device.free(held.pop()), "b"))
        profiler.profile_function(named(lambda: device.allocate(6 * MIB), "log_loss"))
    (leak,) = [p for p in vramtrack.MemoryAnalyzer(profiler).analyze_memory_patterns() if p.pattern_type == "memory_leak"]
    assert leak.affected_functions == ["log_loss"]
    assert leak.metrics["total_memory_growth"] == pytest.approx(240 * MIB, rel=0.1)


@pytest.mark.parametrize("calls, documented", [(12, False), (100, True)])
def test_eight_mebibytes_a_call(device, profiler, calls, documented):
    for _ in range(calls):
        profiler.profile_function(named(lambda: device.allocate(8 * MIB), "step"))
    assert ("memory_leak" in kinds(profiler, "documented")) == documented
    assert kinds(profiler, "vramtrack") == ["memory_leak"]


def test_a_warm_up_is_no_leak(device, profiler):
    for n in range(100):
        size = 2000 if n == 0 else 300 // n**2 if n < 16 else 0
        profiler.profile_function(named(lambda: device.allocate(size * MIB), "step"))
    assert "memory_leak" in kinds(profiler, "documented")
    assert "memory_leak" not in kinds(profiler, "vramtrack")


def test_noise_is_no_leak(device, profiler):
    rng = random.Random(5)
    held = []
    for _ in range(300):
        def step():
            held.append(device.allocate(rng.randrange(1, 60) * MIB))
            while len(held) > rng.randrange(1, 8):
                device.free(held.pop(0))

        profiler.profile_function(step)
    assert "memory_leak" not in kinds(profiler, "vramtrack")


def test_a_normal_cache_is_no_fragmentation(device, profiler):
    """Reserved is 1.6 times what is allocated, and stays so."""
    device.free(device.allocate(1600 * MIB))
    device.allocate(1000 * MIB)
    for _ in range(30):
        profiler.profile_function(named(lambda: None, "step"))
    assert "fragmentation" in kinds(profiler, "documented")
    assert kinds(profiler, "vramtrack") == []


def test_reserved_that_grows_while_allocated_does_not_is_fragmentation(device, profiler):
    device.allocate(1000 * MIB)
    for n in range(60):
        def step():
            device._reserved += 40 * MIB  # segments that no request fits

        profiler.profile_function(step)
    assert "fragmentation" in kinds(profiler, "vramtrack")


def test_inefficient_allocation_can_fire(device, profiler):
    def load():
        with device.temporary(400 * MIB):
            kept.append(device.allocate(40 * MIB))

    kept = []
    for _ in range(4):
        profiler.profile_function(load)
    assert "inefficient_allocation" not in kinds(profiler, "documented"), "it never does"
    patterns = vramtrack.MemoryAnalyzer(profiler).analyze_memory_patterns()
    (found,) = [p for p in patterns if p.pattern_type == "inefficient_allocation"]
    assert found.affected_functions == ["load"]
    assert found.metrics["average_efficiency"] == pytest.approx(40 / 440)
    strict = vramtrack.MemoryAnalyzer(profiler)
    strict.thresholds["inefficient_allocation_ratio"] = 0.05
    assert "inefficient_allocation" not in [p.pattern_type for p in strict.analyze_memory_patterns()]


def test_gaps_are_the_drivers_figure_less_the_allocators():
    events = [
        {"timestamp": t, "device_used": (3000 + 10 * t) * MIB, "device_total": 24 * 1024 * MIB,
         "allocator_reserved": 1000 * MIB, "allocator_allocated": 900 * MIB}
        for t in range(60)
    ]  # fmt: skip
    report = vramtrack.MemoryAnalyzer().generate_optimization_report([], events=events)
    (gap,) = report["gap_analysis"]
    assert gap["classification"] == "persistent_drift" and gap["severity"] == "critical"
    assert gap["evidence"]["slope_bytes_per_s"] == pytest.approx(10 * MIB)
    assert vramtrack.MemoryAnalyzer().analyze_memory_gaps(events[:2]) == []


def test_documented_thresholds_by_hand(device, profiler):
    """101 MiB over three calls fires, 100 MiB does not; a tenth of the calls is not more than a tenth."""
    for size in (50, 50, 0):
        profiler.profile_function(named(lambda: device.allocate(size * MIB), "hundred"))
    assert "memory_leak" not in kinds(profiler, "documented")
    profiler.clear_results()
    for size in (50, 51, 0):
        profiler.profile_function(named(lambda: device.allocate(size * MIB), "more"))
    assert "memory_leak" in kinds(profiler, "documented")
    profiler.clear_results()
    for n in range(10):
        profiler.profile_function(named(lambda: device.allocate((500 if n == 0 else 0) * MIB), "once"))
    assert "memory_leak" not in kinds(profiler, "documented")


def test_no_results_no_findings():
    analyzer = vramtrack.MemoryAnalyzer()
    assert analyzer.analyze_memory_patterns() == []
    assert analyzer.generate_optimization_report()["optimization_score"]["score"] == 100
    with pytest.raises(ValueError, match="'vramtrack' or 'documented'"):
        vramtrack.MemoryAnalyzer(rules="mine")


def test_statistics_by_hand():
    slope, r, p = linear_fit([0, 1, 2, 3], [1, 3, 5, 7])
    assert (slope, r, p) == (2, 1, 0)
    slope, r, p = linear_fit([1, 2, 3, 4, 5], [2, 1, 4, 3, 5])
    assert slope == pytest.approx(0.8) and r == pytest.approx(0.8) and p == pytest.approx(0.104088, abs=1e-6)
    assert linear_fit([1, 1, 1], [1, 2, 3]) == (0, 0, 1)
    assert quantile([1, 2, 3, 4], 0.75) == 3.25
