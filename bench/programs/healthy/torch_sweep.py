"""Tries learning rates, each on its own model, which goes with its optimizer when the trial ends."""
import torch
from torch import nn


def run_trial(learning_rate, width):
    model = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, 512)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for _ in range(5):
        loss = model(torch.randn(32, 512, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {"rate": learning_rate, "loss": loss.item()}


records = [run_trial(10 ** (-6 + trial / 10), 256 + 16 * (trial % 9)) for trial in range(40)]
print(min(record["loss"] for record in records))
