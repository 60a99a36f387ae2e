"""PyTorch under the probe: what it counts is what PyTorch's allocator says of itself, at each step (programs/probed.py)."""
import os
import pathlib
import subprocess
import sys

import pytest
from started import BUILD, HERE

sys.path.insert(0, str(HERE.parent / "probe"))
from ring import rings  # noqa: E402

MIB = 2**20
PROBE = BUILD / "probe/libvramtrack_probe_cuda.so"
DRIVER = pathlib.Path(os.environ["VRAMTRACK_TORCH_LANE"]) / "libcuda.so.1"
EXPANDABLE = "expandable_segments:True"


class Probed:
    def __init__(self, folder, situation, allocator="", probe=True, **environment):
        if allocator:
            environment.update(PYTORCH_CUDA_ALLOC_CONF=allocator, PYTORCH_ALLOC_CONF=allocator)
        if probe:
            environment.update(LD_PRELOAD=str(PROBE), VRAMTRACK_PROBE_DIR=str(folder), VRAMTRACK_PROBE_DRIVER=str(DRIVER))
        machine = {"VRAMTRACK_FAKE_GPU_DEVICES": "2", "VRAMTRACK_FAKE_GPU_MIB": "4096", "VRAMTRACK_FAKE_GPU_STATE": f"{folder}/state"}
        done = subprocess.run([sys.executable, HERE / "programs/probed.py", situation], env={**os.environ, **machine, **environment},
                              capture_output=True, text=True, timeout=300)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "vramtrack:" not in done.stderr, done.stderr
        self.out = done.stdout.splitlines()
        self.steps = int(self.out[-1].removeprefix("steps: "))
        self.rings = rings(folder)
        assert all(ring.lost == 0 for ring in self.rings)


@pytest.mark.parametrize("allocator", ["", EXPANDABLE])
@pytest.mark.parametrize("situation, steps", [("training", 60), ("sizes", 60), ("out_of_memory", 10), ("devices", 3), ("graphs", 6),
                                              ("data_loader", 5), ("shared", 2)])  # fmt: skip
def test_each_step_agrees_with_torch(tmp_path, situation, steps, allocator):
    if situation == "shared" and allocator:
        pytest.skip("PyTorch shares expandable segments by handles of files, which the fake driver does not carry")
    run = Probed(tmp_path, situation, allocator)
    assert run.steps >= steps
    ring = run.rings[0]
    calls = {record.call for record in ring.of("alloc") if record.memory == "device"}
    assert {"torch_block", "cu_mem_create" if allocator else "cu_mem_alloc"} <= calls
    # Graphs have no expandable segments before PyTorch 2.2.
    assert calls <= {"torch_block", "cu_mem_alloc"} | ({"cu_mem_create"} if allocator else set())


def test_blocks_lie_in_what_the_driver_handed_out(tmp_path):
    for allocator in ("", EXPANDABLE):
        folder = tmp_path / (allocator or "plain").partition(":")[0]
        folder.mkdir()
        ring = Probed(folder, "training", allocator).rings[0]
        segments, blocks = {}, 0
        for record in ring.of("alloc", "free"):
            if record.level == "driver" and record.memory == "device":
                segments.pop(record.address, None)
                if record.kind == "alloc":
                    segments[record.address] = record.address + record.bytes
            elif record.kind == "alloc" and record.level == "block":
                at, end = record.address, record.address + record.bytes
                while at < end:
                    inside = [last for first, last in segments.items() if first <= at < last]
                    assert inside, hex(at)
                    at = inside[0]
                blocks += 1
        assert blocks > 100


def test_totals_are_told_as_torch_tells_them(tmp_path):
    ring = Probed(tmp_path, "sizes").rings[0]
    totals = ring.of("totals")
    assert 3 < len(totals) < len(ring.of("alloc", "free"))
    reserved = {record.bytes for record in totals}
    assert len(reserved) > 2 and max(record.address for record in totals) <= max(reserved)


def test_an_error_of_torch_is_recorded_with_what_it_asked_for(tmp_path):
    failed = Probed(tmp_path, "out_of_memory").rings[0].of("failed")
    of_torch = [record for record in failed if record.call == "torch_block"]
    assert [record.bytes // MIB for record in of_torch] == [700, 700]
    assert {record.call for record in failed} == {"torch_block", "cu_mem_alloc"}


def test_a_limit_becomes_torchs_own_error_and_the_program_goes_on(tmp_path):
    for allocator in ("", EXPANDABLE):
        folder = tmp_path / (allocator or "plain").partition(":")[0]
        folder.mkdir()
        run = Probed(folder, "limited", allocator)
        assert run.out[0].startswith("said: CUDA out of memory"), run.out
        assert run.steps > 8
        assert run.rings[0].of("refused")


def test_a_loaders_workers_have_no_ring(tmp_path):
    run = Probed(tmp_path, "data_loader")
    assert len(run.rings) == 1
    assert {record.call for record in run.rings[0].of("alloc") if record.memory == "host"} == {"cu_mem_host_alloc"}


def test_two_ranks_have_a_ring_each(tmp_path):
    run = Probed(tmp_path, "ranks")
    used = [{record.device for record in ring.of("alloc") if record.level == "block"} for ring in run.rings]
    assert sorted(map(sorted, filter(None, used))) == [[0], [1]]


def test_tensors_of_the_drivers_pools(tmp_path):
    ring = Probed(tmp_path, "pools_of_the_driver", "backend:cudaMallocAsync").rings[0]
    assert {record.call for record in ring.of("alloc")} & {"cu_mem_alloc_async", "cu_mem_alloc_from_pool_async"}


def test_tensors_without_a_cache(tmp_path):
    Probed(tmp_path, "without_a_cache", PYTORCH_NO_CUDA_MEMORY_CACHING="1")


def test_a_tensor_of_another_process_is_not_owned(tmp_path):
    owner, opener = Probed(tmp_path, "shared").rings
    assert {record.call for record in opener.of("alloc") if record.memory == "mapped"} == {"cu_ipc_open_mem_handle"}
    assert opener.live(memory=("mapped",)) == {}
    assert {record.memory for record in owner.of("alloc")} <= {"device", "host"}


def test_the_profiler_sees_what_it_saw(tmp_path):
    bare, probed = Probed(tmp_path, "profiled", probe=False), Probed(tmp_path, "profiled")
    assert probed.out == bare.out and probed.out[0].startswith("profiled: 30 ")
