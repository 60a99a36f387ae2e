"""Serves image requests. Uploads are registered by the request's number, and only a finished request is removed."""
import numpy as np
import pyopencl as cl

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
flags = cl.mem_flags
open_requests = {}


class Upload:
    def __init__(self, pixels):
        self.buffer = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=pixels)  # LEAK HERE
        self.shape = pixels.shape


def handle(number, pixels):
    open_requests[number] = Upload(pixels)
    answer = cl.Buffer(context, flags.WRITE_ONLY, pixels.nbytes)
    queue.finish()
    answer.release()
    if number % 3:
        del open_requests[number]


pixels = np.zeros((256, 256, 4), dtype=np.uint8)
for number in range(300):
    handle(number, pixels)
