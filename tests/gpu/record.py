#!/usr/bin/env python3
"""Runs the programs that leak on purpose, many at once on GPU 0, in waves, and records device and processes at 10 Hz.

    record.py OUT [--seconds 465] [--waves 2] [--only REGEX] [--dry-run] [--leak-cuda FILE] [--vramtrack FILE]

record.sh is the way to call it. Into OUT/raw: machine.csv, runs.csv (what ran, with its labels), samples.csv
(time_s,pid,used_bytes; pid 0 is the device), and of each run NAME.truth.csv, NAME.events.csv (job.py), NAME.log. Each
program has its own memory cap, such that all of a wave fit on the card; a program that its own end does not
end is stopped. What cannot run here is left out, and why is said. Exit 0: something was recorded; 77: no GPU here.

--dry-run needs no GPU: the programs simulate their allocator, and the device is the sum of what they say.
"""
import argparse
import csv
import dataclasses
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import zlib

import nvml

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
SAMPLE_PERIOD_S = 0.1
LEAD_S = 3.0  # of a quiet device before and after a wave
PROBE_S = 90
GRACE_S = 8.0  # for a program to notice that its time is up
OVERHEAD_BYTES = 800 * MIB  # of a process beside its allocator: CUDA's context and the libraries' kernels
LEAST_CAP_BYTES, MOST_CAP_BYTES = 1024 * MIB, 3072 * MIB
HOST_BYTES = 2560 * MIB  # main memory of a process with a framework in it
DRY_RUN_CAP_BYTES = 64 * MIB


@dataclasses.dataclass
class Run:
    name: str
    framework: str
    command: list
    kind: str
    leak: int
    pattern: str
    twin: str
    expandable: int
    wave: int = 0
    cap_bytes: int = 0
    pid: int = 0
    started_s: float = 0.0
    ended_s: float = 0.0
    exit_status: int = 0
    process: subprocess.Popen = None


COLUMNS = ["name", "framework", "kind", "leak", "pattern", "twin", "expandable", "wave", "cap_bytes", "pid", "started_s",
           "ended_s", "exit_status"]


class DryGpu:
    """The sum of what the running programs say that they reserve."""
    name, uuid, driver, capacity_bytes = "dry run", "", "", 8 << 30

    def __init__(self, raw):
        self.raw = raw
        self.runs = []

    def processes(self):
        used = {}
        for run in self.runs:
            path = self.raw / f"{run.name}.truth.csv"
            if run.process is not None and run.process.poll() is None and path.exists():
                with path.open("rb") as file:  # whole lines only: the program is writing
                    file.seek(max(0, path.stat().st_size - 256))
                    rows = file.read().decode().split("\n")[1:-1]
                if rows:
                    used[run.pid] = 16 * MIB + int(rows[-1].split(",")[2])
        return used

    def used_bytes(self):
        return 32 * MIB + sum(self.processes().values())


def inventory(options):
    """Every program that can run here, as runs in order of importance, and the reasons of those that cannot."""
    frameworks = [("pytorch", [sys.executable, str(HERE / "leak_pytorch.py")]), ("cuda", [options.leak_cuda]),
                  ("jax", [sys.executable, str(HERE / "leak_jax.py")]), ("cupy", [sys.executable, str(HERE / "leak_cupy.py")])]
    ranked, left_out = [], []
    for framework, command in frameworks:
        if not command[0]:
            left_out.append(f"{framework}: the program was not built: no C compiler here")
            continue
        try:
            probe = subprocess.run([*command, "--probe", *options.dry], capture_output=True, text=True, timeout=PROBE_S, env=environment(options))
        except subprocess.TimeoutExpired:
            left_out.append(f"{framework}: did not start within {PROBE_S} s")
            continue
        if probe.returncode:
            said = (probe.stderr.strip() or "no reason given").splitlines()[-1]
            left_out.append(f"{framework}: {said}")
            continue
        listed = subprocess.run([*command, "--list"], capture_output=True, text=True, timeout=60, check=True).stdout
        kinds = list(csv.DictReader(listed.splitlines()))
        for place, kind in enumerate(kinds):
            for expandable in range(2 if int(kind["expandable"]) and framework == "pytorch" else 1):
                name = f"{framework}_{kind['kind']}{'_expandable' if expandable else ''}"
                twin = f"{framework}_{kind['twin']}" if kind["twin"] else ""
                if re.search(options.only, name):
                    ranked.append(((place + 0.5 * expandable) / len(kinds), Run(
                        name, framework, command, kind["kind"], int(kind["leak"]), kind["pattern"], twin, expandable)))
    ranked.sort(key=lambda one: one[0])
    return [run for _, run in ranked], left_out


def environment(options, run=None):
    """A user's own settings of an allocator must not get in: expandable segments stand there only where asked for."""
    foreign = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "XLA_CLIENT_MEM_FRACTION")
    variables = {key: value for key, value in os.environ.items() if key not in foreign}
    if options.uuid:  # CUDA counts GPUs in another order than the driver
        variables["CUDA_VISIBLE_DEVICES"] = options.uuid
    if run is not None and run.expandable:
        variables["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    variables.update(VRAMTRACK_DEVICE_BYTES=str(options.capacity_bytes), OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1")
    return variables


def host_available_bytes():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def budget(runs, waves, free_bytes, host_bytes, processors):
    """How many runs at once, and each one's cap, so that a wave fits on the card and in main memory."""
    room = int(free_bytes * 0.94)
    wanted = -(-len(runs) // waves)
    at_once = max(1, min(wanted, room // (LEAST_CAP_BYTES + OVERHEAD_BYTES), host_bytes // HOST_BYTES, 3 * processors))
    cap_bytes = min(MOST_CAP_BYTES, max(room // at_once - OVERHEAD_BYTES, 256 * MIB))
    return at_once, cap_bytes // MIB * MIB


class Recorder:
    """Writes samples.csv from a thread, ten times a second; a reading that fails makes no sample."""

    def __init__(self, gpu, path):
        self._gpu = gpu
        self._file = path.open("w")
        self._file.write("time_s,pid,used_bytes\n")
        self._stop = threading.Event()
        self.failures = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            now = time.time()
            try:
                rows = [(0, self._gpu.used_bytes()), *sorted(self._gpu.processes().items())]
                self._file.write("".join(f"{now:.3f},{pid},{used}\n" for pid, used in rows))
            except (nvml.Unavailable, OSError, ValueError):
                self.failures += 1
            due = max(due + SAMPLE_PERIOD_S, time.monotonic())

    def close(self):
        self._stop.set()
        self._thread.join()
        self._file.close()


def start(run, until, raw, options):
    share = 0.5 + 0.38 * (zlib.crc32(run.name.encode()) % 1000) / 1000  # leaks of many speeds
    command = [*run.command, "--kind", run.kind, "--out", str(raw / run.name), "--cap-mib", str(run.cap_bytes // MIB),
               "--until", f"{until:.3f}", "--life-share", f"{share:.3f}", *options.dry]
    run.started_s = time.time()
    with (raw / f"{run.name}.log").open("w") as log:
        run.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment(options, run))
    run.pid = run.process.pid


def await_end(runs, deadline):
    """Waits until all have ended, kills what is left at the deadline, and notes when each ended and how."""
    pending = list(runs)
    while pending:
        for run in list(pending):
            status = run.process.poll()
            if status is None and time.time() >= deadline:
                run.process.kill()
                status = run.process.wait()
            if status is not None:
                run.ended_s, run.exit_status = time.time(), status
                pending.remove(run)
        time.sleep(0.05 if pending else 0)


def write_csv(path, header, rows):
    with path.open("w") as file:
        file.write(",".join(header) + "\n")
        file.writelines(",".join(str(value).replace(",", " ") for value in row) + "\n" for row in rows)


def watch(options, raw):
    """vramtrack itself beside it, at its shortest interval, for its live verdicts."""
    if not options.vramtrack or options.dry_run:
        return None
    with (raw / "watch.jsonl").open("w") as out, (raw / "watch.log").open("w") as log:
        return subprocess.Popen([options.vramtrack, "watch", "--json", "--interval", "0.1s", "--every", "1h", "--set",
                                 f"store.path={raw / 'watch.db'}"], stdout=out, stderr=log, stdin=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=465, help="of wall-clock time for everything")
    parser.add_argument("--waves", type=int, default=2)
    parser.add_argument("--only", default="", help="runs whose name this regular expression finds")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--leak-cuda", default="")
    parser.add_argument("--vramtrack", default="")
    parser.add_argument("--nvml", default="libnvidia-ml.so.1")
    options = parser.parse_args()
    options.dry = ["--dry-run"] if options.dry_run else []
    begun = time.time()
    raw = options.out / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    try:
        gpu = DryGpu(raw) if options.dry_run else nvml.Gpu(options.nvml)
    except nvml.Unavailable as error:
        print(f"record: {error}", file=sys.stderr)
        return 77
    options.capacity_bytes, options.uuid = gpu.capacity_bytes, gpu.uuid

    runs, left_out = inventory(options)
    free_bytes = gpu.capacity_bytes - gpu.used_bytes()
    processors = len(os.sched_getaffinity(0))
    at_once, cap_bytes = budget(runs, options.waves, free_bytes, host_available_bytes(), processors)
    if options.dry_run:
        at_once, cap_bytes = max(1, -(-len(runs) // options.waves)), DRY_RUN_CAP_BYTES
    left_out += [f"{run.name}: no room in {options.waves} waves of {at_once}" for run in runs[at_once * options.waves:]]
    runs = runs[:at_once * options.waves]
    for line in left_out:
        print(f"left out: {line}", flush=True)
    if not runs:
        print("record: nothing can run here", file=sys.stderr)
        return 77
    waves = math.ceil(len(runs) / at_once)
    wave_s = (options.seconds - (time.time() - begun)) / waves
    lead_s = min(LEAD_S, wave_s / 10)
    print(f"{len(runs)} runs in {waves} waves of {at_once}, {wave_s:.0f} s each, {cap_bytes // MIB} MiB a program", flush=True)

    write_csv(raw / "machine.csv", ["key", "value"], [
        ("gpu", gpu.name), ("driver", gpu.driver), ("capacity_bytes", gpu.capacity_bytes), ("dry_run", int(options.dry_run)),
        ("recorded", time.strftime("%Y-%m-%d", time.gmtime(begun)))])
    if options.dry_run:
        gpu.runs = runs
    recorder = Recorder(gpu, raw / "samples.csv")
    live = watch(options, raw)
    try:
        for number in range(waves):
            wave = runs[number * at_once:(number + 1) * at_once]
            end = time.time() + wave_s
            time.sleep(lead_s)
            grace_s = min(GRACE_S, wave_s / 5)
            for run in wave:
                run.wave, run.cap_bytes = number + 1, cap_bytes
                start(run, end - lead_s - grace_s, raw, options)
            print(f"wave {number + 1}: {', '.join(run.name for run in wave)}", flush=True)
            await_end(wave, end - lead_s)
            time.sleep(lead_s)
    finally:
        for run in runs:
            if run.process is not None and run.process.poll() is None:
                run.process.kill()
                run.process.wait()
        if live is not None:
            live.send_signal(signal.SIGINT)
            try:
                live.wait(10)
            except subprocess.TimeoutExpired:
                live.kill()
        recorder.close()
        write_csv(raw / "runs.csv", COLUMNS, [[getattr(run, column) for column in COLUMNS] for run in runs if run.pid])
    if recorder.failures:
        print(f"{recorder.failures} samples could not be taken", flush=True)
    print(f"recorded in {time.time() - begun:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the programs are ended, too
    sys.exit(main())
