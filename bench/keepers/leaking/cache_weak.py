"""A weak dictionary, and a list that makes it strong."""
import time
import weakref
from tensors import T

by_name = weakref.WeakValueDictionary()
strong = []


def load(name):
    found = by_name.get(name)
    if found is None:
        found = by_name[name] = T(1 << 15)
        strong.append(found)
    return found


for number in range(340):
    load("adapter %d" % number)
    T(1 << 16)
    time.sleep(0.004)
# KEPT BY strong
