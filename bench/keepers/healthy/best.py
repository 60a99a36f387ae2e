"""The best state so far, replaced where a better one comes."""
import random
import time
from tensors import T

random.seed(11)


def main():
    best, state = 1.0, None
    for _ in range(330):
        T(512, T(1 << 16))
        loss = random.random()
        if loss < best:
            best, state = loss, {name: T(1 << 16) for name in ("weight", "bias")}
        time.sleep(0.004)
    return state


main()
