"""Renders thumbnails. The gallery keeps a page of twelve; those that have scrolled away are destroyed."""
from collections import deque

import wgpu

adapter = wgpu.gpu.request_adapter_sync(power_preference="low-power")
device = adapter.request_device_sync()
gallery = deque()


def make_thumbnail(width, height):
    return device.create_texture(
        size=(width, height, 1), format="rgba8unorm", usage=wgpu.TextureUsage.TEXTURE_BINDING | wgpu.TextureUsage.COPY_DST
    )


for number in range(120):
    thumbnail = make_thumbnail(512, 512)
    device.queue.write_texture({"texture": thumbnail}, bytes(512 * 512 * 4), {"bytes_per_row": 2048}, (512, 512, 1))
    device.queue.submit([])  # what is written and destroyed is released by the next submission
    gallery.append(thumbnail)
    if len(gallery) > 12:
        gallery.popleft().destroy()
