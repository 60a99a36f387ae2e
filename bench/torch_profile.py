#!/usr/bin/env python3
"""What profiling a call costs under PyTorch's own allocator, beside stormlog in the same run.

    tests/torch/lane.py python 2.15.0 bench/torch_profile.py [--peer DIRECTORY]

--peer: a folder into which stormlog was installed (pip install --target). The profilers take turns, so that other work on the machine
meets all of them; the figures are medians of single calls.
"""
import argparse
import statistics
import sys
import time

import torch

import vramtrack

MIB = 2**20


def body():
    torch.empty(10 * MIB, dtype=torch.uint8, device="cuda")


def vramtrack_calls():
    default = vramtrack.GPUMemoryProfiler()
    yield "vramtrack", lambda: default.profile_function(body), 20
    waiting = vramtrack.GPUMemoryProfiler(synchronize=True, track_cpu_memory=True)
    yield "vramtrack, waiting for the GPU, and the host's memory", lambda: waiting.profile_function(body), 20


def peer_calls(directory):
    sys.path.insert(0, directory)
    from stormlog.profiler import GPUMemoryProfiler

    for words, options in (("", {}), (", nothing tracked", {"track_cpu_memory": False}), (", tensors counted", {"track_tensors": True})):
        profiler = GPUMemoryProfiler(**options)
        yield "stormlog" + words, lambda profiler=profiler: profiler.profile_function(body), 1 if "tensors" in words else 20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    kept = torch.nn.Linear(1000, 1000).cuda()  # a program holds something
    rows = [("bare", body, 20), *vramtrack_calls(), *(peer_calls(options.peer) if options.peer else ())]
    seconds = {name: [] for name, _, _ in rows}
    for _ in range(options.rounds):
        for name, call, times in rows:
            for _ in range(times):
                begin = time.perf_counter()
                call()
                seconds[name].append(time.perf_counter() - begin)
    del kept
    print(f"python {sys.version.split()[0]}, torch {torch.__version__}, vramtrack {vramtrack.__version__}; microseconds a call")
    middle = {name: statistics.median(values) * 1e6 for name, values in seconds.items()}
    bare = middle["bare"]
    for name, us in middle.items():
        low, high = (statistics.quantiles(seconds[name], n=10)[k] * 1e6 for k in (0, -1))
        print(f"{name:56} {us:10.1f}   8 of 10: {low:.1f} to {high:.1f}   added, by ours: {(us - bare) / (middle['vramtrack'] - bare):.1f}")


if __name__ == "__main__":
    main()
