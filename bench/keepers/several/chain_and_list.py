"""A state with all of its past, and a list of losses beside it."""
import time
from tensors import T


def train():
    hidden = T(1 << 12)
    losses = []
    for _ in range(400):
        hidden = T(1 << 12, hidden)
        losses.append(T(1 << 11))
        T(1 << 16)
        time.sleep(0.003)


train()
# KEPT BY hidden
# KEPT BY losses
