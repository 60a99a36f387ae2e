"""One rank of a job of two on real PyTorch: rank 1 keeps 50 MiB of every step, after a quarter of an hour. Time is
simulated, a step takes five seconds.

    ranked.py FOLDER STEPS [gloo|alone]      alone: without torch.distributed; says "done" and waits for a line, then says it again

With gloo the ranks wait for each other at each look; rank 0 prints what it knows of the job.
"""
import os
import sys

import torch

import vramtrack

folder, steps, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
now = [1_750_000_000.0]
watch = vramtrack.Watch(directory=folder, clock=lambda: now[0], evidence=False)
weights = torch.nn.Parameter(torch.ones(1024, 1024, device="cuda"))
kept = []


def train(steps):
    for step in range(steps):
        loss = (torch.ones(1024, 1024, device="cuda") * weights).sum()
        loss.backward()
        weights.grad = None
        if rank == 1 and now[0] >= 1_750_000_900:
            kept.append(torch.empty(50 << 20, dtype=torch.uint8, device="cuda"))
        now[0] += 5
        watch.step()
        watch.sample()
        if step % 3 == 2:
            watch.check()


def say():
    print(watch.rank_words())
    print([one.status for one in watch.ranks()], watch.source.device_id, watch.errors, flush=True)


train(steps)
if how == "gloo":
    torch.distributed.init_process_group("gloo")
    assert torch.distributed.get_world_size() == 2 and torch.distributed.get_rank() == rank
    torch.distributed.barrier()
    watch.check()
    torch.distributed.barrier()
    if rank == 0:
        say()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
else:
    print("done", flush=True)
    for line in sys.stdin:
        train(int(line))
        say()
