"""Predicts without no_grad and keeps the outputs: with each comes the graph that made it."""
import torch
from torch import nn


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(32, 4096)
        self.out = nn.Linear(4096, 1)

    def forward(self, rows):
        hidden = torch.tanh(self.wide(rows))  # LEAK HERE
        return self.out(hidden)


model = Regressor().cuda().eval()
predictions = []
for batch in range(30):
    rows = torch.randn(256, 32, device="cuda")
    predictions.append(model(rows))
print(torch.cat(predictions).shape)
