"""Writes trace files as docs/formats/trace.md describes them, without the probe: for tests of what reads them."""
import struct
import zlib

RECORDS = {"alloc": 1, "free": 2, "frame": 3, "text": 4, "code": 5, "module": 6, "process": 7, "device": 9, "mark": 10, "failed": 12, "lost": 14,
           "sampling": 15, "label": 19}
CU_MEM_ALLOC = 1
CU_MEM_HOST_ALLOC = 11


def zstd_frame(data):
    """A frame of raw blocks: needs no compressor."""
    out = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data))
    pieces = [data[i:i + 131072] for i in range(0, len(data), 131072)] or [b""]
    for n, piece in enumerate(pieces):
        out += struct.pack("<I", (n == len(pieces) - 1) | len(piece) << 3)[:3] + piece
    return out


def text(words):
    return struct.pack("<I", len(words)) + words


class Trace:
    """One process, pid 4242. Microseconds go by as `now_us` says."""

    def __init__(self, command="python3 train.py"):
        command = command.encode()
        header = struct.pack("<8sIIqII", b"VRAMTRC1", 1, len(command), 1_767_600_000_000_000, 0, 0) + command
        self.data = header[:24] + struct.pack("<I", zlib.crc32(header)) + header[28:]
        self.records, self.texts, self.numbers, self.now_us = [], {}, 0, 0
        self.chunk(2, struct.pack("<Qq", 77, 1_767_600_000_000_000) + text(command))

    def chunk(self, kind, payload, process=0):
        packed = zstd_frame(payload)
        header = struct.pack("<IHHIIIII", 0x4B435456, kind, 0, process, 4242, len(payload), len(packed), zlib.crc32(packed))
        self.data += header + struct.pack("<I", zlib.crc32(header)) + packed

    def holder(self, uuid, pid, size, command):
        """Whoever held memory of a device when an allocation had failed."""
        self.chunk(6, struct.pack("<3Q", 1_767_600_001_000_000, pid, size) + text(uuid.encode()) + text(command.encode()), 0xffffffff)

    def put(self, record, number=0, a=0, address=0, size=0, call=0, device=0, flags=0):
        self.records.append(struct.pack("<4Q", RECORDS[record] | call << 8 | (device & 255) << 16 | flags << 24 | number << 32, a, address, size))

    def text(self, words):
        words = words.encode()
        if words not in self.texts:
            self.texts[words] = len(self.texts) + 1
            for at in range(0, len(words) or 1, 16):
                self.put("text", self.texts[words], at | len(words) << 32, *struct.unpack("<2Q", words[at:at + 16].ljust(16, b"\0")))
        return self.texts[words]

    def stack(self, *frames):
        """(file, line, function) of Python, innermost first; each an entry frame."""
        self.numbers += 1
        number = self.numbers
        for i, (file, line, function) in enumerate(frames):
            code = number * 1000 + i
            self.put("code", code, line, self.text(file) | self.text(function) << 32)
            self.put("frame", number, i | len(frames) << 32, code, line, flags=3)
        return number

    def alloc(self, address, size, stack, call=CU_MEM_ALLOC, device=0):
        self.put("alloc", stack, self.now_us, address, size, call=call, device=device)
        self.now_us += 1000

    def free(self, address, call=CU_MEM_ALLOC):
        self.put("free", 0, self.now_us, address, call=call)
        self.now_us += 1000

    def mark(self, name):
        self.put("mark", self.text(name), self.now_us)

    def reading(self, process_bytes, uuid="GPU-1"):
        self.flush()
        self.chunk(4, struct.pack("<qQQ", 1_767_600_000_000_000 + self.now_us, process_bytes, 2**64 - 1) + text(uuid.encode()))

    def flush(self):
        if self.records:
            self.chunk(1, b"".join(self.records))
        self.records = []

    def bytes(self, exit_code=0, ended=True):
        self.flush()
        if ended:
            self.chunk(5, struct.pack("<qQ", 1_767_600_000_000_000 + self.now_us, exit_code), 0xFFFFFFFF)
        return self.data


def leaking_trace(name="/home/me/train.py", function="train_step", steps=300, command="python3 train.py"):
    """A training that keeps its losses: 4 KiB a step; a model, a cache that fills, a host buffer and churn that are healthy."""
    trace = Trace(command)
    main = (name, 90, "<module>")
    model = trace.stack(("/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 10, "__init__"), ("/home/me/model.py", 7, "build"), main)
    losses, forward = trace.stack((name, 42, function), main), trace.stack(("/home/me/model.py", 20, "forward"), (name, 40, function), main)
    buffer, cache = trace.stack(("/home/me/data.py", 3, "pin"), main), trace.stack(("/home/me/cache.py", 5, "lookup"), main)
    for i in range(8):
        trace.alloc(0x7000_0000_0000 + i * 0x1000_0000, 64 << 20, model)
    trace.alloc(0x7100_0000_0000, 16 << 20, buffer, call=CU_MEM_HOST_ALLOC, device=-1)
    for step in range(steps):
        if step % 50 == 0:
            trace.mark("epoch")
        trace.alloc(0x7200_0000_0000, 1 << 20, forward)
        if step < 40:
            trace.alloc(0x7400_0000_0000 + step * 0x1000, 2048, cache)
        trace.alloc(0x7300_0000_0000 + step * 0x10000, 4096, losses)
        trace.free(0x7200_0000_0000)
        if step % 100 == 99:
            trace.reading((8 * 64 << 20) + (300 << 20) + step * 4096)
    return trace
