"""A window of the last 50 losses."""
import collections
import time
from tensors import T

window = collections.deque(maxlen=50)
for step in range(300):
    window.append(T(512, T(1 << 15)))
    T(1 << 17)
    time.sleep(0.004)
