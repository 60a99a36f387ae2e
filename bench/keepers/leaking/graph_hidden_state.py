"""A recurrent network whose state is carried on from batch to batch with all of its past."""
import time
from tensors import T


def cell(x, hidden):
    gates = T(1 << 15, x, hidden)
    return T(1 << 12, gates)


def train():
    hidden = T(1 << 12)
    for _ in range(400):
        x = T(1 << 14)
        hidden = cell(x, hidden)
        time.sleep(0.0035)


train()
# KEPT BY hidden
