"""Batches that failed are looked at later; their exceptions keep the frames of the forward pass."""
import time
from tensors import T

failures = []


def forward(number):
    activations = T(1 << 16)
    if number % 2:
        raise RuntimeError("nan in batch %d" % number)
    return activations


def main():
    for number in range(500):
        try:
            forward(number)
        except RuntimeError as error:
            failures.append((number, error))
        time.sleep(0.003)


main()
# KEPT BY failures
