#!/usr/bin/env python3
"""What recording an allocation costs a program: `vramtrack run` beside heaptrack and memray, and what it costs a step.

    probe_peers.py BUILD [--memray FILE] [--rounds N]

One pattern (bench/probe_pattern.cpp: 256 live blocks, each replaced in its turn) runs at the bottom of 20 Python and 30 native frames: on the
heap, which heaptrack and memray record, and at a double of the CUDA driver that takes its memory from the heap, which vramtrack records. Each tool's cost is what a pair of
allocation and free takes with it, less what the same pair takes without it. The variants take turns, so that other work on the machine meets
all of them; the figures are medians over the rounds.

The second table has steps of 1,000 allocations with so much work between them that the program alone makes 10,000 or 100,000 a second.
"""
import argparse
import ctypes
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def body(library, driver, depth, pairs, spins, runs):
    """What runs under each tool: prints the nanoseconds of a pair, once a run."""
    pattern = ctypes.CDLL(library)
    pattern.pattern_run.restype = ctypes.c_double
    if pattern.pattern_begin(driver):
        sys.exit("no driver")

    def at(python):
        return at(python - 1) if python > 3 else [pattern.pattern_run(depth, pairs, spins) for _ in range(runs)]

    print("RESULT", *at(20))


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.library = self.folder / "libprobe_pattern.so"
        subprocess.run(["c++", "-O2", "-g", "-fPIC", "-shared", "-fno-optimize-sibling-calls", "-fasynchronous-unwind-tables",
                        HERE / "probe_pattern.cpp", "-o", self.library], check=True)  # fmt: skip
        self.driver = self.folder / "driver"
        self.driver.mkdir()
        subprocess.run(["c++", "-O2", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1", HERE / "probe_driver.cpp", "-o",
                        self.driver / "libcuda.so.1"], check=True)  # fmt: skip
        self.count = 0

    def run(self, before, driver, pairs, spins=0, runs=3, settling=1):
        """The median nanoseconds of a pair over the runs after `settling` ones: the first finds every stack new."""
        self.count += 1
        own = {"XDG_RUNTIME_DIR": str(self.folder), "HOME": str(self.folder), "LD_LIBRARY_PATH": str(self.driver)}
        command = [*before, sys.executable] if not before or "-m" not in before else before
        done = subprocess.run([*map(str, command), str(HERE / "probe_peers.py"), "--body", str(self.library), str(driver), "30", str(pairs),
                               str(spins), str(runs)], env={**os.environ, **own}, cwd=self.folder, text=True,
                              capture_output=True, timeout=600, check=False)  # fmt: skip
        values = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("RESULT")]
        if not values:
            sys.exit(f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return statistics.median([float(value) for value in values[0]][settling:])

    def tools(self):
        out = self.folder
        run = [self.options.build / "vramtrack", "run", "--quiet", "--probe", self.options.build / "probe"]
        yield "the heap alone", None, 0, lambda: []
        yield "the driver's double alone", None, 1, lambda: []
        yield "`vramtrack run`, at the driver", "the driver's double alone", 1, lambda: [*run, "--output", out / f"{self.count}.trace", "--"]
        yield "loaded, a program without a GPU", "the heap alone", 0, lambda: [*run, "--output", out / f"{self.count}.trace", "--"]
        if shutil.which("heaptrack"):
            yield "heaptrack", "the heap alone", 0, lambda: ["heaptrack", "--output", out / f"{self.count}.heap"]
        if self.options.memray:
            memray = [self.options.memray, "-m", "memray", "run", "--quiet", "--output"]
            yield "memray", "the heap alone", 0, lambda: [*memray, out / f"{self.count}.memray"]
            yield "memray `--native`", "the heap alone", 0, lambda: [*memray, out / f"{self.count}.memray", "--native"]

    def beside(self):
        rows = list(self.tools())
        ns = {name: [] for name, *_ in rows}
        for _ in range(self.options.rounds):
            for name, _, driver, command in rows:
                ns[name].append(self.run(command(), driver, self.options.pairs))
                for old in self.folder.glob(f"{self.count - 1}.*"):
                    old.unlink()
        middle = {name: statistics.median(values) for name, values in ns.items()}
        print("| | ns a pair | of which the tool |\n|---|---|---|")
        for name, alone, *_ in rows:
            print(f"| {name} | {middle[name]:,.0f} | {format(middle[name] - middle[alone], ',.0f') if alone else ''} |")

    def steps(self):
        probe = next(command for name, _, _, command in self.tools() if name.startswith("`vramtrack run`"))
        print("\n| allocations a second, alone | step alone, ms | step recorded, ms | ratio, median (10 to 90 %) |\n|---|---|---|---|")
        base = self.run([], 1, 20000)
        for rate in (10_000, 100_000):
            spins = int((1e9 / rate - base) / self.spin_ns(base))
            ratios, alone, recorded = [], [], []
            # Ten seconds' worth of records may be saved up for a burst; what lasts is measured after it.
            steps, settling = (21, 1) if rate == 10_000 else (600, 400)
            for _ in range(self.options.step_rounds):
                alone.append(self.run([], 1, 1000, spins, steps, settling))
                recorded.append(self.run(probe(), 1, 1000, spins, steps, settling))
                ratios.append(recorded[-1] / alone[-1])
            low, high = (statistics.quantiles(ratios, n=10)[k] for k in (0, -1))
            print(f"| {1e9 / statistics.median(alone):,.0f} | {statistics.median(alone) / 1e3:.2f} | {statistics.median(recorded) / 1e3:.2f} | "
                  f"{statistics.median(ratios):.4f} ({low:.4f} to {high:.4f}) |")  # fmt: skip

    def spin_ns(self, base):
        return (self.run([], 1, 2000, 10000, 5) - base) / 10000


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--body":
        return body(sys.argv[2], *map(int, sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--memray", help="a Python that has memray, of the same version as this one")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pairs", type=int, default=20000)
    parser.add_argument("--step-rounds", type=int, default=11)
    options = parser.parse_args()
    options.build = options.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        bench.beside()
        bench.steps()


if __name__ == "__main__":
    main()
