"""Losses by epoch, in lists of lists."""
import time
from tensors import T


def main():
    epochs = []
    for epoch in range(12):
        losses = []
        for _ in range(30):
            losses.append(T(512, T(1 << 15)))
            T(1 << 17)
            time.sleep(0.004)
        epochs.append(losses)


main()
# KEPT BY epochs
