"""Reads results back through three staging buffers in turn."""
import wgpu

BYTES = 1 << 20
adapter = wgpu.gpu.request_adapter_sync(power_preference="low-power")
device = adapter.request_device_sync()
results = device.create_buffer(size=BYTES, usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC)
staging = {}
for step in range(150):
    if step % 3 not in staging:
        staging[step % 3] = device.create_buffer(size=BYTES, usage=wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.MAP_READ)
    encoder = device.create_command_encoder()
    encoder.copy_buffer_to_buffer(results, 0, staging[step % 3], 0, BYTES)
    device.queue.submit([encoder.finish()])
