"""An average meter as in so many repositories, with a list of all values to take the median of."""
import time
from tensors import T


class AverageMeter:
    def __init__(self, name):
        self.name, self.count, self.values = name, 0, []

    def update(self, value):
        self.values.append(value)
        self.count += 1


meters = {name: AverageMeter(name) for name in ("time", "loss")}
for step in range(350):
    meters["time"].update(0.1)
    features = T(1 << 16)
    logits = T(1 << 14, features)
    meters["loss"].update(T(512, logits))
    time.sleep(0.004)
# KEPT BY values
