"""Models that register themselves, and are made again for each fold."""
import time
from tensors import T


class Model:
    instances = []

    def __init__(self):
        self.weight = T(1 << 15)
        self.bias = T(1 << 10)
        type(self).instances.append(self)


class Classifier(Model):
    def __init__(self):
        super().__init__()
        self.head = T(1 << 12)


def main():
    for _ in range(320):
        Classifier()
        T(1 << 17)
        time.sleep(0.004)


main()
# KEPT BY instances
