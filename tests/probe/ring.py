"""Reads the ring of a program that ran with the probe: what src/probe/wire.hpp describes, as Python objects."""
import collections
import pathlib
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER_BYTES = 4096
RECORDS = {int(number): name for name, number in
           re.findall(r"^  (\w+) = (\d+),", (ROOT / "src/probe/wire.hpp").read_text().partition("enum class Record")[2].partition("};")[0], re.M)}
CALLS = {int(number): (identifier, name, level, memory) for identifier, name, level, memory, number in
         re.findall(r'^VRAMTRACK_CALL\((\w+), "([^"]+)", (\w+), (\w+), (\d+)\)', (ROOT / "src/probe/calls.def").read_text(), re.M)}

Record = collections.namedtuple("Record", "kind call level memory device flags number a address bytes time_us thread")
Frame = collections.namedtuple("Frame", "python function file line address entry")


class Ring:
    """All records of one ring file, in order, with the texts, stacks and code objects that they refer to."""

    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        magic, self.version, self.pid, self.start_ticks, self.capacity, self.begin_us = struct.unpack_from("<8sIIQQq", data)
        assert magic == b"VRTRING1", magic
        self.written, = struct.unpack_from("<Q", data, 64)
        self.read, = struct.unpack_from("<Q", data, 128)
        self.lost, = struct.unpack_from("<Q", data, 192)
        self.records, texts, self.codes, frames = [], {}, {}, {}
        for at in range(self.read, self.written):
            head, a, address, size = struct.unpack_from("<4Q", data, HEADER_BYTES + at % self.capacity * 32)
            kind, call, device, flags, number = head & 0xff, head >> 8 & 0xff, head >> 16 & 0xff, head >> 24 & 0xff, head >> 32
            name = RECORDS[kind]
            if name == "text":
                text = texts.setdefault(number, bytearray(a >> 32))
                offset = a & 0xffffffff
                text[offset:offset + 16] = struct.pack("<2Q", address, size)[:len(text) - offset]
            elif name == "code":
                self.codes[number] = (a, address & 0xffffffff, address >> 32)
            elif name == "frame":
                frames.setdefault(number, {})[a & 0xffffffff] = (flags, address, size)
            elif name != "none":
                identifier, _, level, memory = CALLS.get(call, ("none", "", "", ""))
                self.records.append(Record(name, identifier, level, memory, device - 256 if device > 127 else device, flags, number, a,
                                           address, size, a & (1 << 48) - 1, a >> 48))
        self.texts = {number: text.decode(errors="replace") for number, text in texts.items()}
        self.stacks = {number: [self._frame(*by_index[i]) for i in sorted(by_index)] for number, by_index in frames.items()}

    def _frame(self, flags, address, size):
        if not flags & 1:
            return Frame(False, None, None, None, address, False)
        _, file, name = self.codes[address]
        return Frame(True, self.texts[name], self.texts[file], size, None, bool(flags & 2))

    def of(self, *kinds):
        return [record for record in self.records if record.kind in kinds]

    def live(self, level="driver", memory=("device", "managed")):
        """What is held at the end: address -> record of its allocation."""
        held = {}
        for record in self.of("alloc", "free"):
            if record.level != level or record.memory not in memory:
                continue
            if record.kind == "alloc":
                held[record.address] = record
            else:
                held.pop(record.address, None)
        return held

    def live_bytes(self, **wanted):
        return sum(record.bytes for record in self.live(**wanted).values())


def rings(folder):
    """Those of a run, oldest process first."""
    return sorted((Ring(path) for path in pathlib.Path(folder).glob("ring.*")), key=lambda ring: (ring.begin_us, ring.pid))
