"""A training loop that keeps the loss of every step, and with it the step's graph: about 8 MiB a step.

    leaky.py STEPS [keep|drop] [PACE_S]      drop: the repaired twin, which keeps the number only
"""
import sys
import time

import torch

import vramtrack

steps, keeps, pace_s = int(sys.argv[1]), sys.argv[2:3] != ["drop"], float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
weights = torch.nn.Parameter(torch.ones(1024, 1024, device="cuda"))
optimizer = torch.optim.SGD([weights], lr=0.1)
losses = []
print("training", flush=True)
for _ in range(steps):
    batch = torch.randn(1024, 1024, device="cuda")
    loss = (batch * weights).sin().sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss if keeps else loss.item())
    vramtrack.mark("step")
    time.sleep(pace_s)
print(f"{torch.cuda.memory_allocated() >> 20} MiB allocated at the end", flush=True)
