"""Loads a model layer by layer, then serves."""
import time
from tensors import T


class Layer:
    def __init__(self):
        self.weight, self.bias = T(1 << 17), T(1 << 10)
        time.sleep(0.01)

    def __call__(self, x):
        return T(1 << 13, x)


layers = [Layer() for _ in range(30)]
for request in range(300):
    x = T(1 << 13)
    for layer in layers[:4]:
        x = layer(x)
    time.sleep(0.004)
