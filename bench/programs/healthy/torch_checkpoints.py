"""Trains and remembers the last three states of the weights. The weights' average joins half way."""
import copy

import torch
from torch import nn

import vramtrack

model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
latest, average = [], None
for step in range(300):
    loss = model(torch.randn(64, 512, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 150:
        average = copy.deepcopy(model)
    if average is not None:
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), model.parameters()):
                mean.lerp_(weight, 0.01)
    if step % 5 == 0:
        latest.append(copy.deepcopy(model.state_dict()))
        del latest[:-3]
    vramtrack.mark("step")
