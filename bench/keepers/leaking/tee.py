"""An iterator in two, of which one is read and the other not."""
import itertools
import time
from tensors import T


def load():
    for _ in range(350):
        time.sleep(0.004)
        yield T(1 << 14)


def main():
    batches, preview = itertools.tee(load())
    next(preview)
    for batch in batches:
        T(1 << 16, batch)


main()
# KEPT BY preview
