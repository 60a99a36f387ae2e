"""Losses with the graphs that made them."""
import time
from tensors import T


def forward(x):
    for width in (1 << 14, 1 << 15, 1 << 13):
        x = T(width, x)
    return x


losses = []
for _ in range(380):
    y = forward(T(1 << 16))
    loss = T(512, y)
    T(1 << 16), T(1 << 15)
    losses.append(loss)
    time.sleep(0.003)
# KEPT BY losses
