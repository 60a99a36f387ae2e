"""Tries learning rates on one model. Each trial's optimizer is kept in its record, with two moments of each weight."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()


def run_trial(learning_rate):
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for _ in range(5):
        loss = model(torch.randn(32, 512, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # LEAK HERE
    return {"rate": learning_rate, "loss": loss.item(), "optimizer": optimizer}


records = [run_trial(10 ** (-6 + trial / 10)) for trial in range(40)]
print(min(record["loss"] for record in records))
