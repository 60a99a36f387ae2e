"""Trains in epochs. After each, all predictions of the validation are collected, scored, and dropped."""
import torch
from torch import nn

import vramtrack

model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())


@torch.no_grad()
def validate():
    predictions = []
    for _ in range(20):
        predictions.append(model(torch.randn(512, 64, device="cuda")))
    return torch.cat(predictions).mean().item()


for epoch in range(8):
    for step in range(25):
        loss = model(torch.randn(128, 64, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        vramtrack.mark("step")
    print(epoch, validate())
    vramtrack.mark("epoch")
