"""What advice says: by the settings in force, and whose memory it is."""
import os
import subprocess
import sys
import types

import pytest
from fake_torch import GPUS
from test_watch import MIB, Job, leaking

import vramtrack
from vramtrack.advice import dataloader_workers, describe_process


@pytest.mark.parametrize("settings, expected", [
    ({}, "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (now: not set)"),
    ({"max_split_size_mb": "128", "garbage_collection_threshold": "0.8"},
     "set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128,garbage_collection_threshold:0.8,expandable_segments:True "
     "(now: max_split_size_mb:128,garbage_collection_threshold:0.8)"),
    ({"expandable_segments": "False", "max_split_size_mb": "128"},
     "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128 (now:"),
    ({"expandable_segments": "true"}, "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:true,roundup_power2_divisions:8 (now:"),
    ({"expandable_segments": "True", "roundup_power2_divisions": "4"}, "are set already; round varying sizes to a few fixed ones"),
    ({"backend": "cudaMallocAsync"}, "the allocator backend cudaMallocAsync has no setting against fragmentation"),
])  # fmt: skip
def test_it_reads_the_allocators_settings(device, settings, expected):
    device._settings = settings
    job = Job(device, evidence=False)
    job.run(200, lambda: setattr(device, "_reserved", device._reserved + 30 * MIB))
    (said,) = [line for line in job.watch.advice() if "are reserved but unused" in line]
    assert expected in said


def test_it_names_the_dataloader_worker_that_this_process_is(device, monkeypatch):
    data = types.ModuleType("torch.utils.data")
    data.get_worker_info = lambda: types.SimpleNamespace(id=2, num_workers=8)
    monkeypatch.setitem(sys.modules, "torch.utils.data", data)
    device.allocate(300 * MIB)
    job = Job(device)
    job.run(30)
    assert "this process is DataLoader worker 2 of 8 and holds 300.0 MiB on the GPU" in job.watch.advice()[0]


def test_processes_in_words(tmp_path):
    def write(pid, comm, parent, command):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "comm").write_text(comm + "\n")
        (folder / "stat").write_text(f"{pid} ({comm}) S {parent} 1 1")
        (folder / "cmdline").write_bytes(command)

    write(77, "pt_data_worker", os.getpid(), b"python\0train.py\0")
    write(79, "python", 1, b"python\0serve.py\0")
    write(80, "kworker", os.getpid(), b"")
    assert describe_process(77, str(tmp_path)) == "DataLoader worker (pid 77, a child of this process)"
    assert "ended" in describe_process(78, str(tmp_path))
    assert describe_process(79, str(tmp_path)) == "pid 79 python serve.py"
    assert describe_process(80, str(tmp_path)) == "pid 80 kworker (a child of this process)"
    known = {79: "DataLoader worker 1 of 2"}
    assert describe_process(79, str(tmp_path), known) == "DataLoader worker 1 of 2 (pid 79, a child of this process)"


class _MultiProcessingDataLoaderIter:
    def __init__(self, pids):
        self._workers = [types.SimpleNamespace(pid=pid) for pid in pids]


def test_workers_of_the_loaders_that_are_alive(monkeypatch):
    """Before PyTorch 2.6 nothing but the loader itself knows them."""
    assert dataloader_workers() == {}
    module = types.ModuleType("torch.utils.data.dataloader")
    module._MultiProcessingDataLoaderIter = _MultiProcessingDataLoaderIter
    monkeypatch.setitem(sys.modules, "torch.utils.data.dataloader", module)
    loader = _MultiProcessingDataLoaderIter([501, 502])
    assert dataloader_workers() == {501: "DataLoader worker 0 of 2", 502: "DataLoader worker 1 of 2"}
    del loader
    assert dataloader_workers() == {}


@pytest.fixture
def child():
    """A process that calls itself what PyTorch calls its workers."""
    code = "open('/proc/self/comm', 'w').write('pt_data_worker'); print('named', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "named\n"
        yield process.pid
        process.communicate("\n")


def test_the_watch_of_the_parent_names_the_worker_that_grows(child, library, torch):
    now = iter(range(0, 10**6, 60))
    path = library(*GPUS, "process gpu=1 pid=self list=C used=900M", f"process gpu=1 pid={child} list=C used=100M+50M",
                   f"process gpu=0 pid={os.getppid()} list=C used=100M+500M")  # fmt: skip
    watch = vramtrack.Watch(driver_library=path, evidence=False, clock=lambda: next(now))
    for _ in range(20):
        watch.sample()
    (said,) = [line for line in watch.advice() if "has grown by" in line]
    assert said.startswith(f"DataLoader worker (pid {child}, a child of this process) has grown by 950.0 MiB on this GPU in 19 min, to ")
    assert "return CPU tensors from the dataset" in said


def test_a_leak_outside_the_allocator_is_not_looked_for_in_tensors(device):
    def outside():
        device.outside_bytes += 8 * MIB

    job = leaking(device, outside)
    said = " ".join(job.watch.advice())
    assert "grows outside PyTorch's allocator" in said and "keeps tensors" not in said
