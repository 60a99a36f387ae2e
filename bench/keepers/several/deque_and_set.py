"""A deque without a bound and a set."""
import collections
import time
from tensors import T


def run():
    frames = collections.deque()
    seen = set()
    for _ in range(390):
        T(1 << 16)
        frames.append(T(1 << 14))
        seen.add(T(1 << 11))
        time.sleep(0.003)


run()
# KEPT BY frames
# KEPT BY seen
