"""Two batches in flight."""
import collections
import time
from tensors import T


def batches():
    for _ in range(300):
        yield T(1 << 17)


def prefetched(source):
    ready = collections.deque()
    for batch in source:
        ready.append(batch)
        if len(ready) > 2:
            yield ready.popleft()
    yield from ready


for batch in prefetched(batches()):
    T(1 << 15, batch)
    time.sleep(0.004)
