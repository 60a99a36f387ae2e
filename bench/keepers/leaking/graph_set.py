"""A set of outputs to tell which were handled."""
import time
from tensors import T

seen = set()


def handle(output):
    if output not in seen:
        seen.add(output)
        T(1 << 15)


while len(seen) < 320:
    handle(T(1 << 12, T(1 << 16)))
    time.sleep(0.004)
# KEPT BY seen
