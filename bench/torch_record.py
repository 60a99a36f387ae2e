#!/usr/bin/env python3
"""What recording a tensor costs real PyTorch: `vramtrack run` beside PyTorch's own recorder, in one run.

    tests/torch/lane.py python 2.15.0 bench/torch_record.py BUILD [--rounds N]

256 tensors live, each replaced in its turn, at the bottom of 20 Python frames. A mode's cost is what replacing a tensor takes with it, less
what it takes without. The modes take turns, so that other work on the machine meets all of them; the figures are medians over the rounds.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

LIVE, REPLACED, RUNS = 256, 4000, 5
HISTORY = {"`_record_memory_history`, Python frames": {"stacks": "python"},
           "`_record_memory_history`, all frames": {"stacks": "all"}}  # fmt: skip


def body(mode):
    """Prints the nanoseconds for each tensor that is replaced, the median of the runs after the first."""
    import torch

    if mode in HISTORY:
        torch.cuda.memory._record_memory_history(max_entries=100_000, **HISTORY[mode])

    def run():
        live = [None] * LIVE
        begin = time.perf_counter_ns()
        for i in range(REPLACED):
            live[i % LIVE] = torch.empty(512 * (1 + i % 7), dtype=torch.uint8, device="cuda")
        return (time.perf_counter_ns() - begin) / REPLACED

    def at(python):
        return at(python - 1) if python > 4 else [run() for _ in range(RUNS)]

    print("RESULT", statistics.median(at(20)[1:]))


def measure(command, mode):
    done = subprocess.run([*map(str, command), sys.executable, __file__, "--body", mode], text=True, capture_output=True, timeout=300, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT"):
            return float(line.split()[1])
    sys.exit(f"{mode}: status {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    if sys.argv[1:2] == ["--body"]:
        return body(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(XDG_RUNTIME_DIR=folder)
        run = [build / "vramtrack", "run", "--quiet", "--probe", build / "probe", "--output", f"{folder}/trace"]
        modes = {"bare": [], "`vramtrack run`": [*run, "--"], "`vramtrack run --no-kept`": [*run, "--no-kept", "--"], **dict.fromkeys(HISTORY, [])}
        ns = {mode: [] for mode in modes}
        for _ in range(options.rounds):
            for mode, command in modes.items():
                ns[mode].append(measure(command, mode))
                pathlib.Path(folder, "trace").unlink(missing_ok=True)
    middle = {mode: statistics.median(values) for mode, values in ns.items()}
    print("| | ns for each tensor | of which recording |\n|---|---|---|")
    for mode, value in middle.items():
        print(f"| {mode} | {value:,.0f} | {format(value - middle['bare'], ',.0f') if mode != 'bare' else ''} |")


if __name__ == "__main__":
    main()
