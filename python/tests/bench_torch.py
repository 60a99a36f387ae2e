"""PyTorch as the tests of test_on_torch.py see it: the real one in the lane (tests/torch), a stand-in elsewhere.

Both have a GPU of 80 GiB and one of 40 GiB. The stand-in has the arithmetic of the real allocator for blocks of 10 MiB and more:
each has its own segment, in steps of 2 MiB, which stays reserved when the block is freed.
"""
import os
import sys
import weakref

from fake_torch import GIB, FakeTorch, nested

IS_REAL = "VRAMTRACK_TORCH_LANE" in os.environ
STEP = 2 * 2**20
CONTEXT = 300 * 2**20


class Tensor:
    pass


class Device:
    """The counters of one device of the stand-in."""

    def __init__(self):
        self.allocated = self.reserved = self.peak_allocated = self.peak_reserved = self.blocks = 0

    def allocate(self, size):
        self.allocated += size
        self.reserved = max(self.reserved, -(-self.allocated // STEP) * STEP)
        self.blocks += 1
        self.peak_allocated, self.peak_reserved = max(self.peak_allocated, self.allocated), max(self.peak_reserved, self.reserved)

    def free(self, size):
        self.allocated -= size
        self.blocks -= 1

    def stats(self):
        return nested(self.allocated, self.reserved, self.peak_allocated, self.peak_reserved, self.allocated, 0, self.blocks)


class StandIn(FakeTorch):
    """FakeTorch with memory that can be taken."""

    uint8 = "uint8"

    def __init__(self):
        super().__init__()
        self.devices = [Device(), Device()]
        self.used = [False, False]
        self.cuda.memory_stats_as_nested_dict = lambda index: self.devices[index].stats() if self.used[index] else {}
        self.cuda.mem_get_info = lambda index: (self.properties[index].total_memory - self.devices[index].reserved - CONTEXT * self.used[index],
                                                self.properties[index].total_memory)  # fmt: skip
        self.cuda.reset_peak_memory_stats = self._reset_peak
        self.cuda.empty_cache = self._empty_cache
        self.cuda.set_device = lambda index: setattr(self, "current", index)
        self.cuda.get_per_process_memory_fraction = self._fraction
        self.cuda.OutOfMemoryError = type("OutOfMemoryError", (RuntimeError,), {})

    def empty(self, size, dtype=None, device="cuda"):
        index = int(device.partition(":")[2] or self.current)
        memory, capacity = self.devices[index], self.properties[index].total_memory
        if memory.allocated + size > capacity:
            for observer in self.observers:
                observer(index, size, capacity, capacity - memory.reserved)
            raise self.cuda.OutOfMemoryError("CUDA out of memory")
        self.used[index] = True
        tensor = Tensor()
        memory.allocate(size)
        weakref.finalize(tensor, memory.free, size)
        return tensor

    def _fraction(self, index):
        self.current = index  # as in PyTorch 2.6
        return 1.0

    def _reset_peak(self, index):
        memory = self.devices[index]
        memory.peak_allocated, memory.peak_reserved = memory.allocated, memory.reserved

    def _empty_cache(self):
        for memory in self.devices:
            memory.reserved = -(-memory.allocated // STEP) * STEP


def open_torch(monkeypatch):
    """The module, as `import torch` gives it from now on."""
    if not IS_REAL:
        monkeypatch.setitem(sys.modules, "torch", StandIn())
    import torch

    assert torch.cuda.get_device_properties(1).total_memory == 40 * GIB
    return torch
