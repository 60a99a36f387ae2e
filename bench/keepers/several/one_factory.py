"""What makes the tensors is one function; who calls it keeps them in two places."""
import time
from tensors import T


def encode(size):
    hidden = T(1 << 15)
    return T(size)


class Cache:
    def __init__(self):
        self.keys = []
        self.values = []

    def add(self):
        self.keys.append(encode(1 << 13))
        self.values.append(encode(1 << 13))


cache = Cache()
for _ in range(400):
    cache.add()
    time.sleep(0.003)
# KEPT BY keys
# KEPT BY values
