"""Two lists, both filled in one line."""
import time
from tensors import T

losses, outputs = [], []


def step():
    T(1 << 16)
    losses.append(T(512)), outputs.append(T(1 << 13))


for _ in range(400):
    step()
    time.sleep(0.003)
# KEPT BY losses
# KEPT BY outputs
