"""A consumer as a generator, which keeps what is sent to it."""
import time
from tensors import T


def collector():
    best = []
    while True:
        item = yield
        best.append(item)


def main():
    sink = collector()
    next(sink)
    for _ in range(350):
        sink.send(T(512, T(1 << 15)))
        T(1 << 17)
        time.sleep(0.004)


main()
# KEPT BY best
