import subprocess
import sys
import threading
from functools import partial

import pytest

import vramtrack

MIB = 2**20


def test_the_published_names(device):
    """What the tests of the published profiler use."""
    with vramtrack.GPUMemoryProfiler(source=device) as profiler:
        assert (profiler.device.type, profiler.device.index, str(profiler.device)) == (device.name, 0, f"{device.name}:0")
        assert profiler._baseline_snapshot.operation == "baseline" and profiler._take_snapshot("now").operation == "now"
        profiler.start_monitoring(60)
        assert profiler._monitoring
    assert not profiler._monitoring
    vramtrack.set_global_profiler(profiler)
    try:
        with vramtrack.profile_context("block") as used:
            assert used is profiler

        @vramtrack.profile_function(name="step", device=None)
        def step():
            return 7

        assert step() == 7 and step._is_profiled and step._profile_name == "step"
    finally:
        vramtrack.set_global_profiler(None)


def test_without_peaks_a_call_allocated_what_stayed(device):
    profiler = vramtrack.GPUMemoryProfiler(source=device, track_peak=False)
    device.free(device.allocate(50 * MIB))
    result = profiler.profile_function(lambda: device.allocate(10 * MIB))
    assert (result.memory_allocated, result.memory_freed) == (10 * MIB, 0)


def test_a_call_is_measured(device, profiler):
    kept = []

    def load(size_mib, *, temporary_mib):
        with device.temporary(temporary_mib * MIB):
            kept.append(device.allocate(size_mib * MIB))

    device.allocate(100 * MIB)
    result = profiler.profile_function(load, 30, temporary_mib=70)
    assert result.function_name == "load"
    assert result.memory_diff() == result.memory_kept == 30 * MIB and result.memory_released == 0
    assert (result.memory_allocated, result.memory_freed) == (100 * MIB, 70 * MIB), "its peak over its start, and over its end"
    assert result.memory_before.allocated_memory == 100 * MIB
    assert result.memory_after.allocated_memory == 130 * MIB
    assert result.memory_peak.allocated_memory == result.peak_memory_usage() == 200 * MIB
    assert result.tensors_created == 1 and result.tensors_deleted == 0
    assert result.memory_peak.operation == "peak_load" and result.memory_peak.stack_trace is None
    assert result.execution_time > 0 and result.call_count == 1
    assert result.to_dict()["memory_diff"] == 30 * MIB
    assert profiler.results == [result]
    freed = profiler.profile_function(lambda: device.free(kept[0]))
    assert (freed.memory_freed, freed.memory_allocated, freed.tensors_deleted) == (30 * MIB, 0, 1)


def test_an_exception_is_recorded_and_goes_on(device, profiler):
    def breaks():
        device.allocate(5 * MIB)
        raise KeyError("lost")

    with pytest.raises(KeyError):
        profiler.profile_function(breaks)
    assert profiler.results[0].failed and profiler.results[0].memory_diff() == 5 * MIB


def test_decorators_return_what_the_function_returns(device, profiler):
    @profiler
    def double(x):
        """Twice."""
        device.allocate(MIB)
        return 2 * x

    assert double(4) == 8 and double.__doc__ == "Twice."
    vramtrack.set_global_profiler(profiler)
    try:

        @vramtrack.profile_function
        def plain():
            return "plain"

        @vramtrack.profile_function(name="named")
        def other():
            return "other"

        assert (plain(), other()) == ("plain", "other")
        with vramtrack.profile_context("block"):
            device.allocate(3 * MIB)
    finally:
        vramtrack.set_global_profiler(None)
    assert [r.function_name for r in profiler.results] == ["double", "plain", "named", "block"]
    assert profiler.results[3].memory_diff() == 3 * MIB


def test_as_a_context_manager_and_summary(device):
    with vramtrack.GPUMemoryProfiler(source=device) as profiler:
        with profiler.profile_context("outer") as outer:
            device.allocate(10 * MIB)
        assert outer.memory_diff() == 10 * MIB
        summary = profiler.get_summary()
        assert summary["net_memory_change"] == 10 * MIB
        assert summary["memory_change_from_baseline"] == 10 * MIB
        assert summary["function_summaries"]["outer"]["call_count"] == 1
        profiler.clear_results()
        assert profiler.results == [] and profiler.get_summary() == {"message": "No profiling results available"}


def test_stack_of_the_peak(device):
    profiler = vramtrack.GPUMemoryProfiler(source=device, collect_stack_traces=True)

    def inner():
        return device.allocate(50 * MIB)  # the peak

    def outer():
        device.free(inner())
        device.allocate(10 * MIB)

    lines = profiler.profile_function(outer).memory_peak.stack_trace.splitlines()
    assert lines[0].endswith("in inner") and lines[1].endswith("in outer")


def test_a_call_within_a_call_leaves_the_outer_ones_peak(device, profiler):
    """The allocator has one peak, which the inner call starts over."""
    other = vramtrack.GPUMemoryProfiler(source=device)
    untouched = vramtrack.GPUMemoryProfiler(source=device, track_peak=False)

    def take(size_mib):
        device.free(device.allocate(size_mib * MIB))

    def inner():
        take(20)

    def outer():
        take(500)
        other.profile_function(inner)
        with profiler.profile_context("middle"):
            take(10)
            profiler.profile_function(inner)
        take(5)
        profiler.clear_results()
        take(1)

    for _ in range(2):
        result = profiler.profile_function(lambda: untouched.profile_function(outer))
        assert result.peak_memory_usage() == 500 * MIB and result.memory_peak.reserved_memory == 500 * MIB
        assert untouched.results[-1].peak_memory_usage() == 500 * MIB
        assert other.results[-1].peak_memory_usage() == 20 * MIB

    def highest_within():
        take(5)
        profiler.profile_function(inner)

    assert profiler.profile_function(highest_within).peak_memory_usage() == 20 * MIB
    take(1)
    assert profiler.profile_function(lambda: None).peak_memory_usage() == 0, "nothing is left of calls that ended"


def test_a_call_that_fails_is_not_open_any_more(device, profiler, monkeypatch):
    with pytest.raises(KeyError):
        profiler.profile_function({}.__getitem__, 1)
    monkeypatch.setattr(device, "counters", iter([device.counters()]).__next__)
    with pytest.raises(StopIteration):
        profiler.profile_function(lambda: None)
    assert device.open_calls._calls == []


def test_stacks_of_the_peaks_of_calls_within_calls(device):
    profiler = vramtrack.GPUMemoryProfiler(source=device, collect_stack_traces=True)

    def high():
        device.free(device.allocate(50 * MIB))

    def low():
        device.free(device.allocate(10 * MIB))

    def outer():
        high()
        profiler.profile_function(low)

    device.allocate(MIB)
    result = profiler.profile_function(outer)
    assert result.memory_peak.stack_trace.splitlines()[0].endswith("in high")
    assert profiler.results[0].memory_peak.stack_trace.splitlines()[0].endswith("in low")
    assert not device.recording and device._traces == []


def test_results_are_bounded(device):
    profiler = vramtrack.GPUMemoryProfiler(source=device, max_results=100)
    for _ in range(1000):
        profiler.profile_function(lambda: None)
    assert len(profiler.results) < 100
    assert len(profiler.results) + profiler.dropped_results == 1000


def test_what_the_function_returns_is_not_kept(device, profiler):
    import gc
    import weakref

    class Output:
        pass

    made = []

    def forward():
        output = Output()
        made.append(weakref.ref(output))
        return output

    profiler.profile_function(forward)
    gc.collect()
    assert made[0]() is None


def test_the_peak_can_be_left_alone(device):
    profiler = vramtrack.GPUMemoryProfiler(source=device, track_peak=False)
    device.free(device.allocate(900 * MIB))
    profiler.profile_function(lambda: None)
    assert device.counters().peak_allocated == 900 * MIB


def test_monitoring_thread(device, profiler):
    profiler.start_monitoring(0.001)
    seen = threading.Event()
    while len(profiler.snapshots) < 3:
        seen.wait(0.001)
    profiler.stop_monitoring()
    assert profiler.snapshots[0].operation == "monitor"


def test_monitoring_keeps_the_last_snapshots(device):
    profiler = vramtrack.GPUMemoryProfiler(None, False, False, False, 3, source=device)  # in the order of the published one
    profiler.start_monitoring(0.001)
    first, waited = None, threading.Event()
    while first is None or first in profiler.snapshots:
        first = first or next(iter(profiler.snapshots), None)
        waited.wait(0.001)
    profiler.stop_monitoring()
    assert len(profiler.snapshots) == 3
    with pytest.raises(ValueError, match="max_snapshots must be >= 1"):
        vramtrack.GPUMemoryProfiler(source=device, max_snapshots=0)


def test_without_a_gpu_the_error_says_what_to_do():
    code = "import sys; sys.modules['torch'] = None; import vramtrack; vramtrack.GPUMemoryProfiler()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "NoDeviceError" in done.stderr and "SimulatedDevice" in done.stderr


def test_importing_it_imports_no_framework():
    code = "import sys, vramtrack; bad = {'torch', 'numpy', 'pytest'} & set(sys.modules); sys.exit(str(bad) if bad else 0)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_simulated_device_runs_out(device):
    device.allocate(23 * 2**30)
    asked = []
    end = device.observe_oom(lambda size, free: asked.append((size, free)))
    with pytest.raises(vramtrack.SimulatedOutOfMemoryError, match="tried to allocate 2.0 GiB; 1.0 GiB of 24.0 GiB are free"):
        device.allocate(2 * 2**30)
    assert asked == [(2 * 2**30, 2**30)]
    end()
    device.empty_cache()


def test_threads_keep_their_own_results(device, run_at_once):
    profiler = vramtrack.GPUMemoryProfiler(source=device)

    def work(name):
        for _ in range(500):
            with profiler.profile_context(name):
                pass

    run_at_once([partial(work, f"thread {n}") for n in range(4)], switch_s=1e-6)
    names = [result.function_name for result in profiler.results]
    assert [names.count(f"thread {n}") for n in range(4)] == [500] * 4
