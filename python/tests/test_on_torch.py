"""The package on PyTorch's allocator. In the lane (tests/torch) PyTorch is the real one; elsewhere a stand-in counts as it does."""
import gc

import pytest
from bench_torch import CONTEXT, IS_REAL, open_torch
from fake_torch import GIB, MIB

import vramtrack
from vramtrack.torch_source import TorchSource

only_real = pytest.mark.skipif(not IS_REAL, reason="needs the recorder of real PyTorch: tests/torch/lane.py test 2.15.0")


@pytest.fixture
def torch(monkeypatch):
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)
    module = open_torch(monkeypatch)
    yield module
    gc.collect()
    module.cuda.empty_cache()
    for device in (0, 1):
        module.cuda.reset_peak_memory_stats(device)


@pytest.fixture
def empty(torch):
    return lambda mib, device="cuda": torch.empty(mib * MIB, dtype=torch.uint8, device=device)


def test_which_device(torch):
    assert [TorchSource(device).device_id for device in (None, 0, 1, "cuda:0", "cuda:1", "cuda")] == [0, 0, 1, 0, 1, 0]
    assert TorchSource(0).name == torch.cuda.get_device_name(0)
    with pytest.raises(ValueError, match="cuda:7 does not exist: 2 devices are visible"):
        TorchSource(7)
    assert vramtrack.default_source().device_id == 0


def test_counters(torch, empty):
    source = TorchSource(1)
    before = source.counters()
    held, dropped = empty(30, "cuda:1"), empty(50, "cuda:1")
    del dropped
    after = source.counters()
    assert after.allocated - before.allocated == 30 * MIB and after.reserved - before.reserved == 80 * MIB
    assert (after.peak_allocated, after.peak_reserved) == (before.allocated + 80 * MIB, before.reserved + 80 * MIB)
    assert after.active - before.active == 30 * MIB and after.allocations - before.allocations == 1
    assert TorchSource(0).counters().allocated == 0, "the other device"
    del held


def test_the_device_and_what_is_done_to_it(torch, empty):
    source = TorchSource(0)
    assert source.capacity_bytes() == 80 * GIB
    held, dropped = empty(100), empty(200)
    assert source.device_used_bytes() == CONTEXT + 300 * MIB
    del dropped
    source.reset_peak()
    assert source.counters().peak_allocated == 100 * MIB
    source.synchronize()
    source.empty_cache()
    assert source.device_used_bytes() == CONTEXT + 100 * MIB
    del held


def test_the_current_device_stays(torch, empty):
    held = empty(10, "cuda:1")
    source = TorchSource(1)
    vramtrack.Watch(source, driver_library=None).sample()
    vramtrack.GPUMemoryProfiler(source=source).profile_function(lambda: None)
    assert source.limit_bytes() is None and torch.cuda.current_device() == 0
    del held


def test_profilers_on_one_device_share_its_peak(torch, empty):
    """Each makes a separate source, as the global profiler does."""
    outer, inner = vramtrack.GPUMemoryProfiler(), vramtrack.GPUMemoryProfiler()

    def outer_body():
        big = empty(500)
        del big
        inner.profile_function(lambda: empty(20))

    result = outer.profile_function(outer_body)
    assert result.peak_memory_usage() == 500 * MIB and inner.results[0].peak_memory_usage() == 20 * MIB


def test_a_watch_and_a_profiler_on_it(torch, empty):
    held = empty(1024)
    sample = vramtrack.Watch(driver_library=None).sample()
    assert (sample.allocator_allocated, sample.device_used, sample.device_total) == (1024 * MIB, 1024 * MIB + CONTEXT, 80 * GIB)
    result = vramtrack.GPUMemoryProfiler().profile_function(lambda: empty(2048))
    assert result.memory_peak.reserved_memory == 3072 * MIB
    del held


def test_an_oom_of_another_device_is_not_this_ones(torch, empty):
    seen = []
    detach = TorchSource(1).observe_oom(lambda asked, free: seen.append((asked, free)))
    if detach is None:
        assert torch.__version__ < "2.4", "which would break the error itself"
        with pytest.raises(torch.cuda.OutOfMemoryError):
            empty(90 * 1024, "cuda:1")
        return
    with pytest.raises(torch.cuda.OutOfMemoryError):
        empty(90 * 1024, "cuda:0")
    assert seen == []
    with pytest.raises(torch.cuda.OutOfMemoryError):
        empty(90 * 1024, "cuda:1")
    assert [asked for asked, _ in seen] == [90 * GIB] and 0 < seen[0][1] <= 40 * GIB
    detach()
    with pytest.raises(torch.cuda.OutOfMemoryError):
        empty(90 * 1024, "cuda:1")
    assert len(seen) == 1


def test_no_observer_where_it_would_break_the_error(torch, monkeypatch):
    """PyTorch 2.1 with several devices: test_an_oom_of_another_device_is_not_this_ones shows it there."""
    monkeypatch.setattr(torch, "__version__", "2.1.2+cu121")
    assert TorchSource(0).observe_oom(lambda asked, free: None) is None
    if not IS_REAL:  # there the observer would stay
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        assert TorchSource(0).observe_oom(lambda asked, free: None) is not None


def test_the_gate_tells_a_leak_from_its_repaired_twin(torch, empty):
    kept = []
    with pytest.raises(vramtrack.LeakError, match="MiB/iteration"):
        vramtrack.check(lambda: kept.append(empty(12)), "0.2 MiB/iter", collect=False)
    kept.clear()
    assert vramtrack.check(lambda: empty(12), "0.2 MiB/iter", collect=False).passed


def is_recording(torch):
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return enabled() if enabled else None


@only_real
def test_nested_recordings_end_with_the_outermost(torch):
    source = TorchSource(0)
    if is_recording(torch) is None:
        pytest.skip("this version cannot be asked whether it records")
    assert source.start_trace() == 0, "all of it is its own"
    assert source.start_trace() > 1_600_000_000_000_000, "microseconds since 1970"
    source.stop_stacks()
    assert is_recording(torch)
    source.stop_stacks()
    assert not is_recording(torch)


@only_real
def test_a_recording_of_somebody_else_goes_on(torch):
    if is_recording(torch) is None:
        pytest.skip("this version cannot be asked whether it records")
    torch.cuda.memory._record_memory_history("state")
    source = TorchSource(0)
    source.start_stacks()
    source.stop_stacks()
    assert is_recording(torch)
    torch.cuda.memory._record_memory_history(None)


@only_real
def test_the_stack_of_the_peak(torch, empty):
    source = TorchSource(1)
    since = source.start_trace()
    first = empty(10, "cuda:1")
    peak = empty(30, "cuda:1")  # the peak
    del peak
    last = empty(20, "cuda:1")
    stack = source.peak_stack(since)
    source.stop_stacks()
    line = test_the_stack_of_the_peak.__code__.co_firstlineno + 5
    assert f"{__file__}:{line} in test_the_stack_of_the_peak" in stack.splitlines(), stack
    del first, last


@only_real
def test_lines_that_grew_on_this_device_only(torch, empty):
    source = TorchSource(1)
    source.start_stacks()
    kept = [empty(10, "cuda:0"), empty(10, "cuda:1")]
    before = source.snapshot()
    for _ in range(3):
        kept += [empty(80, "cuda:0"), empty(10, "cuda:1")]
    after = source.snapshot()
    source.stop_stacks()
    sites = source.growing_sites(before, after)
    assert [site.growth_bytes for site in sites] == [30 * MIB], sites


@only_real
def test_the_driver_knows_it_by_the_same_name(torch, empty):
    """torch's identity of a device is found in the NVML of the same machine."""
    held = empty(100, "cuda:1")
    source = TorchSource(1)
    watch = vramtrack.Watch(source, driver_library="libnvidia-ml.so.1")
    watch.sample()
    assert watch.errors == [], watch.errors
    if source.identity().uuid:
        assert source.identity().uuid in watch.driver.uuid
    del held


@only_real
def test_settings_in_force_are_those_of_the_snapshot(torch, empty):
    source = TorchSource(0)
    held = empty(10)
    source.snapshot()
    assert source.allocator_settings().get("expandable_segments", "False") == "False"
    del held
