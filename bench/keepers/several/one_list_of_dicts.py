"""Results of the evaluation, a dictionary for each batch."""
import time
from tensors import T


def predict(x):
    hidden = T(1 << 14)
    return {"hidden": hidden, "logits": T(1 << 13), "loss": T(512)}


def evaluate():
    results = []
    for _ in range(400):
        results.append(predict(T(1 << 16)))
        time.sleep(0.003)


evaluate()
# KEPT BY results
