"""A model that keeps its outputs, and a module that keeps losses."""
import time
from tensors import T

all_losses = []


class Model:
    def __init__(self):
        self.weights = [T(1 << 18) for _ in range(4)]
        self.features = []

    def __call__(self, x):
        y = T(1 << 13)
        self.features.append(y)
        return T(1 << 12)


model = Model()


def main():
    for _ in range(420):
        x = T(1 << 15)
        out = model(x)
        all_losses.append(T(512))
        time.sleep(0.003)


main()
# KEPT BY features
# KEPT BY all_losses
