"""TorchSource on a stand-in for torch: what it asks of it, and what it leaves behind."""
import sys
import types

import pytest

from vramtrack.torch_source import TorchSource


class FakeTorch(types.ModuleType):
    def __init__(self):
        super().__init__("torch")
        self.recording = None
        self.history = []
        self.observers = []
        self.device = lambda text: types.SimpleNamespace(index=int(text.split(":")[1]))
        self.cuda = types.SimpleNamespace(
            current_device=lambda: 0,
            device_count=lambda: 2,
            get_device_name=lambda index: "Fake H200",
            memory_stats_as_nested_dict=lambda index: {},
            memory=types.SimpleNamespace(_record_memory_history=self.record, _snapshot=lambda: {"segments": [], "device_traces": [[], []]}),
        )
        self._C = types.SimpleNamespace(
            _cuda_isHistoryEnabled=lambda: self.recording is not None, _cuda_attach_out_of_memory_observer=self.observers.append
        )

    def record(self, enabled=None, **_):
        self.recording = enabled
        self.history.append(enabled)


@pytest.fixture
def torch(monkeypatch):
    fake = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


def test_nested_recordings_end_with_the_outermost(torch):
    source = TorchSource(0)
    source.start_trace()
    source.start_trace()
    source.stop_stacks()
    assert torch.recording == "all"
    source.stop_stacks()
    assert torch.history == ["all", None]


def test_a_recording_of_somebody_else_goes_on(torch):
    torch.recording = "state"
    source = TorchSource(0)
    source.start_stacks()
    source.stop_stacks()
    assert torch.recording == "state" and torch.history == []
    torch.recording = None
    source.start_stacks()
    source.stop_stacks()
    assert torch.history == ["state", None]


def test_an_oom_of_another_device_is_not_this_ones(torch):
    seen = []
    detach = TorchSource(1).observe_oom(lambda asked, free: seen.append((asked, free)))
    for observer in torch.observers:
        observer(0, 1, 2, 3)
        observer(1, 4, 5, 6)
    assert seen == [(4, 6)]
    detach()
    torch.observers[0](1, 4, 5, 6)
    assert len(seen) == 1


def test_a_device_that_is_not_there(torch):
    with pytest.raises(ValueError, match="there is no cuda:7: 2 devices are visible"):
        TorchSource(7)
