"""Trains, and keeps the loss of each step for a plot: the tensor itself, not its number."""
import torch
from torch import nn
from torch.nn import functional as F

model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
losses = []
for step in range(1000):
    images = torch.randn(64, 128, device="cuda")
    labels = torch.zeros(64, dtype=torch.long, device="cuda")
    loss = F.cross_entropy(model(images), labels)  # LEAK HERE
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
print(len(losses), "losses")
