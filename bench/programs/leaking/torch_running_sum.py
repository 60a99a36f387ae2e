"""Validates, and sums the loss as a tensor: the graph of each batch hangs on the sum."""
import torch
from torch import nn

import vramtrack

model = nn.Sequential(nn.Linear(64, 2048), nn.Sigmoid(), nn.Linear(2048, 10)).cuda()
criterion = nn.CrossEntropyLoss()


def validate(batches):
    total = 0
    for _ in range(batches):
        images = torch.randn(128, 64, device="cuda")
        labels = torch.zeros(128, dtype=torch.long, device="cuda")
        logits = model(images)  # LEAK HERE
        total = total + criterion(logits, labels)
        vramtrack.mark("step")
    return total / batches


print(validate(200).item())
