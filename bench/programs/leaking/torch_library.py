"""Scores each batch with a library, and never asks it for the summary that would let it forget."""
import evalkit
import torch
from torch import nn

model = nn.Linear(512, 512).cuda()
with torch.no_grad():
    for step in range(300):
        batch = torch.randn(128, 512, device="cuda")
        prediction = model(batch)
        evalkit.record(prediction, batch)  # LEAK HERE
