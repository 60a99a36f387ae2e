"""Two workers, each with a list of its own kind; the main thread waits for them."""
import threading
import time
from tensors import T, context, cuda


def decode():
    cuda.cuCtxSetCurrent(context)
    tokens = []
    for _ in range(400):
        tokens.append(T(1 << 12))
        T(1 << 16)
        time.sleep(0.004)


def prefetch():
    cuda.cuCtxSetCurrent(context)
    batches = []
    for _ in range(400):
        batches.append(T(1 << 14))
        T(1 << 16)
        time.sleep(0.004)


threads = [threading.Thread(target=work) for work in (decode, prefetch)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
# KEPT BY tokens
# KEPT BY batches
