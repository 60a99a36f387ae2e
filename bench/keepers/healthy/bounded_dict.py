"""A cache with a limit of 40 entries, the oldest of which goes."""
import collections
import time
from tensors import T


class Cache:
    def __init__(self, limit):
        self.limit, self.entries = limit, collections.OrderedDict()

    def get(self, key):
        if key in self.entries:
            self.entries.move_to_end(key)
            return self.entries[key]
        self.entries[key] = T(1 << 14)
        if len(self.entries) > self.limit:
            self.entries.popitem(last=False)
        return self.entries[key]


cache = Cache(40)
for number in range(360):
    cache.get((number * 7919) % 211)
    T(1 << 16)
    time.sleep(0.004)
