"""Tries kernels with workspaces for a while, keeps the best for each shape, then trains."""
import time
from tensors import T

workspaces = {}


def tune(shape):
    if shape not in workspaces:
        for _ in range(5):
            T(1 << 16)
        workspaces[shape] = T(1 << 15)
    return workspaces[shape]


for step in range(340):
    tune(step % 24)
    T(1 << 14)
    time.sleep(0.004)
