"""A callback that remembers, and a dictionary by step."""
import time
from tensors import T


def recorder():
    remembered = []

    def record(tensor):
        remembered.append(tensor)

    return record


record = recorder()
by_step = {}


def step(number):
    T(1 << 17)
    activation = T(1 << 14)
    record(activation)
    by_step[number] = T(1 << 12)


for number in range(400):
    step(number)
    time.sleep(0.003)
# KEPT BY remembered
# KEPT BY by_step
