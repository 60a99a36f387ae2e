"""Finalizers with the memory they are to free as their argument, of an object that never dies."""
import time
import weakref
from tensors import T


class Engine:
    pass


engine = Engine()


def hold(memory):
    return memory.nbytes


for _ in range(340):
    weakref.finalize(engine, hold, T(1 << 14))
    T(1 << 16)
    time.sleep(0.004)
# KEPT BY finalize
