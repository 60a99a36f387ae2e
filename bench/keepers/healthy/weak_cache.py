"""Values by name for as long as somebody uses them."""
import time
import weakref
from tensors import T

by_name = weakref.WeakValueDictionary()


def load(name):
    found = by_name.get(name)
    if found is None:
        found = by_name[name] = T(1 << 15)
    return found


in_use = []
for number in range(320):
    in_use.append(load("adapter %d" % number))
    del in_use[:-4]
    time.sleep(0.004)
