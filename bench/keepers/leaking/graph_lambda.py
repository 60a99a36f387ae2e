"""Values that are computed when somebody asks, which keep what they would compute from."""
import time
from tensors import T


class Report:
    def __init__(self):
        self.thunks = []

    def add(self, compute):
        self.thunks.append(compute)


report = Report()


def one(step):
    logits = T(1 << 14, T(1 << 15))
    report.add(lambda: (step, logits.nbytes))


for number in range(350):
    one(number)
    T(1 << 17)
    time.sleep(0.004)
# KEPT BY thunks
