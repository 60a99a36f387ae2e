"""Under the probe: at each step, what it counts must be what PyTorch's allocator says of itself.

    probed.py SITUATION
"""
import gc
import mmap
import os
import struct
import sys

import torch
from torch import nn

MIB = 2**20
OutOfMemory = torch.cuda.OutOfMemoryError
SITUATIONS = {}
steps = 0


def situation(function):
    SITUATIONS[function.__name__] = function
    return function


class Ring:
    """The first page of this process's ring (src/probe/wire.hpp)."""

    LIMIT, HELD = 256, 288

    def __init__(self):
        path = os.path.join(os.environ["VRAMTRACK_PROBE_DIR"], f"ring.{os.getpid()}.1")
        with open(path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 4096)

    def held(self, device):
        """(driver's bytes, blocks' bytes)"""
        return struct.unpack_from("<2q", self.page, self.HELD + 16 * device)

    def limit(self, size):
        struct.pack_into("<Q", self.page, self.LIMIT, size)


def empty(mib, device="cuda"):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device=device)


ring = None


def check():
    global ring, steps
    ring = ring or Ring()
    steps += 1
    for device in range(torch.cuda.device_count()):
        expected = torch.cuda.memory_reserved(device), torch.cuda.memory_allocated(device)
        assert ring.held(device) == expected, f"step {steps}, device {device}: the probe {ring.held(device)}, torch {expected}"


def model(width=256):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)).cuda()


@situation
def training():
    net = model()
    check()
    optimizer = torch.optim.Adam(net.parameters())
    losses = []
    for step in range(12):
        batch = torch.randn(64, 256, device="cuda")
        check()
        loss = net(batch).square().mean()
        check()
        loss.backward()
        check()
        optimizer.step()
        check()
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        losses.append(loss)
        check()
    del losses, loss, batch
    gc.collect()
    check()
    torch.cuda.empty_cache()
    check()


@situation
def sizes():
    """All sorts of sizes, freed in another order, views, a side stream, and empty_cache in between."""
    kept, side = [], torch.cuda.Stream()
    for n in range(60):
        kept.append(torch.empty(1 + 7919 * n * n % (24 * MIB), dtype=torch.uint8, device="cuda"))
        if n % 3 == 2:
            kept.pop(n * 5 % len(kept))
        if n % 5 == 4:
            kept.append(kept[0].view(-1)[:1])
            kept[-2].record_stream(side)
        if n % 20 == 19:
            torch.cuda.empty_cache()
        check()
    kept.clear()
    check()
    torch.cuda.empty_cache()
    check()


@situation
def out_of_memory():
    kept = []
    for _ in range(2):
        try:
            while True:
                kept.append(empty(700))
                check()
        except OutOfMemory as error:
            assert "out of memory" in str(error), error
        check()
        kept.clear()
        gc.collect()
        check()
    held = empty(300)
    check()
    del held


@situation
def devices():
    first = [empty(30, "cuda:0"), empty(40, "cuda:1")]
    check()
    first.append(torch.arange(100000.0, device="cuda:0").to("cuda:1"))
    check()
    del first[1]
    torch.cuda.empty_cache()
    check()


@situation
def graphs():
    net = model()
    batch = torch.randn(64, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.no_grad():
        net(batch)
    check()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        out = net(batch)
    check()
    for _ in range(3):
        graph.replay()
        check()
    del graph, out
    gc.collect()
    check()
    torch.cuda.empty_cache()
    check()


@situation
def data_loader():
    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            return torch.full((256,), float(index))

    net = model()
    for batch in torch.utils.data.DataLoader(Numbers(), batch_size=16, num_workers=2, pin_memory=True):
        net(batch.cuda()).sum().backward()
        check()
    del batch
    check()


@situation
def limited():
    held = empty(100)
    check()
    ring.limit(512 * MIB)
    assert torch.cuda.mem_get_info()[1] == 512 * MIB
    kept = []
    try:
        while len(kept) < 1000:
            kept.append(empty(64))
            check()
    except OutOfMemory as error:
        print("said:", str(error).split(".")[0])
    else:
        raise SystemExit("nothing was refused")
    check()
    assert ring.held(0)[0] <= 512 * MIB < ring.held(0)[0] + 64 * MIB
    taken = len(kept)
    # What is free in the cache does not fit: torch releases it, tries again, and gets its memory.
    kept.clear()
    gc.collect()
    kept.append(empty(350))
    check()
    kept.clear()
    torch.cuda.empty_cache()
    for _ in range(taken):
        kept.append(empty(64))
    check()
    ring.limit(0)
    kept.append(empty(2000))
    check()
    del held


def rank_of_two(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    torch.cuda.set_device(rank)
    net = nn.parallel.DistributedDataParallel(model(), device_ids=[rank])
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(4):
        net(torch.randn(32, 256, device="cuda")).sum().backward()
        check()
        optimizer.step()
        optimizer.zero_grad()
        check()
    torch.distributed.destroy_process_group()


@situation
def ranks():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(rank_of_two, (port,), nprocs=2)


@situation
def pools_of_the_driver():
    """backend:cudaMallocAsync: no blocks are reported, and the driver's calls carry each tensor."""
    global ring
    kept = [empty(3), empty(40)]
    ring = Ring()
    for _ in range(10):
        kept.append(empty(5))
        assert ring.held(0) == (torch.cuda.memory_allocated(), 0), (ring.held(0), torch.cuda.memory_allocated())
    del kept[3:]
    assert ring.held(0) == (torch.cuda.memory_allocated(), 0), (ring.held(0), torch.cuda.memory_allocated())


@situation
def without_a_cache():
    """PYTORCH_NO_CUDA_MEMORY_CACHING: each tensor is an allocation of the driver."""
    global ring
    kept = [empty(2), empty(3)]
    ring = Ring()
    assert ring.held(0) == (5 * MIB, 0), ring.held(0)
    kept.pop()
    assert ring.held(0) == (2 * MIB, 0), ring.held(0)


def receive(queue, done):
    tensor = queue.get()
    done.put(int(tensor.numel()))
    done.get()
    del tensor


@situation
def shared():
    """A tensor that another process opens stays this one's."""
    context = torch.multiprocessing.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    child = context.Process(target=receive, args=(queue, done))
    child.start()
    held = empty(30)
    queue.put(held)
    assert done.get(timeout=100) == 30 * MIB
    check()
    done.put(0)
    child.join()
    check()


@situation
def profiled():
    """torch.profiler sees what it always saw."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        held = empty(30)
        on_host = torch.empty(10 * MIB, dtype=torch.uint8)
    named = "self_device_memory_usage" if hasattr(profiler.key_averages()[0], "self_device_memory_usage") else "self_cuda_memory_usage"
    print("profiled:", sum(getattr(event, named) for event in profiler.key_averages()) // MIB,
          sum(event.self_cpu_memory_usage for event in profiler.key_averages()) // MIB)  # fmt: skip
    del held, on_host


if __name__ == "__main__":
    SITUATIONS[sys.argv[1]]()
    print("steps:", steps, flush=True)
