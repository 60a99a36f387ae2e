"""The one cache of a program, made at the first use."""
import time
from tensors import T


class Features:
    _instance = None

    def __new__(cls):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance.store = {}
        return cls._instance

    def get(self, key):
        return self.store.setdefault(key, T(1 << 14))


for number in range(350):
    Features().get(number)
    T(1 << 16)
    time.sleep(0.004)
# KEPT BY store
