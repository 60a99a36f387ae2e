"""Batches that fail, and the last error that is kept."""
import time
from tensors import T


def forward(number):
    activations = T(1 << 16)
    if number % 3 == 0:
        raise ValueError(number)
    return activations


last_error = None
for number in range(330):
    try:
        forward(number)
    except ValueError as error:
        last_error = error
    time.sleep(0.004)
