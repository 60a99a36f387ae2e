"""A method that is cached, keyed by the object and a length that differs each time."""
import functools
import time
from tensors import T


class Attention:
    @functools.lru_cache(maxsize=None)
    def mask(self, length):
        return T(1 << 14)

    def forward(self, length):
        return T(1 << 16, self.mask(length))


attention = Attention()
for request in range(340):
    attention.forward(100 + request)
    time.sleep(0.004)
# KEPT BY mask
