"""A program for `vramtrack attach`: a training loop on a stand-in for PyTorch, with a list that keeps the loss of every step.

    attached.py MODULES MODE     MODULES: the folder of the package vramtrack, of which only what needs nothing else is imported

MODE: allows (it calls allow_attach), asked (as at the import of the package), plain (no package), records (it records itself),
no_torch, cpu (PyTorch that uses no GPU), hostile (names of $HOSTILE). It says "ready", and answers each line with what its recorder is set to.
"""
import os
import pathlib
import select
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recorder import LEAK_STACK, MODEL_STACK, Recorder  # noqa: E402

MIB = 2**20
modules, mode = sys.argv[1:]


class Tensor:
    is_cuda = True
    device = types.SimpleNamespace(index=0)

    def __init__(self, address):
        self.address, self.grad_fn = address, "SumBackward0"

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=lambda: self.address, nbytes=lambda: MIB)


class Torch(types.ModuleType):
    def __init__(self):
        super().__init__("torch")
        self.__version__ = "2.9.0"
        self.Tensor = Tensor
        self.recording = None
        self.allocator = Recorder()
        memory = types.SimpleNamespace(_record_memory_history=self.record, _snapshot=self.snapshot)
        self.cuda = types.SimpleNamespace(memory=memory, is_initialized=lambda: mode != "cpu")
        self._C = types.SimpleNamespace(_cuda_isHistoryEnabled=lambda: self.recording is not None)

    def record(self, enabled=None, **options):
        self.recording = enabled

    def snapshot(self):
        """The steps of a tenth of a second have passed."""
        for _ in range(10):
            slot = self.allocator.allocate(MIB, LEAK_STACK)
            (next(iter(caches.values())) if caches else losses).append(Tensor(0x7f0000000000 + slot * 2 * MIB))
            for step in [self.allocator.allocate(MIB, MODEL_STACK) for _ in range(20)]:
                self.allocator.free(step)
        return self.allocator.snapshot()


losses = []
caches = {}
torch = Torch()
if mode == "hostile":
    caches[os.environ["HOSTILE"]] = []
    sys.modules["__main__"].__file__ = os.environ["HOSTILE"]
if mode != "no_torch":
    sys.modules["torch"] = torch
if mode == "records":
    torch.record("all")
if mode != "plain":
    package = types.ModuleType("vramtrack")
    package.__path__ = [modules]
    sys.modules["vramtrack"] = package
    from vramtrack import attach_socket

    if mode == "asked":
        attach_socket.open_if_asked()
    else:
        attach_socket.allow_attach()
print("ready", flush=True)
while True:
    # Not in readline(): the main thread must keep executing lines of Python, like a training loop.
    if select.select([sys.stdin], [], [], 0.01)[0]:
        if not sys.stdin.readline():
            break
        print(torch.recording, flush=True)
