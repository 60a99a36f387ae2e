"""PyTorch memory snapshots made without PyTorch: a caching allocator that records what it does, as torch's does."""
from sandbox import MIB

STEP = {"name": "train_step", "filename": "/home/me/project/train.py", "line": 88}
FORWARD = {"name": "forward", "filename": "/home/me/project/model.py", "line": 54}
TORCH = {"name": "linear", "filename": "/usr/lib/python3/site-packages/torch/nn/functional.py", "line": 2000}
NATIVE = {"name": "c10::cuda::CUDACachingAllocator::malloc", "filename": "CUDACachingAllocator.cpp", "line": 0}
RUN = {"name": "<module>", "filename": "/home/me/project/run.py", "line": 7}
LEAK_STACK = [NATIVE, TORCH, STEP, RUN]
MODEL_STACK = [NATIVE, TORCH, FORWARD, RUN]


class Recorder:
    """A caching allocator that remembers what it did, as torch's: one segment of 1 GiB, blocks at 2 MiB each."""

    def __init__(self, device=0):
        self.device, self.live, self.trace, self.time_us = device, {}, [], 1_700_000_000_000_000

    def event(self, action, address, size, frames, **more):
        self.time_us += 100
        self.trace.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": self.time_us,
                           "compile_context": "N/A", "user_metadata": "", "frames": frames, **more})

    def allocate(self, size, frames):
        slot = next(n for n in range(512) if n not in self.live)
        self.live[slot] = (size, frames)
        self.event("alloc", 0x7f0000000000 + slot * 2 * MIB, size, frames)
        return slot

    def free(self, slot):
        size, frames = self.live.pop(slot)
        for action in ("free_requested", "free_completed"):
            self.event(action, 0x7f0000000000 + slot * 2 * MIB, size, frames)

    def oom(self, size, device_free):
        self.event("oom", 0, size, LEAK_STACK)
        del self.trace[-1]["addr"]
        self.trace[-1]["device_free"] = device_free

    def snapshot(self, ring=10_000):
        blocks, at, base = [], 0, 0x7f0000000000
        for slot, (size, frames) in sorted(self.live.items()):
            if slot * 2 * MIB > at:
                blocks.append({"address": base + at, "size": slot * 2 * MIB - at, "requested_size": 1, "state": "inactive", "frames": []})
            blocks.append({"address": base + slot * 2 * MIB, "size": 2 * MIB, "requested_size": size, "state": "active_allocated",
                           "frames": frames})
            at = (slot + 1) * 2 * MIB
        total = 1024 * MIB
        blocks.append({"address": base + at, "size": total - at, "requested_size": 1, "state": "inactive", "frames": []})
        segment = {"device": self.device, "address": base, "total_size": total, "allocated_size": len(self.live) * 2 * MIB,
                   "active_size": len(self.live) * 2 * MIB, "requested_size": 0, "stream": 0, "segment_type": "large",
                   "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}
        return {"segments": [segment], "device_traces": [list(self.trace[-ring:])],
                "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False}, "external_annotations": []}


def leaking(steps, keep=MIB, oom=0):
    """A training run whose every step keeps a tensor; a model of eight blocks; activations that come and go."""
    r = Recorder()
    for _ in range(8):
        r.allocate(2 * MIB - 512, MODEL_STACK)
    for _ in range(steps):
        if keep:
            r.allocate(keep, LEAK_STACK)
        activations = [r.allocate(MIB, MODEL_STACK) for _ in range(60)]
        for slot in activations:
            r.free(slot)
    if oom:
        r.oom(oom, 10 * MIB)
    return r
