"""A replay buffer that is full after a fifth of the run."""
import random
import time
from tensors import T

random.seed(1)
memory = []
for step in range(400):
    item = T(1 << 13)
    if len(memory) < 80:
        memory.append(item)
    else:
        memory[random.randrange(80)] = item
    T(1 << 16)
    time.sleep(0.004)
