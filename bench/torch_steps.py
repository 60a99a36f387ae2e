#!/usr/bin/env python3
"""What a step of real PyTorch costs under `vramtrack run`, at 10,000 and at 100,000 tensors a second.

    tests/torch/lane.py python 2.15.0 bench/torch_steps.py BUILD [--rounds N]

A step makes 1,000 tensors, 128 of which live at a time, at the bottom of 20 Python frames, with so much work of the processor
between them that the program alone makes 10,000 or 100,000 a second. The work is counted in rounds of a loop, so that the same is done with and
without recording. Times are CPU times of the thread, which other programs on the machine change least; recording itself runs on that thread.
Both variants take turns, each in its own process. At 100,000 a second sampling starts; what is measured comes after the first 3.5 seconds.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TENSORS, LIVE = 1000, 128
#: rate: (steps, of which the first are not measured)
RATES = {10_000: (16, 4), 100_000: (500, 350)}


def body(spins, steps, settling):
    """Prints the median CPU nanoseconds of a step, and the median by the clock."""
    import torch

    live = [None] * LIVE

    def forward(i, rounds):
        for _ in range(rounds):
            pass
        live[i % LIVE] = torch.empty(512 * (1 + i % 7), dtype=torch.uint8, device="cuda")

    def step():
        # The fraction of a round is spread over the tensors.
        whole, rest = divmod(spins, TENSORS)
        for i in range(TENSORS):
            forward(i, whole + (i < rest))

    def at(python):
        if python > 4:
            return at(python - 1)
        taken = []
        for _ in range(steps):
            cpu, clock = time.thread_time_ns(), time.perf_counter_ns()
            step()
            taken.append((time.thread_time_ns() - cpu, time.perf_counter_ns() - clock))
        return [statistics.median(values) for values in zip(*taken[settling:], strict=True)]

    print("RESULT", *at(20))


def measure(command, *numbers):
    done = subprocess.run([*map(str, command), sys.executable, __file__, "--body", *map(str, numbers)], text=True, capture_output=True, timeout=600,
                          check=False)  # fmt: skip
    for line in done.stdout.splitlines():
        if line.startswith("RESULT"):
            return [float(value) for value in line.split()[1:]]
    sys.exit(f"status {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    if sys.argv[1:2] == ["--body"]:
        return body(*map(int, sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rate", type=int, choices=RATES, help="tensors a second (default: each of the two)")
    options = parser.parse_args()
    build = options.build.resolve()
    base = measure([], 0, 20, 5)[0]
    spin_ns = (measure([], 1_000_000, 9, 2)[0] - base) / 1_000_000
    print("| tensors a second, alone | step alone, ms | step recorded, ms | ratio, median (10 to 90 %) | by the clock |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(XDG_RUNTIME_DIR=folder)
        run = [build / "vramtrack", "run", "--quiet", "--probe", build / "probe", "--output", f"{folder}/trace", "--"]
        for rate, (steps, settling) in RATES.items():
            if options.rate not in (None, rate):
                continue
            spins = max(0, int((1e9 * TENSORS / rate - base) / spin_ns))
            alone, recorded = [], []
            for _ in range(options.rounds):
                alone.append(measure([], spins, steps, settling))
                recorded.append(measure(run, spins, steps, settling))
                pathlib.Path(folder, "trace").unlink(missing_ok=True)
            cpu, clock = ([after[k] / before[k] for before, after in zip(alone, recorded, strict=True)] for k in (0, 1))
            middle = [statistics.median(values[0] for values in each) / 1e6 for each in (alone, recorded)]
            low, high = (statistics.quantiles(cpu, n=10)[k] for k in (0, -1))
            print(f"| {TENSORS * 1e3 / middle[0]:,.0f} | {middle[0]:.3f} | {middle[1]:.3f} | "
                  f"{statistics.median(cpu):.4f} ({low:.4f} to {high:.4f}) | {statistics.median(clock):.3f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
