#!/usr/bin/env python3
"""What tools that attach to a running PyTorch job cost it, and what they name: `trace live` beside `run`, PyTorch's recorder, bpftrace and memray.

    tests/torch/lane.py python 2.15.0 bench/live_peers.py BUILD [--turns N] [--steps N] [--memray FOLDER] [--only-asked]

The job trains and keeps each loss, with its graph. It runs before a tool comes; only `run` and the recorder must be there from the start.
Costs are processor time, so that other work on the machine does not count: of the job for each step, less what it takes without a tool (the
least of the turns), and of the tool's process. FOLDER is where `pip install --target` has put memray.
"""
import argparse
import glob
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

REPORT = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"


def job():
    """Trains as it is told on standard input, and answers with the processor time that the steps took."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
    losses = []

    def train_step():
        images = torch.randn(64, 128, device="cuda")
        labels = torch.zeros(64, dtype=torch.long, device="cuda")
        loss = F.cross_entropy(model(images), labels)  # LINE loss
        loss.backward(retain_graph=True)
        losses.append(loss)

    def own_lines():
        """The lines of this file that hold most, by the recorder."""
        held = {}
        for segment in torch.cuda.memory._snapshot()["segments"]:
            for block in segment["blocks"]:
                if block["state"] != "active_allocated":
                    continue
                line = next((f"{pathlib.Path(f['filename']).name}:{f['line']} {f['name']}" for f in block.get("frames", []) if f["filename"] == __file__), "-")
                held[line] = held.get(line, 0) + block["size"]
        return sorted(held, key=held.get, reverse=True)[:2]

    train_step()
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word == "record":
            torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
            print("done", flush=True)
        if word == "recorded":
            print(", ".join(own_lines()), flush=True)
        if word == "train":
            before = time.process_time()
            for _ in range(int(number)):
                train_step()
            print(time.process_time() - before, flush=True)


class Job:
    def __init__(self, *before):
        self.process = subprocess.Popen([*map(str, before), sys.executable, __file__, "--job"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        while (line := self.process.stdout.readline()) != "ready\n":
            if not line:
                sys.exit("the job did not start")

    def ask(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def pid(self):
        """Of the job itself, below what started it."""
        pid = self.process.pid
        while children := pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            pid = int(children[0])
        return pid

    def step_us(self, options):
        return min(float(self.ask(f"train {options.steps}")) for _ in range(options.turns)) / options.steps * 1e6

    def end(self):
        self.process.stdin.close()
        self.process.wait(300)


def processor_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def attached(options, command, ready, end=signal.SIGINT):
    """(us a step, the tool's processor seconds, its output) of a job that runs already."""
    one = Job()
    before_s = processor_s()
    tool = subprocess.Popen([str(word).replace("PID", str(one.pid())) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = ready(tool)
    step_us = one.step_us(options)
    if end is not None:
        tool.send_signal(end)
    said += tool.communicate(timeout=300)[0]
    used_s = processor_s() - before_s
    one.end()
    return step_us, used_s, said


def asked(binary, folder):
    """Seconds from asking about a job that trains until the line is told, and what is told."""
    one = Job()
    one.process.stdin.write("train 10000000\n")
    one.process.stdin.flush()
    time.sleep(10)
    begun = time.monotonic()
    done = subprocess.run([binary, "trace", "live", "--pid", str(one.pid()), "--duration", "20s", "--output", folder / "asked.trace"],
                          capture_output=True, text=True)  # fmt: skip
    took_s = time.monotonic() - begun
    one.process.kill()
    one.process.wait()
    return took_s, leak_of(done.stdout.partition(".trace\n")[2])


def line_with(word):
    def wait(tool):
        said = ""
        while line := tool.stdout.readline():
            said += line
            if word in line:
                break
        return said
    return wait


def leak_of(text):
    return next((line for line in text.splitlines() if line.startswith(("LEAK", "SUSPECTED"))), text.strip().partition("\n")[0])


def row(name, base_us, step_us, steps, used_s, named):
    tool = "" if used_s is None else f"{used_s / steps * 1e6:.0f} us"
    print(f"| {name} | {step_us - base_us:.0f} us ({100 * (step_us / base_us - 1):.1f} %) | {tool} | {named} |", flush=True)


def main():
    if sys.argv[1:] == ["--job"]:
        return job()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--memray", type=pathlib.Path)
    parser.add_argument("--only-asked", action="store_true", help="measure only how long it takes until the line is told")
    options = parser.parse_args()
    build, steps = options.build.resolve(), options.turns * options.steps
    binary = build / "vramtrack"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ.update(XDG_RUNTIME_DIR=name)
        if options.only_asked:
            return print("named {:.0f} s after it was asked for: {}".format(*asked(binary, folder)))
        plain = Job()
        base_us = plain.step_us(options)
        plain.end()
        print(f"a step takes {base_us:.0f} us of processor time\n\n| tool | cost in the job, a step | in the tool | what it names |\n|---|---|---|---|")
        live = [binary, "trace", "live", "--pid", "PID", "--output", folder / "live.trace"]
        step_us, used_s, said = attached(options, live, line_with("tracing "))
        row("`trace live`", base_us, step_us, steps, used_s, leak_of(said.partition(".trace\n")[2]))
        run = Job(binary, "run", "--output", folder / "run.trace", "--probe", build / "probe", "--")
        step_us = run.step_us(options)
        run.end()
        report = subprocess.run([binary, "trace", "report", folder / "run.trace"], capture_output=True, text=True).stdout
        row("`run`, from the start", base_us, step_us, steps, None, leak_of(report))
        recorder = Job()
        recorder.ask("record")
        step_us = recorder.step_us(options)
        row("`_record_memory_history`, called by the job", base_us, step_us, steps, None, recorder.ask("recorded"))
        recorder.end()
        library = next(iter(glob.glob(f"{sys.prefix}/lib/python3*/site-packages/torch/lib/libc10.so")))
        probe = f"uprobe:{library}:{REPORT} /pid == PID/ {{ @[ustack(8)] = count(); }}"
        try:
            step_us, used_s, said = attached(options, ["bpftrace", "-e", f'BEGIN {{ printf("ready\\n"); }} {probe}'], line_with("ready"))
            top = [line.strip() for line in said.splitlines() if line.startswith("    ")][-8:]
            row("bpftrace, counting stacks", base_us, step_us, steps, used_s, f"{said.count('@[')} stacks; the most often seen: " + " < ".join(top[:3]))
        except FileNotFoundError:
            print("| bpftrace | not installed | | |")
        if options.memray:
            os.environ["PYTHONPATH"] = f"{options.memray}:{os.environ.get('PYTHONPATH', '')}"
            out = folder / "memray.bin"
            attach = [sys.executable, "-m", "memray", "attach", "--native", "--method", "gdb", "-o", out, "PID"]
            step_us, used_s, said = attached(options, attach, lambda tool: (time.sleep(20), "")[1], None)
            tree = subprocess.run([sys.executable, "-m", "memray", "stats", "--json", "-o", folder / "memray.json", "-f", out], capture_output=True, text=True)
            named = said.strip()[-200:].replace("\n", " ") + tree.stderr.strip()[-200:]
            if (folder / "memray.json").exists():
                told = json.loads((folder / "memray.json").read_text())
                named = f"{told['top_locations_by_size'][0]['location']}: {told['metadata']['peak_memory']} bytes of the host at the peak, nothing of the GPU"
            row("`memray attach`", base_us, step_us, steps, used_s, named)


main()
