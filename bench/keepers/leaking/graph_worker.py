"""A worker thread with all outputs of its life in a local list."""
import threading
import time
from tensors import T, context, cuda


def worker(requests):
    cuda.cuCtxSetCurrent(context)
    outputs = []
    for number in range(requests):
        hidden = T(1 << 16)
        outputs.append(T(1 << 12, hidden))
        time.sleep(0.004)


thread = threading.Thread(target=worker, args=(350,))
thread.start()
thread.join()
# KEPT BY outputs
