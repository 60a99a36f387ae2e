"""A queue of at most 8 between a thread that makes batches and the one that uses them."""
import queue
import threading
import time
from tensors import T, context, cuda

batches = queue.Queue(8)


def produce():
    cuda.cuCtxSetCurrent(context)
    for _ in range(300):
        batches.put(T(1 << 15))
    batches.put(None)


threading.Thread(target=produce).start()
while (batch := batches.get()) is not None:
    T(1 << 14, batch)
    time.sleep(0.004)
