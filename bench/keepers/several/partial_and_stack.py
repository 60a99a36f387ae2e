"""Callbacks as partial functions, and an exit stack that grows."""
import contextlib
import functools
import time
from tensors import T

callbacks = []


def report(tensor):
    return tensor.nbytes


def work():
    stack = contextlib.ExitStack()
    for _ in range(400):
        T(1 << 16)
        callbacks.append(functools.partial(report, T(1 << 13)))
        stack.callback(report, T(1 << 12))
        time.sleep(0.003)


work()
# KEPT BY callbacks
# KEPT BY stack
