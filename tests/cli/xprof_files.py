"""Files of XProf, written field by field: a space of planes (*.xplane.pb), and the memory profile that its tool makes of one.

    python3 tests/cli/xprof_files.py FOLDER     writes gpu.xplane.pb, memory_profile.pb, memory_profile.json and sampled.json

The numbers of the fields are those of xplane.proto and memory_profile.proto; docs/formats/xprof.md says where they are.
"""
import json
import pathlib
import struct
import sys

MIB = 1 << 20
BEFORE = 512 * MIB  # the memory of GPU_0_bfc when the profile began
KEPT = 300 * MIB    # the part of it that is freed in the third step
LIMIT = 30 << 30
START_NS = 1_790_000_000 * 10**9


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def double(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


def message(field, *parts):
    body = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


class Allocator:
    """Its events as dictionaries of the figures that its TraceMe has."""

    def __init__(self, name, limit, in_use, address):
        self.name, self.limit, self.in_use, self.peak, self.address = name, limit, in_use, in_use, address
        self.live, self.events = {}, []

    def event(self, time_ps, is_alloc, address, requested, size, op="", region="", data_type=0, shape=""):
        self.in_use += size if is_alloc else -size
        self.peak = max(self.peak, self.in_use)
        self.events.append({
            "time_ps": time_ps, "is_alloc": is_alloc, "allocator_name": self.name, "bytes_reserved": 0, "bytes_allocated": self.in_use,
            "bytes_available": self.limit - self.in_use, "fragmentation": 0.25, "peak_bytes_in_use": self.peak,
            "requested_bytes": requested, "allocation_bytes": size, "addr": address, "tf_op": op, "id": 0, "region_type": region,
            "data_type": data_type, "shape": shape})

    def alloc(self, time_ps, requested, op, region="output", data_type=1, shape=""):
        size = (requested + 255) // 256 * 256
        self.address += size
        self.live[self.address] = (requested, size)
        self.event(time_ps, True, self.address, requested, size, op, region, data_type, shape)
        return self.address

    def free(self, time_ps, address):
        requested, size = self.live.pop(address)
        self.event(time_ps, False, address, requested, size)


def training(steps=12, leaks=True, frees_old=True):
    """Each step computes and frees 64 MiB of activations, and keeps 1 MiB more if it leaks; the third frees 300 MiB of before."""
    gpu = Allocator("GPU_0_bfc", LIMIT, BEFORE, 0x7f00_0000_0000)
    host = Allocator("gpu_host_bfc", 64 << 30, 0, 0x7e00_0000_0000)
    host.alloc(500, 8 * MIB, "IteratorGetNext", shape="[2048,1024]")
    gpu.live[0x7000_0000_0000] = (KEPT, KEPT)
    for step in range(steps):
        at = step * 10**10 + 1000
        hidden = gpu.alloc(at, 64 * MIB - 100, "model/dense/MatMul", shape="[4096,4096]")
        scratch = gpu.alloc(at + 1, 3 * MIB, "model/dense/MatMul", region="temp", data_type=19, shape="[3,512,1024]")
        if leaks:
            gpu.alloc(at + 2000, MIB, "metrics/history/ConcatV2", shape="[512,512]")
        gpu.free(at + 3000, scratch)
        gpu.free(at + 4000, hidden)
        if step == 2 and frees_old:
            gpu.free(at + 5000, 0x7000_0000_0000)
    return [gpu, host]


def xspace(allocators, lines=2):
    """The events dealt to threads in turn, between planes and events that are not about memory."""
    names = ["allocator_name", "bytes_reserved", "bytes_allocated", "bytes_available", "fragmentation", "peak_bytes_in_use",
             "requested_bytes", "allocation_bytes", "addr", "tf_op", "id", "region_type", "data_type", "shape"]
    ids = {name: i for i, name in enumerate(names, 1)}

    def stat(name, value):
        if isinstance(value, float):
            return message(4, number(1, ids[name]), double(2, value))
        if isinstance(value, int):
            return message(4, number(1, ids[name]), number(3 if name == "addr" else 4, value))
        if value and not value.startswith("["):  # texts that recur are stored once
            ids.setdefault(value, len(ids) + 1)
            return message(4, number(1, ids[name]), number(7, ids[value]))
        return message(4, number(1, ids[name]), message(5, value))

    threads = [[message(4, number(1, 9), number(2, 0), number(3, 10**6))] for _ in range(lines)]
    everything = sorted((event for each in allocators for event in each.events), key=lambda event: event["time_ps"])
    for at, event in enumerate(everything):
        line = at % lines
        threads[line].append(message(4, number(1, 7 if event["is_alloc"] else 8), number(2, event["time_ps"] - line * 250_000),
                                     *(stat(name, event[name]) for name in names)))
    plane = number(1, 2) + message(2, "/host:CPU")
    for line, events in enumerate(threads):  # the lines begin at different times
        plane += message(3, number(1, line), message(2, f"thread {line}"), number(3, START_NS + line * 250), *events)
    for key, name in ((7, "MemoryAllocation"), (8, "MemoryDeallocation"), (9, "EagerExecute")):
        plane += message(4, number(1, key), message(2, number(1, key), message(2, name)))
    for name, key in ids.items():
        plane += message(5, number(1, key), message(2, number(1, key), message(2, name)))
    device = number(1, 1) + message(2, "/device:GPU:0") + message(3, message(2, "Stream #1"), message(4, number(1, 1), number(2, 5)))
    return message(1, device) + message(1, plane) + message(4, "host1")


DATA_TYPES = {0: "INVALID", 1: "float", 19: "half"}


def memory_profile(allocators, most=1000, version=1):
    """As the tool makes it: the table of what was live at the peak, and at most `most` moments."""
    out = {"memoryProfilePerAllocator": {}, "numHosts": 1, "memoryIds": sorted(each.name for each in allocators), "version": version}
    for each in allocators:
        moments, live, peak, rows = [], {}, None, []
        for event in each.events:
            moments.append({
                "timeOffsetPs": str(event["time_ps"]),
                "aggregationStats": {"stackReservedBytes": "0", "heapAllocatedBytes": str(event["bytes_allocated"]),
                                     "freeMemoryBytes": str(event["bytes_available"]), "fragmentation": event["fragmentation"],
                                     "peakBytesInUse": str(event["peak_bytes_in_use"])},
                "activityMetadata": {"memoryActivity": "ALLOCATION" if event["is_alloc"] else "DEALLOCATION",
                                     "requestedBytes": str(event["requested_bytes"]), "allocationBytes": str(event["allocation_bytes"]),
                                     "address": str(event["addr"]), "tfOpName": event["tf_op"], "stepId": "0",
                                     "regionType": event["region_type"], "dataType": DATA_TYPES[event["data_type"]],
                                     "tensorShape": event["shape"]}})
            if event["is_alloc"]:
                live[event["addr"]] = len(moments) - 1
            else:
                live.pop(event["addr"], None)
            if peak is None or event["bytes_allocated"] >= peak[0]:
                peak = (event["bytes_allocated"], event["time_ps"], dict(live))
        named = sum(each.events[at]["allocation_bytes"] for at in peak[2].values())
        special = [{"memoryActivity": "ALLOCATION", "requestedBytes": str(peak[0] - named), "allocationBytes": str(peak[0] - named),
                    "address": "0", "tfOpName": "unused preallocated device memory", "stepId": "0", "regionType": "persist/dynamic",
                    "dataType": "INVALID", "tensorShape": "unknown"}] if peak[0] > named else []
        groups = {}
        for at in peak[2].values():
            groups.setdefault(tuple(each.events[at][k] for k in ("tf_op", "allocation_bytes", "region_type", "shape")), []).append(at)
        rows = [{"snapshotIndex": str(at[0]), "specialIndex": "-1", "numOccurrences": str(len(at))} for at in groups.values()]
        rows += [{"snapshotIndex": str(-1 - i), "specialIndex": str(i), "numOccurrences": "1"} for i in range(len(special))]
        width = -(-len(moments) // most)
        sampled = [max(moments[at:at + width], key=lambda one: int(one["aggregationStats"]["heapAllocatedBytes"]))
                   for at in range(0, len(moments), width)]
        its = {"memoryProfileSnapshots": moments, "profileSummary": {
            "peakBytesUsageLifetime": str(each.peak), "peakStats": {"peakBytesInUse": str(peak[0])}, "peakStatsTimePs": str(peak[1]),
            "memoryCapacity": str(each.limit)}, "activeAllocations": rows, "specialAllocations": special}
        if version:
            kept = [moments[int(row["snapshotIndex"])] for row in rows if int(row["snapshotIndex"]) >= 0]
            for i, row in enumerate(rows[:len(kept)]):
                row["snapshotIndex"] = str(i)
            its |= {"memoryProfileSnapshots": kept, "sampledTimelineSnapshots": sampled}
        out["memoryProfilePerAllocator"][each.name] = its
    return out


STATS = {"stackReservedBytes": 1, "heapAllocatedBytes": 2, "freeMemoryBytes": 3, "peakBytesInUse": 5}
METADATA = {"requestedBytes": 2, "allocationBytes": 3, "address": 4, "tfOpName": 5, "stepId": 6, "regionType": 7, "dataType": 8, "tensorShape": 9}
TEXTS = ("tfOpName", "regionType", "dataType", "tensorShape")


def as_message(profile):
    """The message of the same JSON."""
    def metadata(field, its):
        kind = {"ALLOCATION": 1, "DEALLOCATION": 2}[its["memoryActivity"]]
        return message(field, number(1, kind), *(message(n, its[k]) if k in TEXTS else number(n, int(its[k])) for k, n in METADATA.items()))

    def moment(field, its):
        stats = (number(n, int(its["aggregationStats"][k])) for k, n in STATS.items())
        return message(field, number(1, int(its["timeOffsetPs"])), message(2, *stats), metadata(3, its["activityMetadata"]))

    out = b""
    for name, its in profile["memoryProfilePerAllocator"].items():
        rows = (message(3, *(number(n, int(row[k])) for n, k in enumerate(("snapshotIndex", "specialIndex", "numOccurrences"), 1)))
                for row in its["activeAllocations"])
        out += message(1, message(1, name), message(
            2, *(moment(1, each) for each in its["memoryProfileSnapshots"]), *rows,
            *(metadata(4, each) for each in its["specialAllocations"]), *(moment(5, each) for each in its.get("sampledTimelineSnapshots", []))))
    return out + number(2, 1) + b"".join(message(3, name) for name in profile["memoryIds"]) + number(5, profile["version"])


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    made = training(4)
    (folder / "gpu.xplane.pb").write_bytes(xspace(made))
    (folder / "memory_profile.pb").write_bytes(as_message(memory_profile(made)))
    (folder / "memory_profile.json").write_text(json.dumps(memory_profile(made)))
    (folder / "sampled.json").write_text(json.dumps(memory_profile(made, most=5)))
