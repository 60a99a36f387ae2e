#!/usr/bin/env python3
"""Programs and tracers that come and go: what `trace live` records of 300 programs that start and end within a minute, and what 100 tracers leave that are
killed at random.

    sudo bench/live_churn.py VRAMTRACK KEEPER LIBRARY [--programs N] [--kills N] [--seed N]

KEEPER, LIBRARY: the program that the tests trace (traced_keeper) and its double of the driver (tests/telemetry/libcuda.so.1). Each program makes six
calls, and ends at once, or after a tenth of a second. A tracer is killed (SIGKILL) while the program allocates: every second one up to a second after its
start, while it loads and attaches, the others up to a second after it has. What the trace lacks is what it had not written yet.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/telemetry"))
from programs import Program, is_probed, until  # noqa: E402

MINUTE_S = 60
LATEST_KILL_S = 1


def start_tracer(options, trace, pid):
    return subprocess.Popen([options.binary, "trace", "live", "--pid", str(pid), "--output", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def report_of(options, trace):
    """The report of a trace, and what it says was lost; None: it holds nothing yet."""
    done = subprocess.run([options.binary, "trace", "report", "--format", "json", trace], capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout) if done.stdout else None


def events_in(report, pids):
    return [process["events"] for process in report["verdict"]["processes"] if process["pid"] in pids]


def starts_and_ends(options, folder, life_s):
    stays = Program(options.keeper)  # has the library probed, as on a node where others run
    tracer = start_tracer(options, folder / "starts.trace", os.getpid())
    tracer.stdout.readline()
    pids, begun = set(), time.monotonic()
    for number in range(options.programs):
        program = Program(options.keeper)
        pids.add(program.pid)
        program.do("k2", "u2")
        time.sleep(life_s)
        program.end()
        time.sleep(max(0.0, begun + (number + 1) * MINUTE_S / options.programs - time.monotonic()))
    took_s = time.monotonic() - begun
    tracer.send_signal(2)
    _, said = tracer.communicate()
    stays.end()
    events = events_in(report_of(options, folder / "starts.trace"), pids)
    print(f"{options.programs} programs in {took_s:.0f} s, that end {life_s:g} s after their last call: {len(events)} recorded, {sum(events):,} of "
          f"{6 * options.programs:,} events; {said.strip() or 'none lost'}", flush=True)  # fmt: skip


def kills(options, folder):
    draw = random.Random(options.seed)
    program = Program(options.keeper)
    left = unreadable = made = recorded = early = 0
    for number in range(options.kills):
        trace = folder / f"{number}.trace"
        tracer = start_tracer(options, trace, program.pid)
        if number % 2:
            tracer.stdout.readline()
        end = time.monotonic() + draw.uniform(0, LATEST_KILL_S)
        seen = 0
        while time.monotonic() < end:
            program.do("u1")
            seen += 2 if is_probed(program, options.library) else 0
        tracer.kill()
        tracer.communicate()
        left += not until(lambda: not is_probed(program, options.library), 5)
        if seen == 0:
            early += 1
            continue
        made += seen
        if not trace.exists():
            continue
        try:
            report = report_of(options, trace)
            recorded += sum(events_in(report, {program.pid})) if report else 0
        except (json.JSONDecodeError, KeyError):
            unreadable += 1
    program.do("u1")
    program.end()
    print(f"{options.kills} tracers killed (seed {options.seed}), {early} of them before they had probed anything: {left} left a probe, {unreadable} an unreadable "
          f"trace; {recorded:,} of {made:,} events were in the traces; the program went on")  # fmt: skip


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("binary", type=pathlib.Path)
    options.add_argument("keeper", type=pathlib.Path)
    options.add_argument("library", type=pathlib.Path)
    options.add_argument("--programs", type=int, default=300)
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    options.keeper, options.library = options.keeper.resolve(), options.library.resolve()
    with tempfile.TemporaryDirectory() as folder:
        for life_s in (0.1, 0) if options.programs else ():
            starts_and_ends(options, pathlib.Path(folder), life_s)
        kills(options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
