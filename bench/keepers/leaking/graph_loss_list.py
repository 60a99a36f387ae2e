"""Collects the losses of an epoch to plot them, each with its graph."""
import time
from tensors import T


def forward(batch):
    hidden = T(1 << 16, batch)
    return T(1 << 14, hidden)


def train():
    losses = []
    for step in range(350):
        batch = T(1 << 16)
        loss = T(512, forward(batch))
        time.sleep(0.004)
        losses.append(loss)
    print(len(losses), "losses")


train()
# KEPT BY losses
