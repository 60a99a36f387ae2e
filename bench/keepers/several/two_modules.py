"""Two objects of one class, each with a list by the same name."""
import time
from tensors import T


class Meter:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)


class Trainer:
    def __init__(self):
        self.loss_meter = Meter()
        self.grad_meter = Meter()

    def step(self):
        T(1 << 16)
        self.loss_meter.update(T(512))
        self.grad_meter.update(T(1 << 13))


trainer = Trainer()
for _ in range(400):
    trainer.step()
    time.sleep(0.003)
# KEPT BY loss_meter
# KEPT BY grad_meter
