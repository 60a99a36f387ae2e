"""What PyTorch does on the doubles of tests/fake/gpu: what the other tests of the lane depend on."""
import ctypes
import gc
import os
import subprocess
import sys

import pytest
import torch
from started import start

MIB = 2**20
CONTEXT = 300 * MIB
CAPACITY = torch.cuda.get_device_properties(0).total_memory
OutOfMemory = torch.cuda.OutOfMemoryError


def empty(mib, device="cuda"):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device=device)


@pytest.fixture(autouse=True)
def returned():
    """Each test releases what it took, and what PyTorch keeps for it: up to 2.6 a matrix product leaves a workspace of cuBLAS, 32 MiB."""
    yield
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() == 0, "the tests of other files count from zero"


def in_process(code, allocator="", **environment):
    """Runs it where torch starts with other settings."""
    if allocator:
        environment.update(PYTORCH_CUDA_ALLOC_CONF=allocator, PYTORCH_ALLOC_CONF=allocator)
    head = "import torch\nMIB = 2**20\ndef empty(mib, device='cuda'): return torch.empty(int(mib * MIB), dtype=torch.uint8, device=device)\n"
    machine = {"VRAMTRACK_FAKE_GPU_DEVICES": "1", "VRAMTRACK_FAKE_GPU_MIB": "8192"}
    done = subprocess.run([sys.executable, "-c", head + code], env={**os.environ, **machine, **environment}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_values_pass():
    there = torch.arange(1000.0).cuda()
    assert there.cpu()[999] == 999 and there.clone().cpu()[7] == 7


def test_the_driver_counts_whole_pages():
    free = torch.cuda.mem_get_info()[0]
    held = empty(30)
    assert torch.cuda.mem_get_info() == (free - 30 * MIB, CAPACITY)
    del held
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info()[0] == free


def test_out_of_memory():
    before = torch.cuda.memory_stats().get("num_ooms", 0)
    kept = []
    with pytest.raises(OutOfMemory, match="GiB"):
        while True:
            kept.append(empty(1000))
    assert len(kept) == (CAPACITY - CONTEXT) // (1000 * MIB)
    assert torch.cuda.memory_stats()["num_ooms"] == before + 1
    kept.clear()  # the error's traceback holds the list


def test_a_fraction_of_the_memory():
    torch.cuda.set_per_process_memory_fraction(0.1)
    try:
        held = empty(7000)
        with pytest.raises(OutOfMemory):
            empty(2000)
    finally:
        held = None  # noqa: F841
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_expandable_segments():
    in_process("kept = [empty(30) for _ in range(10)]\nassert any(s['is_expandable'] for s in torch.cuda.memory._snapshot()['segments'])\n"
               "free = torch.cuda.mem_get_info()[0]\ndel kept\ntorch.cuda.empty_cache()\nassert torch.cuda.mem_get_info()[0] == free + 300 * MIB",
               allocator="expandable_segments:True")  # fmt: skip


def test_the_drivers_pools():
    in_process("held = empty(100)\nassert torch.cuda.memory_allocated() == 100 * MIB and torch.cuda.memory_reserved() == 128 * MIB\n"
               "try: empty(9000)\nexcept torch.cuda.OutOfMemoryError: pass\nelse: raise SystemExit('9000 MiB fit')\n",
               allocator="backend:cudaMallocAsync")  # fmt: skip


def test_without_a_cache():
    in_process("kept = [empty(1) for _ in range(100)]\nused = 300 + 200\nassert torch.cuda.mem_get_info()[0] == (8192 - used) * MIB\n"
               "del kept\nassert torch.cuda.mem_get_info()[0] == (8192 - 300) * MIB", PYTORCH_NO_CUDA_MEMORY_CACHING="1")  # fmt: skip


def test_an_allocation_that_fails_is_tried_again():
    in_process("kept = [empty(30), empty(30)]\nassert torch.cuda.memory_stats()['num_alloc_retries'] == 1", VRAMTRACK_FAKE_GPU_FAIL_AT="2")


def test_two_devices_of_their_own_size():
    in_process("assert torch.arange(9., device='cuda:0').to('cuda:1').device.index == 1\n"
               "assert torch.cuda.get_device_properties(1).total_memory == 4096 * MIB\n"
               "try: empty(5000, 'cuda:1')\nexcept torch.cuda.OutOfMemoryError: pass\nelse: raise SystemExit('5000 MiB fit')\n",
               VRAMTRACK_FAKE_GPU_DEVICES="2", VRAMTRACK_FAKE_GPU_MIB="8192,4096")  # fmt: skip


def test_the_trace_is_what_the_driver_was_asked(tmp_path):
    in_process("held = empty(30)", VRAMTRACK_FAKE_GPU_TRACE=str(tmp_path / "trace"))
    calls = [line.split()[1:] for line in (tmp_path / "trace").read_text().splitlines()]
    assert [call[0] for call in calls if call[0] in ("context", "cuMemAlloc")][:2] == ["context", "cuMemAlloc"]
    assert any(f"bytes={30 * MIB}" in call for call in calls), calls


def test_pools_of_graphs_and_of_ones_own():
    batch = torch.zeros(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = batch + 1  # noqa: F841
    graph.replay()
    torch.cuda.synchronize()
    pools = {tuple(segment["segment_pool_id"]) for segment in torch.cuda.memory._snapshot()["segments"]}
    assert pools - {(0, 0)}
    if hasattr(torch.cuda, "MemPool"):
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            held = empty(40)  # noqa: F841
        assert tuple(pool.id) in {tuple(segment["segment_pool_id"]) for segment in torch.cuda.memory._snapshot()["segments"]}


def test_training():
    layers = torch.nn
    network = layers.Sequential(layers.Linear(256, 256), layers.LayerNorm(256), layers.Dropout(), layers.GELU(), layers.Linear(256, 10)).cuda()
    for optimizer in (torch.optim.SGD(network.parameters(), 0.1, momentum=0.9), torch.optim.Adam(network.parameters())):
        network(torch.randn(32, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


def test_a_library_that_is_only_a_stub_raises():
    with pytest.raises(RuntimeError, match="(?i)cusolver"):
        torch.linalg.cholesky_ex(torch.randn(8, 8, device="cuda"))


def test_nvml_reports_what_torch_holds(tmp_path):
    process = start("holds.py", 500, env={"VRAMTRACK_FAKE_GPU_STATE": str(tmp_path / "state")})
    try:
        assert process.stdout.readline() == "held\n"
        code = ("import ctypes\nnvml = ctypes.CDLL('libnvidia-ml.so.1')\nassert nvml.nvmlInit_v2() == 0\ndevice = ctypes.c_void_p()\n"
                "assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0\nmemory = (ctypes.c_ulonglong * 3)()\n"
                "assert nvml.nvmlDeviceGetMemoryInfo(device, memory) == 0\nassert memory[2] == 800 << 20, memory[2]\n")  # fmt: skip
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "VRAMTRACK_FAKE_GPU_STATE": str(tmp_path / "state")}, check=True)
    finally:
        process.kill()
        process.wait()


def test_a_child_cannot_use_cuda():
    held = empty(1)  # noqa: F841
    pid = os.fork()
    if pid == 0:
        try:
            empty(1)
            os._exit(1)
        except RuntimeError:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def test_the_driver_does_not_pass_for_nvidias():
    """cuGetExportTable gives nothing: NVIDIA's own runtime refuses this driver, as it should."""
    driver, table = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(1)
    assert driver.cuGetExportTable(ctypes.byref(table), ctypes.create_string_buffer(16)) != 0
    assert table.value is None


def test_the_profiler_of_torch_sees_memory():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        torch.empty(3000, device="cuda")
    assert any(event.name == "[memory]" for event in profiled.events())
