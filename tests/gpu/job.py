"""What the programs that leak on purpose share: options, pace, an own count of what they hold, and the truth they write.

A program is a table of kinds over one framework (leak_pytorch.py, leak_jax.py, leak_cupy.py; leak_cuda.c does the
same in C). It runs ONE kind in one process, under its own memory cap, until that is exhausted or --until comes:

    leak_pytorch.py --kind losses_kept --out raw/pytorch_losses_kept --cap-mib 3072 --until 1767225600
    leak_pytorch.py --list       the kinds, as CSV; needs no framework
    leak_pytorch.py --probe      exit 0 and the framework's version, or 77 and why it cannot run here
    ... --dry-run                without a GPU: small arrays on the CPU, a simulated allocator with the same cap

It writes OUT.truth.csv (time_s,allocated_bytes,reserved_bytes,live_bytes: ten rows a second; live is its own count)
and OUT.events.csv (time_s,event,detail). Events: framework (detail: its version), start (of the loop), onset (the
first thing is about to be lost), oom, end. Times are seconds since 1970. Exit 0: ran as meant, out of memory
included; 77: no framework or no GPU here; anything else: a defect of the program.
"""
import argparse
import dataclasses
import random
import sys
import threading
import time

MIB = 1 << 20
TRUTH_PERIOD_S = 0.1


class Unavailable(Exception):
    """The framework or the GPU is missing; the text says which."""


class SimulatedOutOfMemory(Exception):
    """A dry run's allocator, or a program's own budget, is exhausted."""


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    run: object  # run(job)
    leak: bool
    pattern: str  # as vramtrack's JSON spells it; "none" when healthy
    twin: str = ""  # the same program with the defect repaired, or put in
    expandable: bool = False  # worth running with PyTorch's expandable segments, too


def twins(run, leaking, fixed, pattern, expandable=False):
    """One program, run(job, fixed), as its leaking and its repaired kind."""
    return [Kind(leaking, lambda job: run(job, False), True, pattern, fixed, expandable),
            Kind(fixed, lambda job: run(job, True), False, "none", leaking, expandable)]


def healthy(run, name, expandable=False):
    return Kind(name, run, False, "none", "", expandable)


class SimulatedMemory:
    """A dry run's allocator: holds what the job counts, keeps what was once reserved until released."""

    def __init__(self, version):
        self.version = version
        self.held_bytes = 0
        self.kept_bytes = 0

    def allocated_bytes(self):
        return self.held_bytes

    def reserved_bytes(self):
        return self.kept_bytes

    def changed(self, live_bytes, cap_bytes):
        if live_bytes > cap_bytes:
            raise SimulatedOutOfMemory(f"{live_bytes} bytes live of {cap_bytes}")
        self.held_bytes = live_bytes
        self.kept_bytes = max(self.kept_bytes, -(-live_bytes // (2 * MIB)) * 2 * MIB)

    def release(self):
        self.kept_bytes = -(-self.held_bytes // (2 * MIB)) * 2 * MIB

    def is_oom(self, error):
        return isinstance(error, SimulatedOutOfMemory)


class Job:
    """One run. `memory` is the framework's: version, allocated_bytes() and reserved_bytes() (None: it does not report it),
    changed(live, cap), release() (give cached memory back to the driver) and is_oom(error)."""

    def __init__(self, options, memory, clock=time):
        self.memory = memory
        self.clock = clock
        self.dry_run = options.dry_run
        self.cap_bytes = options.cap_mib * MIB
        self.until = options.until
        self.step_s = options.step_s
        self.random = random.Random(options.kind)
        self.live_bytes = 0
        self._has_onset = False
        self._events = open(options.out + ".events.csv", "w", buffering=1)
        self._events.write("time_s,event,detail\n")
        self._truth = open(options.out + ".truth.csv", "w", buffering=1)
        self._truth.write("time_s,allocated_bytes,reserved_bytes,live_bytes\n")
        self._stop = threading.Event()
        self._writer = threading.Thread(target=self._write_truth, daemon=True)
        self._life_share = options.life_share
        self.event("framework", memory.version)
        self._writer.start()

    def begin(self):
        """The loop starts now: its pace is laid out so that a leak meets the cap after life_share of the time left."""
        left_s = max(self.until - self.clock.time(), 10 * self.step_s)
        self.life_s = left_s * self._life_share
        self.life_steps = max(int(self.life_s / self.step_s), 10)
        self.free_bytes = max(self.cap_bytes - (self.memory.reserved_bytes() or 0), self.cap_bytes // 4)
        self.leak_bytes = max(self.free_bytes // self.life_steps, 4096)  # a step's, to fill the cap in life_steps
        self.epoch_steps = max(self.life_steps // 12, 2)
        self.event("start", f"{self.leak_bytes} bytes a step")

    def steps(self):
        """Step numbers, one every step_s, until the time is up. A step that was late is not made up for."""
        due = self.clock.monotonic()
        step = 0
        while self.clock.time() < self.until:
            yield step
            step += 1
            due = max(due + self.step_s, self.clock.monotonic())
            self.clock.sleep(max(0.0, due - self.clock.monotonic()))

    def onset(self, leaks=True):
        """Call before something is lost; the first call that leaks is the onset."""
        if leaks and not self._has_onset:
            self._has_onset = True
            self.event("onset")

    def hold(self, size_bytes):
        """Counts bytes that are now held (negative: given back)."""
        self.memory.changed(self.live_bytes + size_bytes, self.cap_bytes)
        self.live_bytes += size_bytes

    def event(self, name, detail=""):
        self._events.write(f"{self.clock.time():.3f},{name},{' '.join(detail.replace(',', ' ').split())[:160]}\n")

    def close(self):
        self.event("end")
        self._stop.set()
        self._writer.join()
        self._truth.close()
        self._events.close()

    def _write_truth(self):
        due = time.monotonic()
        while True:
            told = ["" if size is None else size for size in (self.memory.allocated_bytes(), self.memory.reserved_bytes())]
            self._truth.write(f"{self.clock.time():.3f},{told[0]},{told[1]},{self.live_bytes}\n")
            due = max(due + TRUTH_PERIOD_S, time.monotonic())
            if self._stop.wait(max(0.0, due - time.monotonic())):
                return


def parse(kinds, arguments):
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--probe", action="store_true")
    parser.add_argument("--kind", choices=[kind.name for kind in kinds])
    parser.add_argument("--out", help="prefix of the files written")
    parser.add_argument("--cap-mib", type=int, default=1024)
    parser.add_argument("--until", type=float, help="seconds since 1970; default: 200 s from now")
    parser.add_argument("--life-share", type=float, default=0.7, help="of the time left, until a leak meets the cap")
    parser.add_argument("--step-s", type=float)
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args(arguments)
    options.until = options.until or time.time() + 200
    options.step_s = options.step_s or (0.02 if options.dry_run else 0.2)
    if not (options.list or options.probe or (options.kind and options.out)):
        parser.error("give --list, --probe, or --kind and --out")
    return options


def main(kinds, open_framework, arguments=None, clock=time):
    """The whole program. open_framework(options) imports the framework, sets the cap, and returns what the job
    calls `memory`; it raises Unavailable. clock: time(), monotonic() and sleep(). Returns the exit status."""
    options = parse(kinds, arguments)
    if options.list:
        print("kind,leak,pattern,twin,expandable")
        for kind in kinds:
            print(f"{kind.name},{int(kind.leak)},{kind.pattern},{kind.twin},{int(kind.expandable)}")
        return 0
    try:
        memory = open_framework(options)
    except (Unavailable, ImportError) as error:
        print(f"{sys.argv[0]}: {error}", file=sys.stderr)
        return 77
    if options.probe:
        print(memory.version)
        return 0
    job = Job(options, memory, clock)
    try:
        next(kind for kind in kinds if kind.name == options.kind).run(job)
    except Exception as error:
        if not (memory.is_oom(error) or isinstance(error, SimulatedOutOfMemory)):
            raise
        job.event("oom", str(error))
    finally:
        job.close()
    return 0
