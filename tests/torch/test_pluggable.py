"""An allocator of the program's own (CUDAPluggableAllocator, as RMM uses it): PyTorch counts nothing, the driver does."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from started import HERE

HEAD = """
import sys, torch, vramtrack
torch.cuda.memory.change_current_allocator(torch.cuda.memory.CUDAPluggableAllocator(sys.argv[1], "taken", "given_back"))
kept = [torch.empty(100 << 20, dtype=torch.uint8, device="cuda")]
def leaks():
    kept.append(torch.empty(8 << 20, dtype=torch.uint8, device="cuda"))
def drops():
    torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("needs a C compiler")
    out = tmp_path_factory.mktemp("pluggable") / "libpluggable.so"
    runtime = next(pathlib.Path(os.environ["VRAMTRACK_TORCH_LANE"]).glob("libcudart.so.*"))
    subprocess.run([compiler, "-shared", "-fPIC", "-o", out, HERE / "programs/pluggable.c", runtime], check=True)
    return out


def said(library, code):
    state = {"VRAMTRACK_FAKE_GPU_STATE": str(library.parent / "state")}  # shared with the double of NVML
    done = subprocess.run([sys.executable, "-c", HEAD + code, library], env={**os.environ, **state}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_watch_reads_the_driver(library):
    assert said(library, """
now = [0.0]
watch = vramtrack.Watch(clock=lambda: now[0])
before = watch.sample()
for _ in range(10): leaks()
now[0] += 60  # the driver is not asked more often than its answers cost
after = watch.sample()
watch.step()
print(after.allocator_allocated, (after.device_used - before.device_used) >> 20, (after.process_used - before.process_used) >> 20)
print(watch.verdict().metric, watch.breakdown().allocated, len(watch.advice()) >= 0, watch.errors)
""").splitlines() == ["0 80 80", "process_used 0 True []"]  # fmt: skip


def test_the_gate_finds_the_leak_and_passes_its_twin(library):
    assert said(library, """
try:
    vramtrack.check(leaks, "0.2 MiB/iter", iterations=128)
except vramtrack.LeakError as error:
    print("8.00 MiB/iter" in str(error) or str(error))
print(vramtrack.check(drops, "0.2 MiB/iter", iterations=128).result.outcome)
""").splitlines() == ["True", "passes"]  # fmt: skip


def test_without_the_drivers_figures_it_cannot_tell(library):
    assert said(library, """
import vramtrack.gate_meter
from vramtrack.torch_source import TorchSource
TorchSource.device_used_bytes = lambda self: None
vramtrack.gate_meter.DEFAULT_LIBRARY = None
for body in (leaks, drops):
    try:
        print(vramtrack.check(body, "0.2 MiB/iter", iterations=128).result.outcome)
    except Exception as error:
        print(type(error).__name__, error)
""").splitlines() == ["inconclusive", "inconclusive"]  # fmt: skip


def test_a_profiler_says_nothing_rather_than_nothing_used(library):
    assert said(library, """
result = vramtrack.GPUMemoryProfiler().profile_function(leaks)
print(result.memory_allocated, result.peak_memory_usage())
""").splitlines() == ["0 0"]  # fmt: skip
