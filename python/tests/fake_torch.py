"""A stand-in for torch: the functions of torch.cuda that the package asks, with an allocator that a test sets by hand."""
import types

MIB, GIB = 2**20, 2**30
#: a machine in the words of the fake NVML library's scenario (tests/fake/nvml/README.md)
GPUS = ('gpu 0 uuid=GPU-aa0 name="Fake H200" pci=00000000:1D:00.0 total=80G used=1G',
        'gpu 1 uuid=GPU-bb1 name="Fake H200" pci=00000000:2E:00.0 total=80G used=2G')  # fmt: skip


def nested(allocated, reserved, peak_allocated, peak_reserved, active, inactive_split, allocations):
    """torch.cuda.memory_stats_as_nested_dict(), of what is read of it."""
    return {
        "allocated_bytes": {"all": {"current": allocated, "peak": peak_allocated}},
        "reserved_bytes": {"all": {"current": reserved, "peak": peak_reserved}},
        "active_bytes": {"all": {"current": active, "peak": active}},
        "inactive_split_bytes": {"all": {"current": inactive_split, "peak": inactive_split}},
        "allocation": {"all": {"current": allocations, "peak": allocations}},
    }


class FakeTorch(types.ModuleType):
    """`calls`: what was asked of it that changes something."""

    def __init__(self):
        super().__init__("torch")
        self.__version__ = "2.9.0+cu128"
        self.recording = None
        self.history = []
        self.observers = []
        self.calls = []
        self.current = 0
        self.stats = {}
        self.traces = [[], []]
        self.taken = {"segments": [], "device_traces": self.traces}
        self.properties = [types.SimpleNamespace(total_memory=80 * GIB), types.SimpleNamespace(total_memory=40 * GIB)]
        self.device = lambda text: types.SimpleNamespace(index=int(text.split(":")[1]) if ":" in text else None)
        self.cuda = types.SimpleNamespace(
            is_available=lambda: True,
            current_device=lambda: self.current,
            device_count=lambda: len(self.properties),
            get_device_name=lambda index: "Fake H200",
            get_device_properties=lambda index: self.properties[index],
            mem_get_info=lambda index: (60 * GIB, self.properties[index].total_memory),
            memory_stats_as_nested_dict=lambda index: self.stats.get(index, {}),
            reset_peak_memory_stats=lambda index: self.calls.append(("reset_peak", index)),
            synchronize=lambda index: self.calls.append(("synchronize", index)),
            empty_cache=lambda: self.calls.append("empty_cache"),
            memory=types.SimpleNamespace(_record_memory_history=self.record, _snapshot=lambda: self.taken),
        )
        self._C = types.SimpleNamespace(
            _cuda_isHistoryEnabled=lambda: self.recording is not None, _cuda_attach_out_of_memory_observer=self.observers.append
        )

    def record(self, enabled=None, **options):
        self.recording = enabled
        self.history.append((enabled, options.get("context"), options.get("stacks")) if enabled else None)
