"""Loads a model of 48 layers, layer after layer, answers ten requests and ends."""
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 2 * width, device="cuda")
        self.down = nn.Linear(2 * width, width, device="cuda")

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


layers = []
for number in range(48):
    layers.append(Layer(256))
model = nn.Sequential(*layers).eval()
with torch.no_grad():
    for request in range(10):
        print(model(torch.randn(16, 256, device="cuda")).sum().item())
