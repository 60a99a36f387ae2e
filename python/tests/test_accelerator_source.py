"""AcceleratorSource on stand-ins for torch.xpu and torch.accelerator: nothing here ran on such hardware."""
import sys
import types

import pytest
from fake_torch import GIB, MIB, FakeTorch

import vramtrack
from vramtrack.accelerator_source import AcceleratorSource


def flat(allocated, reserved):
    """memory_stats() of torch.xpu, of what is read of it; it counts no blocks."""
    return {"allocated_bytes.all.current": allocated, "allocated_bytes.all.peak": allocated + MIB, "reserved_bytes.all.current": reserved,
            "reserved_bytes.all.peak": reserved + MIB, "active_bytes.all.current": allocated}  # fmt: skip


@pytest.fixture
def torch(monkeypatch):
    fake = FakeTorch()
    fake.cuda.is_available = lambda: False
    fake.device = lambda text: types.SimpleNamespace(type=text.partition(":")[0], index=int(text.partition(":")[2]) if ":" in text else None)
    fake.used = {0: 0, 1: 0}
    fake.common = {
        "is_available": lambda: True,
        "device_count": lambda: 2,
        "memory_stats": lambda index: flat(fake.used[index], fake.used[index] + 50 * MIB) if fake.used[index] else {},
        "reset_peak_memory_stats": lambda index: fake.calls.append(("reset_peak", index)),
        "synchronize": lambda index: fake.calls.append(("synchronize", index)),
        "empty_cache": lambda: fake.calls.append("empty_cache"),
    }
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


@pytest.fixture
def xpu(torch):
    torch.xpu = types.SimpleNamespace(
        **torch.common,
        current_device=lambda: 1,
        get_device_name=lambda index: "Fake Max 1550",
        get_device_properties=lambda index: types.SimpleNamespace(total_memory=64 * GIB),
        mem_get_info=lambda index: (40 * GIB, 64 * GIB),
        get_per_process_memory_fraction=lambda index: 0.5 if index == 0 else 1.0,
    )
    return torch.xpu


@pytest.fixture
def general(torch):
    torch.accelerator = types.SimpleNamespace(
        **torch.common,
        current_device_index=lambda: 0,
        current_accelerator=lambda: types.SimpleNamespace(type="npu"),
        get_memory_info=lambda index: (20 * GIB, 32 * GIB),
    )
    return torch.accelerator


def test_xpu_is_the_default_without_cuda(torch, xpu):
    source = vramtrack.default_source()
    assert isinstance(source, AcceleratorSource)
    assert (source.kind, source.device_id, source.name, str(source.device.type)) == ("xpu", 1, "Fake Max 1550", "xpu")
    assert source.counters() == (0,) * 7, "before the first allocation"
    torch.used[1] = 100 * MIB
    assert source.counters() == (100 * MIB, 150 * MIB, 101 * MIB, 151 * MIB, 100 * MIB, 0, 0)
    assert (source.capacity_bytes(), source.device_used_bytes(), source.limit_bytes()) == (64 * GIB, 24 * GIB, None)
    assert vramtrack.default_source("xpu:0").limit_bytes() == 32 * GIB
    source.reset_peak()
    source.synchronize()
    source.empty_cache()
    assert torch.calls == [("reset_peak", 1), ("synchronize", 1), "empty_cache"]
    torch.cuda.is_available = lambda: True
    assert type(vramtrack.default_source()).__name__ == "TorchSource", "CUDA first"


@pytest.mark.parametrize("device, words", [
    (2, "xpu:2 does not exist: 2 devices"), (-1, "xpu:-1 does not exist"), ("cpu", "of type cpu; expected one of type xpu"), ("cuda:0", "of type cuda"),
])  # fmt: skip
def test_devices_that_are_none(xpu, device, words):
    with pytest.raises(ValueError, match=words):
        vramtrack.default_source(device)


def test_torch_accelerator_where_the_shape_is_the_same(torch, general):
    source = vramtrack.default_source()
    assert (source.kind, source.device_id, source.name) == ("npu", 0, "npu")
    assert (source.capacity_bytes(), source.device_used_bytes(), source.limit_bytes()) == (32 * GIB, 12 * GIB, None)

    def refuse(index):
        raise RuntimeError("not supported")

    general.get_memory_info = refuse
    assert source.capacity_bytes() is None and source.device_used_bytes() is None
    for without in ("memory_stats", "is_available"):
        broken = types.SimpleNamespace(**{**vars(general), "is_available": lambda: False} if without == "is_available" else vars(general))
        if without == "memory_stats":
            del broken.memory_stats
        torch.accelerator = broken
        with pytest.raises(vramtrack.NoDeviceError, match="CUDA is not available"):
            vramtrack.default_source()
        with pytest.raises(vramtrack.NoDeviceError, match="no accelerator"):
            AcceleratorSource()


def test_a_watch_and_a_profiler_on_it(torch, xpu):
    now = [0.0]
    watch = vramtrack.Watch(clock=lambda: now[0])
    torch.used[1] = 4 * GIB
    for n in range(2400):
        torch.used[1] += 8 * MIB if n >= 900 else 0
        now[0] += 1
        watch.sample()
        if n % 60 == 0:
            watch.check()
    verdict = watch.verdict()
    assert verdict.leak and verdict.metric == "allocator_allocated" and watch.errors == [] and watch.sites == []
    assert watch.advice() and watch.breakdown().pools == ()

    def body():
        torch.used[1] += 20 * MIB

    result = vramtrack.GPUMemoryProfiler(device="xpu:1").profile_function(body)
    assert result.memory_diff() == 20 * MIB
