"""Batches of another length each time."""
import random
import time
from tensors import T

random.seed(7)
last = None
for _ in range(320):
    length = random.randint(16, 512)
    last = T(length * 128, T(length * 256))
    time.sleep(0.004)
