"""The driver's figures for one CUDA device: its identity in the driver's list, and the memory of each process."""
from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from vramtrack import _core

DEFAULT_LIBRARY = "libnvidia-ml.so.1"


class DeviceIdentity(NamedTuple):
    """The framework's information about a CUDA device. None: the framework does not report it (PyTorch before 2.4)."""

    ordinal: int  # its number in CUDA, among the `visible` ones
    visible: int
    name: str
    uuid: Optional[str] = None  # "ffc79498-8ff3-c2dc-3b0d-fafd804516ae"
    pci_bus_id: Optional[str] = None  # "00000000:1d:00.0"


Matched = Tuple[Optional[str], str]  # the driver's UUID, or None and the reason


def match_device(identity: DeviceIdentity, devices: Sequence[Any], environment: Mapping[str, str] = os.environ) -> Matched:
    """Finds CUDA's device among all of the driver's (see _core.DriverDevice). Their numbers differ: CUDA counts the devices that
    CUDA_VISIBLE_DEVICES lists, by default fastest first; the driver counts all of them by PCI address. The match is by UUID, otherwise by
    PCI address, otherwise by CUDA_VISIBLE_DEVICES if that leaves only one device. It is never a guess."""
    found: List[Any] = []
    given = []
    if identity.uuid:
        given.append(f"the UUID {identity.uuid}")
        found = [d for d in devices if d.uuid.partition("-")[2].lower() == identity.uuid.lower()]
    if not found and identity.pci_bus_id:
        given.append(f"the PCI address {identity.pci_bus_id}")
        found = [d for d in devices if not d.parent_uuid and d.pci_bus_id == identity.pci_bus_id.lower()]
    if not given:
        found, why = _by_environment(identity, devices, environment)
        if not found:
            return None, why
    if len(found) != 1:
        return None, f"the driver lists {len(found)} devices with {' and '.join(given)}"
    return _instance_of(found[0], identity, devices, environment) if found[0].is_divided else (found[0].uuid, "")


def _visible_entries(environment: Mapping[str, str], gpus: int) -> Optional[List[str]]:
    """CUDA_VISIBLE_DEVICES as CUDA reads it: up to the first invalid entry. None: the variable is not set."""
    text = environment.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return None
    entries: List[str] = []
    for entry in (part.strip() for part in text.split(",")):
        if not (entry.startswith(("GPU-", "MIG-")) or (entry.isdigit() and int(entry) < gpus)):
            break
        entries.append(entry)
    return entries


def _named(entry: str, devices: Sequence[Any]) -> List[Any]:
    """CUDA also accepts the beginning of a UUID if it identifies a single device."""
    return [d for d in devices if d.uuid.lower().startswith(entry.lower())]


def _by_environment(
    identity: DeviceIdentity, devices: Sequence[Any], environment: Mapping[str, str]
) -> Tuple[List[Any], str]:
    gpus = [d for d in devices if not d.parent_uuid]
    entries = _visible_entries(environment, len(gpus))
    count = len(gpus) if entries is None else len(entries)
    if count != identity.visible:
        return [], f"CUDA_VISIBLE_DEVICES makes {count} devices visible, but PyTorch sees {identity.visible}"
    entry = str(identity.ordinal) if entries is None else entries[identity.ordinal]
    if not entry.isdigit():
        found = _named(entry, devices)
        return (found, "") if len(found) == 1 else ([], f"the driver lists {len(found)} devices whose UUID begins with {entry}")
    if any(d.is_divided for d in gpus) or [d.index for d in gpus] != list(range(len(gpus))):
        return [], f"CUDA_VISIBLE_DEVICES={entry} is ambiguous with MIG or with GPUs that do not answer; set it to UUIDs"
    if environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID" and len({d.name for d in gpus}) > 1:
        return [], "CUDA orders GPUs of different models by speed; set CUDA_DEVICE_ORDER=PCI_BUS_ID"
    gpu = gpus[int(entry)]
    if gpu.name != identity.name:
        return [], f"the driver's GPU {entry} is {gpu.name or 'unnamed'}, but CUDA's is {identity.name}"
    return [gpu], ""


def _instance_of(
    gpu: Any, identity: DeviceIdentity, devices: Sequence[Any], environment: Mapping[str, str]
) -> Matched:
    """The MIG instance, if the framework reports only the GPU to which it belongs."""
    instances = [d for d in devices if d.parent_uuid == gpu.uuid]
    entries = _visible_entries(environment, 0) or []
    if len(entries) == identity.visible and entries[identity.ordinal].startswith("MIG-"):
        instances = _named(entries[identity.ordinal], instances)
    if len(instances) == 1:
        return instances[0].uuid, ""
    return None, f"the MIG instance of {gpu.uuid} is ambiguous; set CUDA_VISIBLE_DEVICES to its UUID"


class ProcessMemory(NamedTuple):
    """One process on the device: its memory, and its growth since it was first seen."""

    pid: int
    used_bytes: int
    growth_bytes: int
    seconds: float


class DriverMemory:
    """Reads the driver's list of processes on a source's device. The first reading opens the driver. `reason` states why there is nothing
    to read. A reading takes from 0.1 ms to a few ms; readings are spaced so that they take at most a thousandth of the time."""

    def __init__(self, identity: Optional[DeviceIdentity], library: Optional[str]) -> None:
        self.uuid: Optional[str] = None
        self.reason = ""
        #: there is a CUDA device and the driver was queried, so a reason is worth reporting
        self.wanted = identity is not None and library is not None
        if identity is None:
            self.reason = "the source is not a CUDA device"
        elif library is None:
            self.reason = "driver_library is None"
        self._identity, self._library = identity, library
        self._driver: Optional[_core.Driver] = None
        self._due_s = float("-inf")
        self._seen: Dict[int, Tuple[float, int, int, float]] = {}  # pid: first time and bytes, last bytes and time

    def read(self, now_s: float, anyway: bool = False) -> Optional[Dict[int, int]]:
        """Bytes by pid. None: no reading is due yet (unless `anyway`), or see `reason`."""
        if self.reason or (now_s < self._due_s and not anyway):
            return None
        begin = time.perf_counter()
        if self._driver is None and not self._open():
            return None
        assert self._driver is not None and self.uuid is not None
        try:
            listed = self._driver.read(self.uuid).processes
        finally:
            self._due_s = now_s + 1000 * (time.perf_counter() - begin)
        used: Dict[int, int] = {}
        for pid, bytes_ in listed:
            if bytes_ is not None:  # a process on two instances counts as one process
                used[pid] = used.get(pid, 0) + bytes_
        self._seen = {
            pid: (*self._seen[pid][:2], bytes_, now_s) if pid in self._seen else (now_s, bytes_, bytes_, now_s)
            for pid, bytes_ in used.items()
        }
        return used

    def _open(self) -> bool:
        assert self._identity is not None and self._library is not None
        try:
            driver = _core.Driver(self._library)
        except RuntimeError as error:
            self.reason = str(error)
            return False
        self.uuid, self.reason = match_device(self._identity, driver.devices())
        self._driver = driver
        return self.uuid is not None

    def others(self) -> List[ProcessMemory]:
        """All other processes on the device, largest growth first."""
        processes = [
            ProcessMemory(pid, last, last - first, end - begin)
            for pid, (begin, first, last, end) in dict(self._seen).items()
            if pid != os.getpid()
        ]
        return sorted(processes, key=lambda process: -process.growth_bytes)
