"""TorchSource on a stand-in for torch that a test sets by hand: what no real PyTorch does on demand. The rest is test_on_torch.py."""
import pickle
import sys
import types

import pytest
from fake_torch import GIB, MIB, FakeTorch, nested

import vramtrack
from vramtrack.torch_source import TorchSource, parse_alloc_conf

STATE, ALL = ("state", "state", "python"), ("all", "alloc", "python")


@pytest.fixture
def torch(monkeypatch):
    fake = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)
    return fake


def test_counters_where_only_the_module_has_them(torch):
    torch.cuda.memory.memory_stats_as_nested_dict = torch.cuda.memory_stats_as_nested_dict
    del torch.cuda.memory_stats_as_nested_dict
    torch.stats = {0: nested(10, 20, 30, 40, 50, 60, 70)}
    assert TorchSource(0).counters().peak_reserved == 40


def test_the_device_and_what_is_done_to_it(torch):
    source = TorchSource(1)
    assert source.capacity_bytes() == 40 * GIB
    torch.cuda.mem_get_info = lambda index: ((3 + index) * GIB, 40 * GIB)
    assert source.device_used_bytes() == 36 * GIB
    del torch.cuda.mem_get_info
    assert source.device_used_bytes() is None
    source.reset_peak()
    source.synchronize()
    source.empty_cache()
    assert torch.calls == [("reset_peak", 1), ("synchronize", 1), "empty_cache"]


def test_what_the_driver_knows_it_by(torch):
    assert TorchSource(1).identity() == (1, 2, "Fake H200", None, None), "as before PyTorch 2.4"
    torch.properties[0].pci_domain_id, torch.properties[0].pci_bus_id, torch.properties[0].pci_device_id = 0, 0x1D, 0
    assert TorchSource(0).identity().pci_bus_id == "00000000:1d:00.0"

    class Uuid:
        def __str__(self):
            return "ffc79498-8ff3-c2dc-3b0d-fafd804516ae"

    torch.properties[0].uuid = Uuid()
    assert TorchSource(0).identity().uuid == "ffc79498-8ff3-c2dc-3b0d-fafd804516ae"


def test_the_default_source_is_the_current_device(torch, monkeypatch):
    torch.current = 1
    assert vramtrack.default_source().device_id == 1
    torch.cuda.is_available = lambda: False
    with pytest.raises(vramtrack.NoDeviceError, match="CUDA is not available"):
        vramtrack.default_source()


def test_nested_recordings_end_with_the_outermost(torch):
    source = TorchSource(0)
    source.start_trace()
    source.start_trace()
    source.stop_stacks()
    assert torch.recording == "all"
    source.stop_stacks()
    assert torch.history == [ALL, None]


def test_a_trace_within_a_recording_has_its_own_beginning(torch):
    source = TorchSource(0)
    assert source.start_trace() == 0, "all of it is its own"
    assert source.start_trace() > 1_600_000_000_000_000, "microseconds since 1970"
    source.stop_stacks()
    source.stop_stacks()


def test_sources_share_the_one_recorder_of_the_process(torch):
    """A watch's evidence within a profiled call: the end of one is not the end of the other's, whichever comes first."""
    watch, profiler = TorchSource(0), TorchSource(1)
    watch.start_stacks()
    profiler.start_stacks()
    watch.stop_stacks()
    assert torch.recording == "state"
    profiler.stop_stacks()
    assert torch.history == [STATE, None]


def test_a_recording_of_somebody_else_goes_on(torch):
    torch.recording = "state"
    source = TorchSource(0)
    source.start_stacks()
    source.stop_stacks()
    assert torch.recording == "state" and torch.history == []
    torch.recording = None
    source.start_stacks()
    source.stop_stacks()
    assert torch.history == [STATE, None]


@pytest.mark.parametrize("enabled", ["all", None])
def test_a_recording_that_the_program_begins_or_ends_meanwhile_stays_as_it_is(torch, enabled):
    """PyTorch's _record_memory_history() calls this one in torch._C."""
    below = torch._C._cuda_record_memory_history = lambda enabled=None, *arguments: setattr(torch, "recording", enabled)
    source = TorchSource(0)
    source.start_stacks()
    torch._C._cuda_record_memory_history(enabled)
    source.stop_stacks()
    assert torch.recording == enabled and torch.history == [STATE]
    assert torch._C._cuda_record_memory_history is below
    torch.recording = None
    source.start_stacks()
    source.stop_stacks()
    assert torch.history == [STATE, STATE, None], "the next one is ours again"


def test_devices_that_are_none(torch):
    torch.device = lambda text: types.SimpleNamespace(type=text.partition(":")[0], index=int(text.partition(":")[2] or 0) if ":" in text else None)
    for device, words in ((7, "2 devices are visible"), (-1, "count from 0"), ("cpu", "a device of type cpu; expected a CUDA device")):
        with pytest.raises(ValueError, match=words):
            vramtrack.default_source(device)
    assert vramtrack.default_source("cuda:1").device_id == 1
    with pytest.raises(ValueError, match="type cpu"):
        vramtrack.GPUMemoryProfiler(device="cpu")


def test_an_allocator_that_counts_nothing(torch, monkeypatch):
    """PYTORCH_NO_CUDA_MEMORY_CACHING=1 leaves the counters at 0, and a pluggable allocator has none."""
    source = TorchSource(0)
    torch.cuda.mem_get_info = lambda index: (60 * GIB, 80 * GIB)
    report = vramtrack.run_gate(lambda: None, source=source, collect=False)
    assert report.passed and report.metric == "device_used"
    watch = vramtrack.Watch(source, driver_library=None)
    watch.sample()
    assert watch.verdict().metric == "device_used"

    def no_stats(index):
        raise RuntimeError("CUDAPluggableAllocator does not yet support getDeviceStats")

    source._stats = no_stats
    with pytest.raises(RuntimeError):
        source.counters()
    torch.cuda.get_allocator_backend = lambda: "pluggable"
    assert source.counters() == (0,) * 7


def test_the_snapshot_of_an_oom_has_the_error_in_its_history(torch):
    source = TorchSource(1)
    (event,) = source.snapshot_at_oom(20, 3)["device_traces"][1]
    assert (event["action"], event["size"], event["device_free"]) == ("oom", 20, 3)
    assert event["frames"][0]["filename"] == __file__
    torch.taken = {"segments": []}
    assert source.snapshot_at_oom(20, 3)["device_traces"][1], "of a version without traces"
    torch.taken = {"segments": [], "device_traces": [[], [{"action": "oom", "size": 4}]]}
    assert len(source.snapshot_at_oom(20, 3)["device_traces"][1]) == 1, "PyTorch has recorded it itself"


def test_a_recorder_that_fails_was_not_begun(torch):
    """As before PyTorch 2.0, which has none."""
    source = TorchSource(0)
    record = torch.cuda.memory._record_memory_history
    del torch.cuda.memory._record_memory_history
    with pytest.raises(AttributeError):
        source.start_stacks()
    torch.cuda.memory._record_memory_history = record
    source.start_stacks()
    source.stop_stacks()
    assert torch.history == [STATE, None]


def test_the_recorder_of_pytorch_2_0(torch):
    """Its signature, and no way to ask whether it is on."""
    begun = []

    def record(enabled, record_context=True, trace_alloc_max_entries=1, trace_alloc_record_context=False):
        begun.append((enabled, trace_alloc_max_entries, trace_alloc_record_context))

    torch.cuda.memory._record_memory_history = record
    del torch._C._cuda_isHistoryEnabled
    source = TorchSource(0)
    source.start_stacks()
    source.stop_stacks()
    source.start_trace()
    source.stop_stacks()
    assert begun == [(True, 1, False), (None, 1, False), (True, 100_000, True), (None, 1, False)]


def test_the_stack_of_the_peak(torch):
    frames = [{"filename": "/job/train.py", "line": 42, "name": "step"}, {"filename": "/job/train.py", "line": 7, "name": "main"}]
    torch.traces[1] += [
        {"action": "alloc", "size": 10 * MIB, "time_us": 10},
        {"action": "alloc", "size": 30 * MIB, "frames": frames, "time_us": 20},
        {"action": "free_requested", "size": 30 * MIB, "time_us": 30},
        {"action": "free_completed", "size": 30 * MIB, "time_us": 30},
        {"action": "alloc", "size": 20 * MIB, "frames": frames[1:], "time_us": 40},
    ]
    source = TorchSource(1)
    assert source.peak_stack() == "/job/train.py:42 in step\n/job/train.py:7 in main"
    assert source.peak_stack(40) == "/job/train.py:7 in main", "of what came later"
    assert TorchSource(0).peak_stack() is None
    torch.traces.pop()
    assert source.peak_stack() is None, "no trace of that device"
    torch.taken = {"segments": []}
    assert source.peak_stack() is None, "of PyTorch 2.0, without any"


def test_lines_that_grew_on_this_device_only(torch):
    def taken(sizes):
        segments = []
        for device, size in enumerate(sizes):
            frames = [{"name": f"on_{device}", "filename": "/job/train.py", "line": device + 1}]
            segments.append({"device": device, "address": (1 + device) * GIB, "total_size": size, "allocated_size": size, "active_size": size,
                             "requested_size": size, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
                             "frames": [], "blocks": [{"address": (1 + device) * GIB, "size": size, "requested_size": size,
                                                       "state": "active_allocated", "frames": frames}]})  # fmt: skip
        return {"segments": segments, "device_traces": [[], []]}

    source = TorchSource(1)
    torch.taken = taken([10 * MIB, 10 * MIB])
    before = source.snapshot()
    torch.taken = taken([90 * MIB, 20 * MIB])
    after = source.snapshot()
    assert pickle.loads(after)["device_traces"] == [[], []]
    assert [(site.name, site.growth_bytes) for site in source.growing_sites(before, after)] == [("on_1", 10 * MIB)]


def test_an_oom_of_another_device_is_not_this_ones(torch):
    seen = []
    detach = TorchSource(1).observe_oom(lambda asked, free: seen.append((asked, free)))
    for observer in torch.observers:
        observer(0, 1, 2, 3)
        observer(1, 4, 5, 6)
    assert seen == [(4, 6)]
    detach()
    torch.observers[0](1, 4, 5, 6)
    assert len(seen) == 1


def test_the_memory_fraction_is_the_limit(torch):
    source = TorchSource(1)
    torch.cuda.get_per_process_memory_fraction = lambda index: 0.25 if index == 1 else 1.0
    assert source.limit_bytes() == 10 * GIB and source.capacity_bytes() == 40 * GIB
    assert TorchSource(0).limit_bytes() is None, "all of it"
    torch.cuda.mem_get_info = lambda index: (30 * GIB, 40 * GIB)
    assert vramtrack.Watch(source, driver_library=None).sample().allocator_limit == 10 * GIB


def test_a_version_that_cannot_be_asked_tells_the_limit_when_memory_runs_out(torch):
    source = TorchSource(1)
    source.observe_oom(lambda asked, free: None)
    assert source.limit_bytes() is None
    torch.observers[0](0, 1, 5 * GIB, 3)
    assert source.limit_bytes() is None, "another device's"
    torch.observers[0](1, 1, 5 * GIB, 3)
    assert source.limit_bytes() == 5 * GIB
    torch.observers[0](1, 1, 40 * GIB, 3)
    assert source.limit_bytes() is None, "the whole device: there is no fraction any more"


def test_an_oom_observer_by_its_older_name_or_none(torch):
    torch._C._cuda_attachOutOfMemoryObserver = torch._C._cuda_attach_out_of_memory_observer
    del torch._C._cuda_attach_out_of_memory_observer
    assert TorchSource(0).observe_oom(lambda asked, free: None) is not None and len(torch.observers) == 1
    del torch._C._cuda_attachOutOfMemoryObserver
    assert TorchSource(0).observe_oom(lambda asked, free: None) is None


def test_the_allocators_settings(torch, monkeypatch):
    source = TorchSource(0)
    assert source.allocator_settings() == {} and source.settings_variable == "PYTORCH_CUDA_ALLOC_CONF"
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128, garbage_collection_threshold:0.8")
    assert source.allocator_settings() == {"max_split_size_mb": "128", "garbage_collection_threshold": "0.8"}
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    assert source.allocator_settings() == {"expandable_segments": "True"} and source.settings_variable == "PYTORCH_ALLOC_CONF"
    torch.__version__ = "2.8.0"
    assert "max_split_size_mb" in source.allocator_settings(), "which does not know the newer name"


def test_settings_in_force_are_those_of_the_snapshot(torch, monkeypatch):
    source = TorchSource(0)
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True,max_split_size_mb:64")
    torch.taken["allocator_settings"] = {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False}
    assert source.allocator_settings()["expandable_segments"] == "True"
    source.snapshot()
    assert source.allocator_settings() == {"expandable_segments": "False", "max_split_size_mb": "64"}
    torch.taken["allocator_settings"] = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:32", "expandable_segments": True}
    source.snapshot()
    assert source.allocator_settings() == {"expandable_segments": "True", "max_split_size_mb": "32"}, "set as it ran"


def test_commas_in_brackets_belong_to_a_value():
    assert parse_alloc_conf("expandable_segments:True,roundup_power2_divisions:[256:1,>:2],") == {
        "expandable_segments": "True", "roundup_power2_divisions": "[256:1,>:2]"}  # fmt: skip
