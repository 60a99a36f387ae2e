"""Reads results back through a staging buffer for each step, which goes into a dict by the step's number."""
import wgpu

BYTES = 1 << 20
adapter = wgpu.gpu.request_adapter_sync(power_preference="low-power")
device = adapter.request_device_sync()
results = device.create_buffer(size=BYTES, usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC)
staging = {}
for step in range(150):
    staging[step] = device.create_buffer(size=BYTES, usage=wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.MAP_READ)  # LEAK HERE
    encoder = device.create_command_encoder()
    encoder.copy_buffer_to_buffer(results, 0, staging[step], 0, BYTES)
    device.queue.submit([encoder.finish()])
