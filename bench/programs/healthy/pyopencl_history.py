"""Simulates waves. Only the last two states are needed."""
import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
velocity = cl_array.to_device(queue, np.zeros((256, 256), dtype=np.float32))
before = now = velocity
for step in range(60):
    pressure = cl_array.zeros(queue, (256, 256), np.float32)
    before, now = now, pressure
    queue.finish()
