#!/usr/bin/env python3
"""What tools that look at a running program name of its GPU memory, and what they cost it: five tools on three programs, in one run.

    sudo bench/live_peers.py BUILD [--turns N] [--memray FOLDER]
    sudo tests/torch/lane.py python 2.15.0 bench/live_peers.py BUILD [...]     # with the program of PyTorch

The programs are a native one (C), a plain Python one (ctypes) and a PyTorch training job, which keeps each loss with its graph. The first two
call BUILD's double of CUDA's driver (tests/telemetry), and each of their steps keeps a block, allocates another one and releases it. All run
before a tool comes; only `run` and PyTorch's recorder must be there from the start. Costs are processor time, so that other work on the machine
does not count: of the program for each step, less what it takes without a tool (the least of the turns), and of the tool's processes. FOLDER is
where `pip install --target` has put memray. A tool that is not installed is left out, and the table says so.
"""
import argparse
import ctypes
import importlib.util
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PAUSE_EVERY, PAUSE_S = 50, 0.01
NATIVE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int cuMemAlloc_v2(unsigned long long*, size_t);
int cuMemFree_v2(unsigned long long);
static unsigned long long* kept;
static size_t count;
__attribute__((noinline)) static unsigned long long allocate(size_t bytes) {
  unsigned long long address = 0;
  cuMemAlloc_v2(&address, bytes);
  return address;
}
__attribute__((noinline)) static void train_step(void) {
  kept = realloc(kept, (count + 1) * sizeof *kept);
  kept[count++] = allocate(1 << 20);
  cuMemFree_v2(allocate(4 << 20));
}
static double used_s(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec + used.tv_nsec / 1e9;
}
int main(void) {
  char line[64];
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    const double before = used_s();
    for (int left = atoi(line + 6), i = 1; i <= left; ++i) {
      train_step();
      if (i % PAUSE_EVERY == 0) usleep(PAUSE_US);
    }
    printf("%.9f\n", used_s() - before);
    fflush(stdout);
  }
  return 0;
}
"""


def serve(train_step, **other):
    """Trains as it is told on standard input, and answers with the processor time that the steps took."""
    train_step()
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word != "train":
            print(other[word](), flush=True)
            continue
        before_s = time.process_time()
        for i in range(1, int(number) + 1):
            train_step()
            if i % PAUSE_EVERY == 0:
                time.sleep(PAUSE_S)
        print(time.process_time() - before_s, flush=True)


def plain_job(library):
    driver = ctypes.CDLL(library)
    kept = []

    def allocate(size):
        address = ctypes.c_ulonglong()
        driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def train_step():
        kept.append(allocate(1 << 20))
        driver.cuMemFree_v2(allocate(4 << 20))

    serve(train_step)


def torch_job():
    import torch
    from torch import nn
    from torch.nn import functional as F

    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
    losses = []

    def train_step():
        images = torch.randn(64, 128, device="cuda")
        labels = torch.zeros(64, dtype=torch.long, device="cuda")
        loss = F.cross_entropy(model(images), labels)
        loss.backward(retain_graph=True)
        losses.append(loss)

    def record():
        torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
        return "done"

    def recorded():
        """The lines of this file that hold most, by the recorder."""
        held = {}
        for segment in torch.cuda.memory._snapshot()["segments"]:
            for block in segment["blocks"]:
                if block["state"] != "active_allocated":
                    continue
                line = next((f"{pathlib.Path(f['filename']).name}:{f['line']} {f['name']}" for f in block.get("frames", []) if f["filename"] == __file__), "-")
                held[line] = held.get(line, 0) + block["size"]
        lines = sorted(held, key=held.get, reverse=True)[:2]
        return ", ".join(f"{line} holds {held[line] / 2**20:.0f} MiB" for line in lines) + ": no verdict"

    serve(train_step, record=record, recorded=recorded)


class Program:
    """One of the three. `events`: allocations and frees of a step; 0: not counted. `library`: whose function `probe` is counted."""

    def __init__(self, name, command, steps, events, library, probe, is_own_driver):
        self.name, self.command, self.steps, self.events, self.library, self.probe = name, command, steps, events, library, probe
        # The lane's own driver is PyTorch's.
        self.environment = {key: value for key, value in os.environ.items() if not (is_own_driver and key.startswith("LD_"))}


class Job:
    def __init__(self, program, *before, environment=None):
        self.program = program
        self.process = subprocess.Popen([*map(str, before), *map(str, program.command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, env=environment or program.environment)  # fmt: skip
        while (line := self.process.stdout.readline()) != "ready\n":
            if not line:
                sys.exit(f"the {program.name} program did not start")

    def ask(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def step_us(self, turns):
        steps = self.program.steps
        return min(float(self.ask(f"train {steps}")) for _ in range(turns)) / steps * 1e6

    def end(self):
        self.process.stdin.close()
        self.process.wait(300)


def processor_s(pid):
    """CPU time of a running process and of its children that have ended."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def line_with(tool, word):
    said = ""
    while line := tool.stdout.readline():
        said += line
        if word in line:
            break
    return said


def beside(program, turns, command, word):
    """(us a step, the tool's processor seconds, what it said) with a tool that is attached to the running program."""
    one = Job(program)
    tool = subprocess.Popen([str(each).replace("PID", str(one.process.pid)) for each in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = line_with(tool, word)
    before_s = processor_s(tool.pid)
    step_us = one.step_us(turns)
    used_s = processor_s(tool.pid) - before_s
    tool.send_signal(signal.SIGINT)
    said += tool.communicate(timeout=300)[0]
    one.end()
    return step_us, used_s, said


def leak_of(text):
    return next((line for line in text.splitlines() if line.startswith(("LEAK", "SUSPECTED"))), text.strip().partition("\n")[0])


def with_live(program, turns, binary, folder):
    command = [binary, "trace", "live", "--pid", "PID", "--output", folder / "live.trace"]
    step_us, used_s, said = beside(program, turns, command, "tracing ")
    lost = re.search(r"\d+ allocations or frees came too fast", said)
    return step_us, used_s, leak_of(said.partition(".trace\n")[2]) + (f"; {lost[0]}" if lost else "")


def with_run(program, turns, binary, folder):
    one = Job(program, binary, "run", "--output", folder / "run.trace", "--probe", binary.parent / "probe", "--")
    before_s = processor_s(one.process.pid)
    step_us = one.step_us(turns)
    used_s = processor_s(one.process.pid) - before_s
    one.end()
    return step_us, used_s, leak_of(subprocess.run([binary, "trace", "report", folder / "run.trace"], capture_output=True, text=True).stdout)


def with_bpftrace(program, turns):
    if not shutil.which("bpftrace"):
        return None
    script = f'BEGIN {{ printf("ready\\n"); }} uprobe:{program.library}:{program.probe} /pid == PID/ {{ @[ustack(8)] = count(); }}'
    step_us, used_s, said = beside(program, turns, ["bpftrace", "-e", script], "ready")
    stacks = re.findall(r"@\[\n(.*?)\n\]: (\d+)", said, re.DOTALL)
    frames, count = stacks[-1] if stacks else ("nothing", 0)
    top = " < ".join(frame.strip() for frame in frames.splitlines()[:3])
    return step_us, used_s, f"{top}, called {count} times: how often, not what is live"


def with_memray(program, turns, memray, folder):
    """It stops the program with a debugger until it allocates, so the program trains meanwhile."""
    if not memray:
        return None
    out, told = folder / f"{program.name}.memray", folder / f"{program.name}.json"
    environment = {**program.environment, "PYTHONPATH": f"{memray}:{program.environment.get('PYTHONPATH', '')}"}
    one = Job(program, environment=environment)  # it loads memray
    before_s = children_s()
    words = [sys.executable, "-m", "memray", "attach", "--native", "--method", "gdb", "-o", out, str(one.process.pid)]
    tool = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    end_s = time.monotonic() + 60
    while tool.poll() is None and time.monotonic() < end_s:
        one.ask(f"train {PAUSE_EVERY}")
    if tool.poll() is None:
        tool.kill()
    said = tool.communicate()[0]
    used_s = children_s() - before_s
    if tool.returncode:
        one.end()
        return None, used_s, "it could not attach: " + (said.strip().splitlines() or ["no answer within a minute"])[-1][-120:]
    step_us = one.step_us(turns)
    one.end()
    said = subprocess.run([sys.executable, "-m", "memray", "stats", "--json", "-o", told, "-f", out], capture_output=True, text=True, env=environment)
    if not told.exists():
        return step_us, used_s, said.stderr.strip()[-120:]
    told = json.loads(told.read_text())
    top = told["top_allocations_by_size"][0] if told["top_allocations_by_size"] else {"location": "nothing"}
    return step_us, used_s, f"{top['location']}: {told['metadata']['peak_memory'] / 2**20:.0f} MiB of the host at the peak, nothing of the GPU"


def with_recorder(program, turns):
    one = Job(program)
    one.ask("record")
    step_us = one.step_us(turns)
    named = one.ask("recorded")
    one.end()
    return step_us, None, named


def measure(program, turns, binary, folder, memray):
    plain = Job(program)
    base_us = plain.step_us(turns)
    plain.end()
    unit = program.events or 1
    what = "event" if program.events else "step"
    tools = {
        "`trace live`": lambda: with_live(program, turns, binary, folder),
        "`run`, from the start": lambda: with_run(program, turns, binary, folder),
        "bpftrace, counting stacks": lambda: with_bpftrace(program, turns),
        "`memray attach`": lambda: with_memray(program, turns, memray, folder),
        "`_record_memory_history`, called by the program": lambda: with_recorder(program, turns) if program.name == "PyTorch" else (None, None, "nothing: there is no PyTorch in it"),
    }  # fmt: skip
    first = f"{program.name}, {base_us / unit:.1f} us {'a' if what == 'step' else 'an'} {what}"
    for tool, run in tools.items():
        result = run()
        if result is None:
            print(f"| {first} | {tool} | | | not installed here |", flush=True)
        else:
            step_us, used_s, named = result
            cost = "" if step_us is None else f"{(step_us - base_us) / unit:.1f} us"
            used = "" if used_s is None else f"{used_s:.1f} s, once" if "memray" in tool else f"{used_s / (turns * program.steps * unit) * 1e6:.1f} us"
            named = named.replace(f"{folder}/", "").replace("|", "/")
            print(f"| {first} | {tool} | {cost} | {used} | {named} |", flush=True)
        first = ""


def asked(program, binary, folder):
    """Seconds from asking about a program that trains until the line is reported, and what is reported."""
    one = Job(program)
    one.process.stdin.write("train 10000000\n")
    one.process.stdin.flush()
    time.sleep(10)
    begun_s = time.monotonic()
    done = subprocess.run([binary, "trace", "live", "--pid", str(one.process.pid), "--duration", "15s", "--output", folder / "asked.trace"],
                          capture_output=True, text=True)  # fmt: skip
    took_s = time.monotonic() - begun_s
    one.process.kill()
    one.process.wait()
    return took_s, leak_of(done.stdout.partition(".trace\n")[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--memray", type=pathlib.Path)
    parser.add_argument("--only-asked", action="store_true", help="measure only how long it takes until the line of PyTorch's job is told")
    options = parser.parse_args()
    build = options.build.resolve()
    binary, driver = build / "vramtrack", build / "tests/telemetry/libcuda.so.1"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["XDG_RUNTIME_DIR"] = name
        (folder / "train.c").write_text(NATIVE)
        subprocess.run(["cc", "-O2", "-g", f"-DPAUSE_EVERY={PAUSE_EVERY}", f"-DPAUSE_US={PAUSE_S * 1e6:.0f}", "-o", folder / "train", folder / "train.c", driver,
                        f"-Wl,-rpath,{driver.parent}"], check=True)  # fmt: skip
        this = pathlib.Path(__file__).resolve()
        programs = [
            Program("native", [folder / "train"], 5000, 3, driver, "cuMemAlloc_v2", True),
            Program("Python", [sys.executable, this, "--plain", driver], 5000, 3, driver, "cuMemAlloc_v2", True),
        ]
        if found := importlib.util.find_spec("torch"):
            library = pathlib.Path(found.origin).parent / "lib/libc10.so"
            programs.append(Program("PyTorch", [sys.executable, this, "--torch"], 500, 0, library, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", False))
        if options.only_asked:
            return print("named {:.0f} s after it was asked for: {}".format(*asked(programs[-1], binary, folder)))
        print("| program | tool | cost in the program | in the tool | what it names |\n|---|---|---|---|---|", flush=True)
        for program in programs:
            measure(program, options.turns, binary, folder, options.memray)
        if not found:
            print("| PyTorch | | | | not installed here (tests/torch/lane.py) |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plain"]:
        plain_job(sys.argv[2])
    elif sys.argv[1:2] == ["--torch"]:
        torch_job()
    else:
        main()
