#!/usr/bin/env python3
"""A snapshot of 1 GB with 10 million trace events: `vramtrack snapshot summary` beside pickle.load and PyTorch's own tool.

    bench/snapshot.py VRAMTRACK [--viz PATH/_memory_viz.py] [--events 10000000] [--folder build/bench]

The file is made once, by a streaming writer, in the shape of those of PyTorch 2.9 to 2.11 (each event its own dict,
list of frames and strings; frames shared). _memory_viz.py is PyTorch's torch/cuda/_memory_viz.py, not part of this
repository; without --viz only pickle.load is measured. Each runs pinned to one core, in its own process; the
file is read once before, so that neither waits for a disk. pickle.load needs some 6 GB of memory for 10 million events.
"""
import argparse
import os
import pathlib
import struct
import subprocess
import sys

MIB = 2**20
START_US = 1_773_270_053_000_000


class Pickle:
    """The opcodes of protocol 4 that a snapshot has; memo ids in the order of MEMOIZE, as the real writer's."""

    def __init__(self, out):
        self.out, self.ids, self.count = out, {}, 0
        out.write(b"\x80\x04")

    def memoize(self):
        self.count += 1
        return b"\x94"

    def text(self, text):
        """A string: in full the first time, by reference after that."""
        if text in self.ids:
            return self.get(self.ids[text])
        self.ids[text] = self.count
        return self.fresh(text)

    def fresh(self, text):
        raw = text.encode()
        return (b"\x8c" + bytes([len(raw)]) if len(raw) < 256 else b"X" + struct.pack("<I", len(raw))) + raw + self.memoize()

    @staticmethod
    def get(index):
        return b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index)

    @staticmethod
    def integer(value):
        if 0 <= value < 256:
            return b"K" + bytes([value])
        if 0 <= value < 65536:
            return b"M" + struct.pack("<H", value)
        if -(2**31) <= value < 2**31:
            return b"J" + struct.pack("<i", value)
        raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8a" + bytes([len(raw)]) + raw


def generate(path, events):
    """Iterations of a training step: each allocates and frees the same blocks; some blocks stay for ever."""
    with open(path, "wb", buffering=1 << 20) as out:
        p = Pickle(out)
        write = out.write
        # The strings of the format first, so that they have short references, as in the real files.
        write(b"}" + p.memoize() + b"(" + p.text("segments") + b"]" + p.memoize() + b"(")
        frames = []

        def frame(i):
            frames.append(p.count)
            return (b"}" + p.memoize() + b"(" + p.text("name") + p.fresh(f"forward_{i}") + p.text("filename")
                    + p.text(f"/opt/train/model_{i % 40}.py") + p.text("line") + p.integer(10 + i) + b"u")

        persistent = 2000
        for s in range(100):
            address = 0x7f0000000000 + s * 512 * MIB
            write(b"}" + p.memoize() + b"(" + p.text("device") + p.integer(0) + p.text("address") + p.integer(address)
                  + p.text("total_size") + p.integer(20 * MIB) + p.text("allocated_size") + p.integer(20 * MIB)
                  + p.text("active_size") + p.integer(20 * MIB) + p.text("requested_size") + p.integer(20 * MIB)
                  + p.text("stream") + p.integer(0) + p.text("segment_type") + p.text("large") + p.text("segment_pool_id")
                  + p.integer(0) + p.integer(0) + b"\x86" + p.memoize() + p.text("is_expandable") + b"\x89"
                  + p.text("frames") + b"]" + p.memoize() + p.text("blocks") + b"]" + p.memoize() + b"(")
            for b in range(persistent // 100):
                write(b"}" + p.memoize() + b"(" + p.text("address") + p.integer(address + b * MIB) + p.text("size")
                      + p.integer(MIB) + p.text("requested_size") + p.integer(MIB - 100) + p.text("state")
                      + p.text("active_allocated") + p.text("frames") + b"]" + p.memoize() + b"(" + frame(len(frames)) + b"eu")
            write(b"eu")
        write(b"e" + p.text("device_traces") + b"]" + p.memoize() + b"]" + p.memoize() + b"(")
        # One iteration, made once; of each repetition only times and the references to its own lists differ.
        blocks, step, times, references, lists = 1000, bytearray(), [], [], []
        before = p.count
        for action in ("alloc", "free_requested", "free_completed"):
            for b in range(blocks):
                step += b"}" + p.memoize() + b"(" + p.text("action") + p.text(action) + p.text("addr")
                step += p.integer(0x7f8000000000 + b * 4 * MIB) + p.text("size") + p.integer(4 * MIB - b)
                step += p.text("stream") + p.integer(0) + p.text("time_us") + b"\x8a\x07"
                times.append(len(step))
                step += bytes(7) + p.text("compile_context") + p.fresh("N/A")
                step += p.text("user_metadata") + p.fresh("") + p.text("frames")
                if action == "free_completed":
                    references.append((len(step) + 1, lists[blocks + b]))
                    step += b"j" + bytes(4) + b"u"
                    continue
                lists.append(p.count)
                step += b"]" + p.memoize() + b"("
                for f in range(7):
                    step += p.get(frames[(b * 7 + f * 13) % len(frames)])
                step += b"eu"
            step += b"e("  # the writer's batches of a thousand
        fresh_each = p.count - before
        rounds = max(1, events // len(times))
        for i in range(rounds):
            at_us = START_US + i * len(times) * 3
            for k, at in enumerate(times):
                step[at:at + 7] = (at_us + k * 3).to_bytes(7, "little")
            for at, index in references:
                step[at:at + 4] = struct.pack("<I", index + i * fresh_each)
            write(step)
        write(b"eau.")
    return rounds * len(times)


LOADERS = {
    # What a person would do: load it, then ask the official tool for its summary of segments.
    "pickle.load": "import pickle,sys; d = pickle.load(open(sys.argv[1], 'rb')); print(len(d['device_traces'][0]))",
    "pickle.load, gc off": "import gc,pickle,sys; gc.disable(); d = pickle.load(open(sys.argv[1], 'rb'));"
                           " print(len(d['device_traces'][0]))",
}


def measured(label, command):
    """Runs it on core 0; seconds by the clock and of CPU, and its largest resident memory."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.sched_setaffinity(0, {0})
        import resource
        import time
        begin = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        line = f"{time.monotonic() - begin} {used.ru_utime + used.ru_stime} {used.ru_maxrss} {done.returncode}"
        os.write(writer, line.encode() + b"\n" + done.stderr[-400:])
        os._exit(0)
    os.close(writer)
    answer = b""
    while part := os.read(reader, 65536):
        answer += part
    os.waitpid(child, 0)
    line, _, stderr = answer.decode(errors="replace").partition("\n")
    clock_s, cpu_s, rss_kib, status = (float(x) for x in line.split())
    if status != 0:
        print(f"{label}: failed with {status:.0f}: {stderr.strip()}")
        return None
    print(f"{label}: {clock_s:.2f} s by the clock, {cpu_s:.2f} s of CPU, {rss_kib / 1024:.0f} MiB resident", flush=True)
    return clock_s, cpu_s, rss_kib * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vramtrack")
    parser.add_argument("--viz", help="PyTorch's torch/cuda/_memory_viz.py")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--folder", default="build/bench")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", choices=["vramtrack"], help="without Python's side")
    o = parser.parse_args()
    file = pathlib.Path(o.folder) / f"snapshot-{o.events}.pickle"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        generate(part, o.events)
        part.rename(file)
    size = file.stat().st_size
    with open(file, "rb") as f:  # into the page cache
        while f.read(1 << 24):
            pass
    print(f"{file}: {size} bytes, about {o.events} trace events; each on core 0")
    ours = [measured(f"vramtrack snapshot summary, run {i}", [o.vramtrack, "snapshot", "summary", str(file)])
            for i in range(1, 4)]
    ours = min(r for r in ours if r)
    print(f"vramtrack: {ours[0]:.2f} s by the clock, {ours[1]:.2f} s of CPU (target 3), {ours[2] / size:.3f} of the file resident"
          " (target 0.5)")
    if o.only:
        return
    rivals = {label: [o.python, "-c", code, str(file)] for label, code in LOADERS.items()}
    if o.viz:
        rivals["_memory_viz.py stats"] = [o.python, o.viz, "stats", str(file)]  # pickle.load, then segsum()
    for label, command in rivals.items():
        theirs = measured(label, command)
        if theirs:
            print(f"  {label}: {theirs[0] / ours[0]:.1f} times slower by the clock, {theirs[1] / ours[1]:.1f} by CPU time,"
                  f" {theirs[2] / ours[2]:.1f} times larger")


if __name__ == "__main__":
    main()
