"""Trains, and keeps the loss of each step for a plot: its number. Adam makes its state in the first step."""
import torch
from torch import nn
from torch.nn import functional as F

model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
losses = []
for step in range(1000):
    images = torch.randn(64, 128, device="cuda")
    labels = torch.zeros(64, dtype=torch.long, device="cuda")
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(len(losses), "losses")
