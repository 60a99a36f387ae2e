"""Two containers that are bounded."""
import collections
import time
from tensors import T

recent = collections.deque(maxlen=30)
cache = {}
for number in range(450):
    recent.append(T(1 << 13))
    cache[number % 25] = T(1 << 14)
    T(1 << 16)
    time.sleep(0.003)
