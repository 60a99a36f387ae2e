"""Hooks registered in each step, and a history of the class."""
import time
from tensors import T


class Layer:
    history = []

    def __init__(self):
        self.hooks = {}

    def register(self, hook):
        self.hooks[len(self.hooks)] = hook


layer = Layer()


def step():
    batch = T(1 << 14)
    layer.register(lambda grad, batch=batch: grad)
    Layer.history.append(T(1 << 12))
    T(1 << 16)


for _ in range(400):
    step()
    time.sleep(0.003)
# KEPT BY hooks
# KEPT BY history
