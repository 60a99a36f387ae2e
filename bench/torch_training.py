#!/usr/bin/env python3
"""What a step of training costs under `vramtrack run`: a transformer of 6 layers, on a real GPU.

    bench/torch_training.py BUILD [--rounds N]

Each round trains twice, alone and under `vramtrack run`, in turn, each in its own process: 200 steps, of which the first 50 are not measured.
A step is timed by the clock, from before the batch is made until the GPU has finished it.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

STEPS, SETTLING = 200, 50


def body():
    """Prints the median and the 90th percentile of the steps' nanoseconds."""
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    taken = []
    for _ in range(STEPS):
        begin = time.perf_counter_ns()
        batch = torch.randn(32, 256, 512, device="cuda")
        optimizer.zero_grad()
        (model(batch) - batch).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        taken.append(time.perf_counter_ns() - begin)
    measured = taken[SETTLING:]
    print("RESULT", statistics.median(measured), statistics.quantiles(measured, n=10)[-1])


def measure(command):
    done = subprocess.run([*map(str, command), sys.executable, __file__, "--body"], text=True, capture_output=True, timeout=600, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT"):
            return [float(value) / 1e6 for value in line.split()[1:]]
    sys.exit(f"status {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    if sys.argv[1:2] == ["--body"]:
        return body()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(XDG_RUNTIME_DIR=folder)
        run = [build / "vramtrack", "run", "--quiet", "--probe", build / "probe", "--output", f"{folder}/trace", "--"]
        rounds = []
        for _ in range(options.rounds):
            rounds.append((measure([]), measure(run)))
            pathlib.Path(folder, "trace").unlink(missing_ok=True)
    print("| | alone, ms | under `vramtrack run`, ms | ratio, median of the rounds (lowest to highest) |\n|---|---|---|---|")
    for k, name in enumerate(("median of a step", "90th percentile")):
        alone, recorded = ([each[side][k] for each in rounds] for side in (0, 1))
        ratios = [after / before for before, after in zip(alone, recorded, strict=True)]
        print(f"| {name} | {statistics.median(alone):.2f} | {statistics.median(recorded):.2f} | "
              f"{statistics.median(ratios):.4f} ({min(ratios):.4f} to {max(ratios):.4f}) |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
