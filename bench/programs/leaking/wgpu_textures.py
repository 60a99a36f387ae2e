"""Renders thumbnails. Each has its own texture, and the gallery keeps those that have scrolled away."""
import wgpu

adapter = wgpu.gpu.request_adapter_sync(power_preference="low-power")
device = adapter.request_device_sync()
gallery = []


def make_thumbnail(width, height):
    return device.create_texture(  # LEAK HERE
        size=(width, height, 1), format="rgba8unorm", usage=wgpu.TextureUsage.TEXTURE_BINDING | wgpu.TextureUsage.COPY_DST
    )


for number in range(120):
    thumbnail = make_thumbnail(512, 512)
    device.queue.write_texture({"texture": thumbnail}, bytes(512 * 512 * 4), {"bytes_per_row": 2048}, (512, 512, 1))
    gallery.append(thumbnail)
