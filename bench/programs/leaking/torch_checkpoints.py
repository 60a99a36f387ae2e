"""Trains and remembers the best weights: a copy of each state that was better, all of them on the device."""
import copy

import torch
from torch import nn

import vramtrack

model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
best = []
for step in range(200):
    loss = model(torch.randn(64, 512, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        best.append((loss.item(), copy.deepcopy(model.state_dict())))  # LEAK HERE
    vramtrack.mark("step")
