"""wgpu: buffers and textures that live, that are destroyed, that are dropped, and a full device."""
import gc
import os
import pathlib
import resource
import sys

import wgpu

MIB = 1 << 20
adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
if adapter is None:
    print("no Vulkan device")
    sys.exit(77)
device = adapter.request_device_sync()
keep = []
USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_DST


def buffer(size):
    return device.create_buffer(size=size, usage=USAGE)


def settle():
    gc.collect()
    device.queue.submit([])
    device._poll_wait()  # the public call, on_submitted_work_done_sync, fails in wgpu 0.32


def leak():
    keep.append(device.create_buffer(size=3 * MIB, usage=USAGE))


def buffers():
    for _ in range(10):
        buffer(MIB).destroy()
        leak()
        buffer(2 * MIB)  # dropped
    keep.append(device.create_texture(size=(512, 512, 1), format="rgba8unorm", usage=wgpu.TextureUsage.COPY_DST))
    settle()


def full():
    def attempt(size):
        try:
            return buffer(size)
        except Exception as error:  # which, is what the test asks
            print(type(error).__name__, " / ".join(line.strip() for line in str(error).split("\n") if line.strip()))
            return None
    held = keep
    held += [attempt(300 * MIB) for _ in range(3)]
    held[0].destroy()
    settle()
    held.append(attempt(300 * MIB))
    print("again", held[-1] is not None)



def full_without_probe():
    """The driver itself finds no more memory."""
    buffer(MIB)  # whatever the first one takes besides
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 700 * MIB,) * 2)
    full()


{"buffers": buffers, "full": full, "full_without_probe": full_without_probe}[sys.argv[1]]()
print("done", flush=True)
os._exit(0)
