"""A mixture of sixteen experts. One is made when its first token comes; the rare ones come late."""
import random

import torch
from torch import nn

random.seed(5)
weights = [1 / (i + 1) ** 2 for i in range(16)]
experts = {}


def expert(number):
    if number not in experts:
        experts[number] = nn.Linear(256, 256).cuda()
    return experts[number]


for step in range(600):
    number, = random.choices(range(16), weights)
    loss = expert(number)(torch.randn(64, 256, device="cuda")).square().mean()
    loss.backward()
    with torch.no_grad():
        for weight in experts[number].parameters():
            weight -= 0.1 * weight.grad
            weight.grad = None
