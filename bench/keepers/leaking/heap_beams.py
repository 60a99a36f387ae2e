"""A heap of beams that is pushed to more often than it is popped."""
import heapq
import itertools
import time
from tensors import T


def search(steps):
    beams, counter = [], itertools.count()
    for step in range(steps):
        heapq.heappush(beams, (step % 17, next(counter), T(1 << 14)))
        heapq.heappush(beams, (step % 13, next(counter), T(1 << 14)))
        heapq.heappop(beams)
        T(1 << 15)
        time.sleep(0.004)


search(360)
# KEPT BY beams
