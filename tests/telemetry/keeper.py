"""What keeper.cpp does, in Python: keeper.py LIBRARY. kN: N steps; oN: N MiB by what is in a file of PyTorch's optimizers;
tN: N steps of a thread whose state an extension keeps, too."""
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


# A function of a file that does not exist here. Its name marks the memory as the state of an optimizer.
adam = {}
exec(compile("def _init_group(model, size):\n    return model.forward(size)\n", "/venv/site-packages/torch/optim/adam.py", "exec"), adam)


def optimize(mebibytes):
    for _ in range(mebibytes):
        kept.append(adam["_init_group"](Model(), 1 << 20))


def extended(steps):
    """As pybind11 does with threads that it made."""
    libc, state, key = ctypes.CDLL(None), ctypes.pythonapi.PyThreadState_Get, ctypes.c_uint()
    state.restype = ctypes.c_void_p
    libc.pthread_key_create(ctypes.byref(key), None)
    libc.pthread_setspecific(key, ctypes.c_void_p(state()))
    train(steps)


print("ready", flush=True)
for line in sys.stdin:
    thread = threading.Thread(target={"k": train, "o": optimize, "t": extended}[line[0]], args=(int(line[1:]),))
    thread.start()
    thread.join()
    print("done", flush=True)
