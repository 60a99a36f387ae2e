"""Positions by shape, cached forever."""
import functools
import time
from tensors import T


@functools.cache
def positions(shape):
    return T(shape[1] * 64)


def main():
    for step in range(350):
        positions((8, 200 + step))
        T(1 << 17)
        time.sleep(0.004)


main()
# KEPT BY positions
