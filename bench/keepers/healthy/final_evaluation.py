"""Trains, and keeps the predictions of one evaluation at the end."""
import time
from tensors import T


def train():
    for _ in range(300):
        T(512, T(1 << 16))
        time.sleep(0.004)


def evaluate():
    predictions = [T(1 << 12) for _ in range(20)]
    return sum(p.nbytes for p in predictions)


train()
print(evaluate())
