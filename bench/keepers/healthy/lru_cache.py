"""A cache of 32 masks."""
import functools
import time
from tensors import T


@functools.lru_cache(maxsize=32)
def mask(length):
    return T(1 << 14)


for step in range(320):
    mask(step % 97)
    T(1 << 16)
    time.sleep(0.004)
