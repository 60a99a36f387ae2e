"""A cache that was to evict the oldest and never does, since the limit is compared with the wrong length."""
import collections
import time
from tensors import T


class LruCache:
    def __init__(self, limit):
        self.limit, self.entries = limit, collections.OrderedDict()

    def get(self, key, make):
        if key not in self.entries:
            self.entries[key] = make()
        self.entries.move_to_end(key)
        if len(key) > self.limit:
            self.entries.popitem(last=False)
        return self.entries[key]


cache = LruCache(64)
for number in range(350):
    cache.get("prompt %d" % number, lambda: T(1 << 14))
    T(1 << 16)
    time.sleep(0.004)
# KEPT BY entries
