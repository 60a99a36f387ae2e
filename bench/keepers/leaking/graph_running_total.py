"""Adds the losses up as tensors: the sum keeps the graph of every step."""
import time
from tensors import T

total_loss = T(512)


def step(total):
    activations = T(1 << 16, T(1 << 15))
    loss = T(512, activations)
    time.sleep(0.004)
    return T(512, total, loss)


for _ in range(350):
    total_loss = step(total_loss)
# KEPT BY total_loss
