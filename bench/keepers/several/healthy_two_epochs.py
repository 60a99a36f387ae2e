"""Two lists that are emptied after each epoch."""
import time
from tensors import T


def epoch():
    losses, outputs = [], []
    for _ in range(60):
        losses.append(T(512, T(1 << 14)))
        outputs.append(T(1 << 13))
        time.sleep(0.003)


for _ in range(7):
    epoch()
