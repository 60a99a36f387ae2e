"""Keeps the loss of each step with its graph: as many steps as a line on standard input says, which is answered with the bytes that PyTorch
has allocated.
"""
import sys

import torch

weights = torch.nn.Parameter(torch.ones(512, 512, device="cuda"))
losses = []


def step():
    batch = torch.randn(512, 512, device="cuda")
    return (batch * weights).sin().sum()  # STEP


print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        losses.append(step())  # KEEP
    print(torch.cuda.memory_allocated(), flush=True)
