"""Four threads with scratch memory of their own."""
import threading
import time
from tensors import T, context, cuda


def work(scratch):
    cuda.cuCtxSetCurrent(context)
    local = threading.local()
    local.scratch = T(scratch)
    for _ in range(120):
        T(1 << 14, T(1 << 13))
        time.sleep(0.008)


threads = [threading.Thread(target=work, args=(1 << (15 + i),)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
