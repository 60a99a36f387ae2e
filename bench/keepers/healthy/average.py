"""An average of the weights, replaced at each step."""
import time
from tensors import T


class Average:
    def __init__(self, weights):
        self.shadow = [T(w.nbytes) for w in weights]

    def update(self, weights):
        self.shadow = [T(w.nbytes) for w in weights]


weights = [T(1 << 15) for _ in range(6)]
average = Average(weights)
for _ in range(300):
    T(1 << 16)
    average.update(weights)
    time.sleep(0.004)
