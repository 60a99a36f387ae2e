"""Evaluates without no_grad and keeps pairs of prediction and target."""
import time
from tensors import T


def model(x):
    for width in (1 << 14, 1 << 15, 1 << 12):
        x = T(width, x)
    return x


def evaluate(batches):
    predictions = []
    for index in range(batches):
        predictions.append((model(T(1 << 14)), index % 10))
        time.sleep(0.005)
    return predictions


results = len(evaluate(320))
print(results)
# KEPT BY predictions
