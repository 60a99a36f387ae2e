#!/usr/bin/env python3
"""What the Python package costs: profile_function per call, detect() on a million samples, and a look of a watch that has taken 20,000
samples. Limits: 5 us, 0.3 s, 1 ms.

    python bench/python_bench.py [--peer DIRECTORY]

--peer: a folder into which stormlog (the successor of gpumemprof) or gpu-memory-profiler was installed: the same call is
profiled by it in the same run. The framework's own counters are excluded from both: they are stand-ins that return a constant.
"""
import argparse
import gc
import statistics
import sys
import time
import types
from array import array

import vramtrack

CALLS, ROUNDS = 20_000, 7


class Counters(vramtrack.MemorySource):
    """Counters that cost next to nothing."""

    name = "constant"
    _now = vramtrack.Counters(1, 2, 1, 2, 1, 0, 0)

    def counters(self):
        return self._now


def body(x):
    return x


def per_call_us(call, calls=CALLS):
    """The best of some rounds: what the machine's other work adds is none of the call's."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, time.perf_counter() - begin)
    return best / calls * 1e6


def stand_in_torch():
    """As much of torch as the peer's profiler calls, returning constants at once."""
    torch = types.ModuleType("torch")
    cuda = types.ModuleType("torch.cuda")
    stats = {"active_bytes.all.current": 1, "inactive_split_bytes.all.current": 0, "allocated_bytes.all.peak": 1}
    for name, value in {"is_available": True, "current_device": 0, "device_count": 1, "memory_allocated": 1, "memory_reserved": 2,
                        "max_memory_allocated": 1, "max_memory_reserved": 2, "synchronize": None,
                        "reset_peak_memory_stats": None, "memory_stats": stats}.items():  # fmt: skip
        setattr(cuda, name, lambda *_, _value=value: _value)
    torch.cuda = cuda
    torch.Tensor = type("Tensor", (), {"is_cuda": False})
    torch.version = types.SimpleNamespace(hip=None, cuda="12.4")
    torch.backends = types.SimpleNamespace(mps=types.SimpleNamespace(is_available=lambda: False))
    cuda.mem_get_info = lambda *_: (1, 2)
    cuda.get_device_properties = lambda *_: types.SimpleNamespace(name="stand-in", total_memory=2)
    torch.nn = types.SimpleNamespace(Module=object)

    class device:
        def __init__(self, text):
            self.type, _, index = str(text).partition(":")
            self.index = int(index or 0)

    torch.device = device
    sys.modules.update({"torch": torch, "torch.cuda": cuda, "torch.nn": torch.nn})


def peer_rows(directory):
    sys.path.insert(0, directory)
    stand_in_torch()
    for package in ("stormlog", "gpumemprof"):
        try:
            module = __import__(f"{package}.profiler", fromlist=["GPUMemoryProfiler"])
        except ImportError as error:
            yield package, None, str(error)
            continue
        plain = per_call_us(lambda: body(1))
        for words, options, calls in (("", {}, 20), (", nothing tracked", {"track_tensors": False, "track_cpu_memory": False}, 2000)):
            try:
                profiler = module.GPUMemoryProfiler(**options)
                yield package + words, per_call_us(lambda: profiler.profile_function(body, 1), calls) - plain, ""
            except Exception as error:  # its own business; say so and go on
                yield package + words, None, f"{type(error).__name__}: {error}"


def look_rows(samples=20_000):
    """(name, microseconds, limit): a sample and a look of a watch at that many samples; and detect() on them, which a look once was."""
    device = vramtrack.SimulatedDevice(capacity_bytes=80 * 2**30)
    now = [1_750_000_000.0]
    watch = vramtrack.Watch(device, evidence=False, max_samples=samples + 1, clock=lambda: now[0])
    device.allocate(8 * 2**30)
    begin = time.perf_counter()
    for k in range(samples):
        device.allocate(2**20)
        now[0] += 1
        watch.sample()
    yield "a sample of a watch", (time.perf_counter() - begin) / samples * 1e6, None
    kept = watch.samples

    def batch():
        for column in (1, 3):
            vramtrack.detect([s.time_s for s in kept], [s[column] for s in kept], 80 * 2**30, metric="allocator_allocated")

    yield f"a look at {samples:,} samples", per_call_us(watch.verdict, 20), 1000.0
    yield f"... as detect() on {len(kept):,}", per_call_us(batch, 3), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer")
    options = parser.parse_args()
    gc.disable()
    profiler = vramtrack.GPUMemoryProfiler(source=Counters(), max_results=CALLS)
    plain = per_call_us(lambda: body(1))
    ours = per_call_us(lambda: profiler.profile_function(body, 1)) - plain
    decorated = profiler.profile(body)
    ours_decorated = per_call_us(lambda: decorated(1)) - plain
    gc.enable()
    print(f"python {sys.version.split()[0]}, vramtrack {vramtrack.__version__}")
    print(f"profile_function            {ours:10.2f} us a call   limit 5 us   {'holds' if ours <= 5 else 'MISSED'}")
    print(f"as a decorator              {ours_decorated:10.2f} us a call")

    n = 1_000_000
    times = array("d", range(n))
    seed, used = 1, array("d")
    for k in range(n):
        seed = (1103515245 * seed + 12345) % 2**31
        used.append(8e9 + 2e3 * k + seed % 40_000_000)
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        vramtrack.detect(times, used, 80 * 2**30)
        seconds.append(time.perf_counter() - begin)
    best = min(seconds)
    print(f"detect, 1,000,000 samples   {best:10.3f} s           limit 0.3 s  {'holds' if best <= 0.3 else 'MISSED'}"
          f"   (median {statistics.median(seconds):.3f})")  # fmt: skip
    slow = False
    for name, us, limit in look_rows():
        judged = "" if limit is None else f"   limit {limit / 1000:g} ms   {'holds' if us <= limit else 'MISSED'}"
        slow = slow or (limit is not None and us > limit)
        print(f"{name:<27} {us:10.1f} us{judged}")
    if options.peer:
        for name, us, why in peer_rows(options.peer):
            print(f"{name:<27} {us:10.2f} us a call" if us is not None else f"{name}: not measured: {why}")
    return 0 if ours <= 5 and best <= 0.3 and not slow else 1


if __name__ == "__main__":
    sys.exit(main())
