"""A training loop within a function that keeps each step's loss, and so the graph of the step.

    local_leak.py STEPS
"""
import sys
import time

import torch


def train(steps):
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256, device="cuda") for _ in range(4)])
    optimizer = torch.optim.Adam(model.parameters())
    losses = []  # THE KEEPER
    for _ in range(steps):
        loss = model(torch.randn(64, 256, device="cuda")).pow(2).mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
        time.sleep(0.02)


train(int(sys.argv[1]))
