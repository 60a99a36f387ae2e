"""A logger that is given the tensor and means to format it later."""
import time
from tensors import T


class Logger:
    def __init__(self, every):
        self.every, self.rows = every, []

    def log(self, step, **values):
        self.rows.append((step, values))


def main():
    logger = Logger(every=10)
    for step in range(400):
        hidden = T(1 << 15)
        loss = T(512, hidden)
        T(1 << 18)
        logger.log(step, loss=loss, rate=0.001)
        time.sleep(0.003)


main()
# KEPT BY rows
