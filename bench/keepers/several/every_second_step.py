"""One list gets something in each step, the other in every second."""
import time
from tensors import T

losses, checks = [], []
for step in range(500):
    T(1 << 16)
    losses.append(T(1 << 12))
    if step % 2 == 0:
        checks.append(T(1 << 14))
    time.sleep(0.003)
# KEPT BY losses
# KEPT BY checks
