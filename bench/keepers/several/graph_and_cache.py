"""A kept graph, and a cache that has nothing to do with it."""
import time
from tensors import T

kv = {}


def layer(x, size=1 << 14):
    weights = T(size, x)
    return T(size // 2, weights)


def train():
    losses = []
    for step in range(400):
        h = layer(layer(T(1 << 15)))
        losses.append(T(512, h))
        kv["request", step] = T(1 << 13)
        time.sleep(0.003)


train()
# KEPT BY losses
# KEPT BY kv
