"""Blocks of random sizes and lives: what is live goes up and down, and fragments."""
import random

import torch

random.seed(3)
live = []
for step in range(3000):
    live.append(torch.empty(random.choice((1, 3, 7, 20, 60)) * 10_000, device="cuda"))
    while len(live) > random.randint(20, 60):
        live.pop(random.randrange(len(live)))
