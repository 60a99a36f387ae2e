"""A window for the moving average, whose length was forgotten."""
import collections
import time
from tensors import T

Point = collections.namedtuple("Point", "step loss")


def train(steps):
    window = collections.deque()
    for step in range(steps):
        x = T(1 << 14)
        y = T(1 << 14, x)
        T(1 << 17)
        window.append(Point(step, T(256, y)))
        time.sleep(0.004)


if __name__ == "__main__":
    train(340)
# KEPT BY window
