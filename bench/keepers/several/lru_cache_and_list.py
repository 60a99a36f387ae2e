"""A cache of a function by length, and a list of what was made of it."""
import functools
import time
from tensors import T


@functools.lru_cache(maxsize=None)
def position_mask(length):
    return T(1 << 13)


results = []
for length in range(400):
    position_mask(length)
    T(1 << 17)
    results.append(T(1 << 12))
    time.sleep(0.003)
# KEPT BY position_mask
# KEPT BY results
