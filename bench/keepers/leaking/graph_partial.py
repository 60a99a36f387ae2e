"""Backward passes that are put off as partial functions, and forgotten."""
import functools
import time
from tensors import T

pending = []


def backward(loss, scale):
    return T(512, loss)


def step():
    loss = T(512, T(1 << 16))
    pending.append(functools.partial(backward, loss, scale=2.0))
    time.sleep(0.004)


for _ in range(340):
    step()
# KEPT BY pending
