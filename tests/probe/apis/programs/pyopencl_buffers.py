"""pyopencl: buffers that live, buffers that are collected, images, and a full device."""
import gc
import sys

import numpy as np
import pyopencl as cl

MIB = 1 << 20
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
keep = []


def leak():
    keep.append(cl.Buffer(context, cl.mem_flags.READ_WRITE, 3 * MIB))


def buffers():
    for _ in range(10):
        cl.Buffer(context, cl.mem_flags.READ_WRITE, MIB)  # collected at once
        leak()
    whole = cl.Buffer(context, cl.mem_flags.READ_WRITE, 8 * MIB)
    part = whole.get_sub_region(0, MIB)
    del whole
    keep.append(part)
    released = cl.Buffer(context, cl.mem_flags.READ_WRITE, 16 * MIB)
    released.release()


def arrays():
    import pyopencl.array
    import pyopencl.tools
    pool = pyopencl.tools.MemoryPool(pyopencl.tools.ImmediateAllocator(queue))
    for _ in range(5):
        array = pyopencl.array.zeros(queue, (1024, 256), np.float32, allocator=pool)  # 1 MiB, of the pool
        array += 1
    assert float(pyopencl.array.sum(array).get()) == 1024 * 256
    print("pool", pool.managed_bytes)
    keep.append((pool, array))


def full():
    first = cl.Buffer(context, cl.mem_flags.READ_WRITE, 6 * MIB)
    try:
        cl.Buffer(context, cl.mem_flags.READ_WRITE, 6 * MIB)
        print("no error")
    except cl.MemoryError as error:
        print(type(error).__name__, error.code)
    first.release()
    second = cl.Buffer(context, cl.mem_flags.READ_WRITE, 6 * MIB)
    print("again", second.size)


{"buffers": buffers, "arrays": arrays, "full": full}[sys.argv[1]]()
gc.collect()
print("live", sum(one.size for one in keep if isinstance(one, cl.Buffer)), flush=True)
sys.stdout.flush()
import os  # noqa: E402
os._exit(0)  # what lives now is what the ring shows: no collection at exit
