"""What keeper.cpp does, in Python: keeper.py LIBRARY"""
import ctypes
import sys
import threading

driver = ctypes.CDLL(sys.argv[1])
kept = []


class Model:
    def forward(self, size):
        address = ctypes.c_ulonglong()
        driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))  # LINE forward
        return address


def train(steps):
    model = Model()
    for _ in range(steps):
        kept.append(model.forward(1 << 20))
        driver.cuMemFree_v2(model.forward(4 << 20))


print("ready", flush=True)
for line in sys.stdin:
    thread = threading.Thread(target=train, args=(int(line[1:]),))
    thread.start()
    thread.join()
    print("done", flush=True)
