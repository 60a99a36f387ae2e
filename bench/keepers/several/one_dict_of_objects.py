"""Sessions that are never closed, each with its own list."""
import time
from tensors import T


class Session:
    def __init__(self):
        self.prompt = T(1 << 13)
        self.blocks = [T(1 << 12), T(1 << 12)]


sessions = {}
for number in range(400):
    sessions[number] = Session()
    T(1 << 17)
    time.sleep(0.003)
# KEPT BY sessions
