"""A window of the last 40 outputs is healthy; the list of losses beside it is not."""
import collections
import time
from tensors import T

window = collections.deque(maxlen=40)
losses = []
for _ in range(400):
    window.append(T(1 << 14))
    losses.append(T(1 << 12))
    T(1 << 16)
    time.sleep(0.003)
# KEPT BY losses
