"""Outputs that an epoch collects and drops."""
import time
from tensors import T


def epoch():
    outputs = []
    for _ in range(40):
        outputs.append(T(1 << 13, T(1 << 14)))
        time.sleep(0.004)
    return sum(output.nbytes for output in outputs)


for _ in range(8):
    epoch()
