"""Two lists in a function, a line for each."""
import time
from tensors import T


def train():
    losses = []
    predictions = []
    for _ in range(380):
        T(1 << 17)
        loss = T(512)
        prediction = T(1 << 14)
        losses.append(loss)
        predictions.append(prediction)
        time.sleep(0.003)


train()
# KEPT BY losses
# KEPT BY predictions
