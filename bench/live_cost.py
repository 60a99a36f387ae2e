#!/usr/bin/env python3
"""What `trace live` costs a program at a steady rate of driver calls, and what an allocation and its free cost: processor time alone.

    sudo bench/live_cost.py VRAMTRACK LIBRARY [--seconds N]

LIBRARY: the driver's double that the tests build (tests/telemetry/libcuda.so.1). Each call comes from below 20 Python and 30 native frames.
User and system time of the program and of the tracer are counted, so that other work on the machine does not count, except for what it
does to the caches. The program without a tracer is measured first, in the same process.
"""
import argparse
import ctypes
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

NATIVE = """
#include <stddef.h>
int cuMemAlloc_v2(unsigned long long*, size_t);
int cuMemFree_v2(unsigned long long);
__attribute__((noinline)) int pairs(int depth, int count) {
  volatile int kept = depth;
  if (depth > 0) return pairs(depth - 1, count) + kept;
  for (int i = 0; i < count; ++i) {
    unsigned long long address = 0;
    cuMemAlloc_v2(&address, 1 << 20);
    cuMemFree_v2(address);
  }
  return kept;
}
"""
NATIVE_FRAMES, PYTHON_FRAMES = 30, 20


def below(frames, function):
    """Calls it with this many Python frames above."""
    return function() if frames <= 1 else below(frames - 1, function)


def program(library):
    pairs = ctypes.CDLL(library).pairs
    print("ready", flush=True)
    for line in sys.stdin:
        rate, seconds, count = map(float, line.split())
        before = time.process_time_ns()
        if rate == 0:
            below(PYTHON_FRAMES, lambda: pairs(NATIVE_FRAMES, int(count)))
        else:
            begun = time.monotonic()
            for i in range(int(rate / 2 * seconds)):
                below(PYTHON_FRAMES, lambda: pairs(NATIVE_FRAMES, 1))
                time.sleep(max(0.0, begun + (i + 1) * 2 / rate - time.monotonic()))
        print(time.process_time_ns() - before, flush=True)


def processor_ns(pid):
    """CPU time of all threads so far."""
    return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("binary", type=pathlib.Path)
    options.add_argument("library", type=pathlib.Path)
    options.add_argument("--seconds", type=float, default=20)
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "pairs.c").write_text(NATIVE)
        library = options.library.resolve()
        subprocess.run(["cc", "-O2", "-g", "-fno-optimize-sibling-calls", "-shared", "-fPIC", "-o", folder / "pairs.so", folder / "pairs.c", library,
                        f"-Wl,-rpath,{library.parent}"], check=True)  # fmt: skip
        one = subprocess.Popen([sys.executable, __file__, "--program", folder / "pairs.so"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def ask(rate, seconds=options.seconds, count=0):
            one.stdin.write(f"{rate} {seconds} {count}\n")
            one.stdin.flush()
            return int(one.stdout.readline())

        def measure():
            """(ns of the program, ns of the tracer) for each pair of calls, then for each rate."""
            def both(*what, **how):
                before = processor_ns(tracer.pid) if tracer else 0
                used = ask(*what, **how)
                time.sleep(1)  # what the tracer has still to read
                return used, (processor_ns(tracer.pid) if tracer else 0) - before
            turns = [both(0, count=1000) for _ in range(5)]
            return [tuple(min(turn[i] for turn in turns) / 1000 for i in (0, 1)), *(both(rate) for rate in (400, 2000))]

        one.stdout.readline()
        tracer = None
        base = measure()
        tracer = subprocess.Popen([options.binary, "trace", "live", "--pid", str(one.pid), "--output", folder / "cost.trace"], stdout=subprocess.PIPE,
                                  text=True)  # fmt: skip
        tracer.stdout.readline()
        traced = measure()
        tracer.send_signal(signal.SIGINT)
        tracer.communicate()
        one.stdin.close()
        one.wait()
    print("| | in the program | in the tracer |\n|---|---|---|")
    print(f"| an allocation and its free | {traced[0][0] - base[0][0]:,.0f} ns | {traced[0][1]:,.0f} ns |")
    for rate, (free, _), (used, tool) in zip((400, 2000), base[1:], traced[1:]):
        print(f"| {rate:,} calls a second | {100 * (used - free) / options.seconds / 1e9:.2f} % of a core | {100 * tool / options.seconds / 1e9:.2f} % |")


if __name__ == "__main__":
    program(sys.argv[2]) if sys.argv[1:2] == ["--program"] else main()
