"""One list, appended to in two lines."""
import time
from tensors import T

trace = []


def encode():
    trace.append(T(1 << 14))


def decode():
    trace.append(T(1 << 12))


for _ in range(400):
    encode()
    decode()
    T(1 << 17)
    time.sleep(0.003)
# KEPT BY trace
