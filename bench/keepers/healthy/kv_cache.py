"""A cache of keys and values that grows with a request and goes with it."""
import random
import time
from tensors import T

random.seed(3)


def generate(tokens):
    cache = []
    for _ in range(tokens):
        cache.append((T(1 << 12), T(1 << 12)))
        T(1 << 15)
        time.sleep(0.002)


for _ in range(16):
    generate(random.randint(10, 60))
