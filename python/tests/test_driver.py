"""Which of the driver's devices is CUDA's, and who holds how much there."""
import os
import types

import pytest
from fake_torch import GIB, GPUS, MIB

import vramtrack
from vramtrack import _core
from vramtrack.driver import DeviceIdentity, DriverMemory, match_device

H200, L4 = "NVIDIA H200", "NVIDIA L4"


def gpu(index, uuid, name=H200, pci="", is_divided=False, parent_uuid=""):
    return types.SimpleNamespace(
        index=index, uuid=uuid, name=name, pci_bus_id=pci or f"00000000:{16 + index:02x}:00.0", is_divided=is_divided, parent_uuid=parent_uuid
    )


def instance(parent, uuid):
    return gpu(parent.index, uuid, parent.name, parent.pci_bus_id, parent_uuid=parent.uuid)


TWO = [gpu(0, "GPU-aa0"), gpu(1, "GPU-bb1")]
MIXED = [gpu(0, "GPU-aa0", L4), gpu(1, "GPU-bb1", H200)]
DIVIDED = gpu(0, "GPU-aa0", is_divided=True)
MIG = [DIVIDED, instance(DIVIDED, "MIG-c1"), instance(DIVIDED, "MIG-c2"), gpu(1, "GPU-bb1")]


def old(ordinal, visible, name=H200):
    """As PyTorch before 2.4 reports it."""
    return DeviceIdentity(ordinal, visible, name)


@pytest.mark.parametrize("identity, devices, environment, expected", [
    # By UUID, whatever the ordinal and the variables say.
    (DeviceIdentity(0, 1, H200, "BB1"), TWO, {"CUDA_VISIBLE_DEVICES": "0"}, "GPU-bb1"),
    (DeviceIdentity(0, 1, H200, "c2"), MIG, {}, "MIG-c2"),
    (DeviceIdentity(0, 1, H200, "dd9"), TWO, {}, "0 devices with the UUID dd9"),
    (DeviceIdentity(0, 2, H200, "dd9", "00000000:11:00.0"), TWO, {}, "GPU-bb1"),
    # By PCI address.
    (DeviceIdentity(0, 2, H200, None, "00000000:11:00.0"), TWO, {}, "GPU-bb1"),
    (DeviceIdentity(0, 2, H200, None, "00000001:11:00.0"), TWO, {}, "0 devices with the PCI address 00000001:11:00.0"),
    # A GPU in MIG mode is never CUDA's device: its instance is.
    (DeviceIdentity(0, 1, H200, "aa0"), MIG, {"CUDA_VISIBLE_DEVICES": "MIG-c2"}, "MIG-c2"),
    (DeviceIdentity(0, 1, H200, "aa0"), MIG, {"CUDA_VISIBLE_DEVICES": "0"}, "the MIG instance of GPU-aa0"),
    (DeviceIdentity(0, 1, H200, "aa0"), MIG[:2], {}, "MIG-c1"),
    (DeviceIdentity(0, 1, H200, None, "00000000:10:00.0"), MIG, {"CUDA_VISIBLE_DEVICES": "MIG-c1"}, "MIG-c1"),
    # By the variables, where they leave no doubt.
    (old(1, 2), TWO, {}, "GPU-bb1"),
    (old(0, 1), TWO, {"CUDA_VISIBLE_DEVICES": "1"}, "GPU-bb1"),
    (old(0, 2), TWO, {"CUDA_VISIBLE_DEVICES": " 1, 0"}, "GPU-bb1"),
    (old(0, 1), TWO, {"CUDA_VISIBLE_DEVICES": "1,-1,0"}, "GPU-bb1"),
    (old(0, 1), TWO, {"CUDA_VISIBLE_DEVICES": "1,7,0"}, "GPU-bb1"),
    (old(0, 1), TWO, {"CUDA_VISIBLE_DEVICES": "GPU-b"}, "GPU-bb1"),
    (old(0, 1), [*TWO, gpu(2, "GPU-bb2")], {"CUDA_VISIBLE_DEVICES": "GPU-b"}, "2 devices whose UUID begins with GPU-b"),
    (old(1, 2), MIG, {"CUDA_VISIBLE_DEVICES": "GPU-bb1,MIG-c2"}, "MIG-c2"),
    (old(0, 1), TWO, {}, "makes 2 devices visible, but PyTorch sees 1"),
    (old(0, 2), TWO, {"CUDA_VISIBLE_DEVICES": "1"}, "makes 1 devices visible, but PyTorch sees 2"),
    # CUDA's own order is by speed.
    (old(0, 2), MIXED, {}, "set CUDA_DEVICE_ORDER=PCI_BUS_ID"),
    (old(0, 2), MIXED, {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, "set CUDA_DEVICE_ORDER=PCI_BUS_ID"),
    (old(0, 2, L4), MIXED, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, "GPU-aa0"),
    (old(0, 2), MIXED, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, "GPU 0 is NVIDIA L4, but CUDA's is NVIDIA H200"),
    # Numbers identify nothing with MIG, nor where a GPU is missing in the driver's list.
    (old(0, 2), MIG, {}, "is ambiguous with MIG or with GPUs that do not answer"),
    (old(0, 1), [gpu(1, "GPU-bb1")], {}, "is ambiguous with MIG or with GPUs that do not answer"),
    (old(0, 1), [], {}, "makes 0 devices visible"),
])  # fmt: skip
def test_which_device_it_is(identity, devices, environment, expected):
    uuid, reason = match_device(identity, devices, environment)
    if uuid is None:
        assert expected in reason
    else:
        assert uuid == expected and reason == ""


def test_what_the_driver_lists(library):
    driver = _core.Driver(library(*GPUS, "process gpu=1 pid=4242 list=C used=300M", "process gpu=1 pid=77 list=C used=none"))
    first, second = driver.devices()
    assert (first.uuid, first.name, first.pci_bus_id, first.index, first.is_divided) == ("GPU-aa0", "Fake H200", "00000000:1d:00.0", 0, False)
    assert (second.index, second.parent_uuid) == (1, "")
    reading = driver.read("GPU-bb1")
    assert (reading.total_bytes, reading.used_bytes) == (80 * GIB, 2 * GIB + 300 * MIB)
    assert reading.processes == [(77, None), (4242, 300 * MIB)]
    with pytest.raises(ValueError, match="has not listed a device GPU-cc2"):
        driver.read("GPU-cc2")
    with pytest.raises(RuntimeError, match="no-such-library"):
        _core.Driver("/no-such-library.so")


def test_mig_instances(library):
    lines = ("gpu 0 uuid=GPU-aa0 total=80G used=1G", "mig gpu=0 gi=1 ci=0 uuid=MIG-c1 total=10G used=100M",
             "mig gpu=0 gi=2 ci=0 uuid=MIG-c2 total=20G used=200M", "process gpu=0 pid=4242 list=C used=300M gi=1 ci=0",
             "process gpu=0 pid=77 list=C used=50M gi=2 ci=0")  # fmt: skip
    driver = _core.Driver(library(*lines))
    assert [(d.uuid, d.parent_uuid, d.is_divided) for d in driver.devices()] == [
        ("GPU-aa0", "", True), ("MIG-c1", "GPU-aa0", False), ("MIG-c2", "GPU-aa0", False)]  # fmt: skip
    assert driver.read("MIG-c1").processes == [(4242, 300 * MIB)]
    assert driver.read("MIG-c2").processes == [(77, 50 * MIB)] and driver.read("MIG-c2").total_bytes == 20 * GIB


def test_a_device_that_does_not_answer(library):
    driver = _core.Driver(library(*GPUS, "error call=memory gpu=1 code=15", "error call=compute gpu=1 code=15"))
    driver.devices()
    with pytest.raises(ValueError, match="GPU-bb1 does not answer: .*15"):
        driver.read("GPU-bb1")


def test_a_watch_has_its_own_gpus_figure(library, torch):
    path = library(*GPUS, "process gpu=0 pid=self list=C used=900M", "process gpu=1 pid=self list=C used=300M")
    watch = vramtrack.Watch(driver_library=path)
    assert watch.sample().process_used == 300 * MIB and watch.errors == []
    assert watch.driver.uuid == "GPU-bb1"


def test_without_a_certain_match_there_is_no_figure(library, torch):
    torch.properties[0].uuid = "dd9"
    watch = vramtrack.Watch(driver_library=library(*GPUS, "process gpu=0 pid=self list=C used=900M"))
    assert watch.sample().process_used is None and watch.sample().process_used is None
    assert watch.errors == ["the driver has no process figures: the driver lists 0 devices with the UUID dd9"]
    assert "0 devices with the UUID dd9" in watch.verdict("process_used").because


def test_without_a_driver_the_watch_goes_on(torch, device):
    watch = vramtrack.Watch(vramtrack.default_source("cuda:0"), driver_library="/no-such-library.so")
    assert watch.sample().process_used is None and "no-such-library" in watch.errors[0]
    assert vramtrack.Watch(vramtrack.default_source("cuda:0"), driver_library=None).driver.reason == "driver_library is None"
    simulated = vramtrack.Watch(device)
    simulated.sample()
    assert simulated.driver.reason == "the source is not a CUDA device" and simulated.errors == []


def test_a_driver_that_stops_answering(library, torch):
    lines = (*GPUS, "process gpu=1 pid=self list=C used=300M", "error call=memory gpu=1 code=15 from=2", "error call=compute gpu=1 code=15 from=2")
    watch = vramtrack.Watch(driver_library=library("clock env", *lines), clock=iter(range(0, 10**6, 1000)).__next__)
    os.environ["VRAMTRACK_FAKE_NVML_TICK"] = "0"
    try:
        assert watch.sample().process_used == 300 * MIB
        os.environ["VRAMTRACK_FAKE_NVML_TICK"] = "2"
        assert watch.sample().process_used is None and "driver: GPU-bb1 does not answer" in watch.errors[0]
        os.environ["VRAMTRACK_FAKE_NVML_TICK"] = "0"
        assert watch.sample().process_used == 300 * MIB
    finally:
        del os.environ["VRAMTRACK_FAKE_NVML_TICK"]


class Readings:
    """In place of the library: what it lists at each reading."""

    def __init__(self, *readings):
        self.readings = list(readings)

    def read(self, uuid):
        return types.SimpleNamespace(processes=self.readings.pop(0))


def test_growth_of_the_others():
    memory = DriverMemory(DeviceIdentity(0, 1, H200), "any")
    memory.uuid, memory._driver = "GPU-bb1", Readings(
        [(os.getpid(), 900), (5, 100), (6, None), (7, 50), (8, 10)], [(5, 400), (7, 40), (8, 10), (8, 5)], [(5, 700), (9, 1)])  # fmt: skip
    assert memory.read(0) == {os.getpid(): 900, 5: 100, 7: 50, 8: 10}
    assert memory.read(1e-9) is None, "a reading has its time, and no more"
    assert memory.read(1000)[8] == 15
    assert memory.others() == [(5, 400, 300, 1000), (8, 15, 5, 1000), (7, 40, -10, 1000)]
    memory.read(2000)
    assert memory.others() == [(5, 700, 600, 2000), (9, 1, 0, 0)], "who has gone is forgotten"
