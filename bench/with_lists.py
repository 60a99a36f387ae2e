#!/usr/bin/env python3
"""Measures whether a list of processes makes the answer about a device better or worse than the device's curve alone.

    bench/with_lists.py BINARY [--seed N] [--each N] [--keep FOLDER]

Writes logs of GPUs, of families that are listed below, each with its truth, and analyzes each twice: the log of the GPU
alone, and with the log of its processes, which is read more rarely. A trace counts as notified if an alert about a leak
was raised on any of its series. Prints both answers by family, and the traces that differ.
"""
import argparse
import concurrent.futures
import datetime
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

MIB = 1
GIB = 1024
HOUR = 3600
BEGIN = 1772323200  # 2026-03-01 00:00 UTC
UUID = "GPU-aaaaaaaa-0000-0000-0000-000000000000"


class Trace:
    """A card, its programs as functions of time in MiB, and what is true of it."""

    def __init__(self, family, draw):
        self.family, self.draw = family, draw
        self.capacity = draw.choice([16, 24, 24, 40, 48, 80, 80, 141]) * GIB
        self.period_s = draw.choice([1, 2, 5, 10, 15])
        self.list_s = draw.choice([15, 30, 60, 60, 120, 300])
        self.duration_s = 0
        self.programs = []  # (pid, command, bytes(t) -> MiB or None, is listed)
        self.busy = lambda t: 85
        self.leak = False
        self.onset_s = None

    def add(self, command, mib, listed=True):
        self.programs.append((4000 + 17 * len(self.programs), command, mib, listed))

    def tenant(self, share):
        """A program that stays where it is, or breathes."""
        mib = self.capacity * share
        kind = self.draw.choice(["still", "swings", "noise", "serves"])
        swing = mib * self.draw.uniform(0.05, 0.3)
        every_s = math.exp(self.draw.uniform(math.log(20), math.log(900)))
        noise = self.noise(swing / 4)
        if kind == "still":
            return lambda t: mib
        if kind == "swings":
            return lambda t: mib + swing * ((t % every_s) / every_s)
        if kind == "noise":
            return lambda t: mib + noise(t)
        return lambda t: mib + swing * round(abs(noise(t)) / max(swing / 4, 1e-9)) / 4

    def noise(self, sigma):
        seed = self.draw.random()
        return lambda t: random.Random(f"{seed} {int(t)}").gauss(0, sigma)

    def growth(self, room, life_s, kind=None):
        """How a leak goes through `room` MiB in `life_s`."""
        kind = kind or self.draw.choice(["straight", "straight", "steps", "requests", "faster"])
        every_s = max(20.0, life_s / self.draw.uniform(15, 60))
        share = self.draw.uniform(0.6, 1.4)
        if kind == "steps":
            return lambda s: room * math.floor(s / every_s) * every_s / life_s
        if kind == "requests":  # the rate follows the load
            return lambda s: room * (s + 0.35 * life_s / 12 * (1 - math.cos(12 * s * share / life_s))) / life_s
        if kind == "faster":
            return lambda s: room * (0.6 * s / life_s + 0.4 * (s / life_s) ** 2)
        return lambda s: room * s / life_s

    def load(self, mib, over_s, stages):
        if stages < 2:
            return lambda s: mib * min(1.0, max(0.0, s / over_s))
        return lambda s: mib * min(1.0, max(0.0, math.floor(s / over_s * stages) / stages))

    def write(self, folder):
        name = pathlib.Path(folder)
        name.mkdir(parents=True, exist_ok=True)
        gpu, apps = name / "gpu.csv", name / "apps.csv"
        driver = 300
        full_s = None
        with open(gpu, "w") as out:
            out.write("timestamp, index, name, uuid, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n")
            t = 0.0
            while t <= self.duration_s:
                used = driver + sum(mib(t) or 0 for _, _, mib, _ in self.programs)
                if used > self.capacity:
                    full_s = t
                    break
                out.write(f"{stamp(t)}, 0, NVIDIA A100, {UUID}, {used:.0f} MiB, {self.capacity} MiB, "
                          f"{self.busy(t):.0f} %\n")
                t += self.period_s
        end_s = full_s if full_s is not None else self.duration_s
        offset_s = self.draw.uniform(0, self.list_s)
        with open(apps, "w") as out:
            out.write("timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n")
            t = offset_s
            while t <= end_s:
                for pid, command, mib, listed in self.programs:
                    held = mib(t)
                    if listed and held:
                        out.write(f"{stamp(t)}, {UUID}, {pid}, {command}, {held:.0f} MiB\n")
                t += self.list_s
        # People must be notified of a leak once what is left of it is an hour, or a third of its life.
        due = False
        if self.leak and full_s is not None:
            due = True
        elif self.leak:
            left = self.full_at_s - end_s
            due = left <= min(HOUR, (self.full_at_s - self.onset_s) / 3)
        return {"gpu": str(gpu), "apps": str(apps), "leak": self.leak, "due": due, "onset_s": self.onset_s,
                "full_at_s": self.full_at_s if self.leak else None, "end_s": end_s, "family": self.family}


def stamp(t):
    when = datetime.datetime.fromtimestamp(BEGIN + t, datetime.timezone.utc)
    return when.strftime("%Y/%m/%d %H:%M:%S.") + f"{when.microsecond // 1000:03d}"


def leaking(t, program_mib, onset_s, life_s, room, kind=None):
    grows = t.growth(room, life_s, kind)
    t.leak, t.onset_s, t.full_at_s = True, onset_s, onset_s + life_s
    return lambda s: program_mib(s) and program_mib(s) + grows(max(0.0, s - onset_s))


def log_uniform(draw, low, high):
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def cut(t, draw):
    """Some recordings end before memory does."""
    t.duration_s = t.onset_s + (t.full_at_s - t.onset_s) * (1.2 if draw.random() < 0.6 else draw.uniform(0.5, 1.0))


def single_training(t, draw):
    """One training job that leaks, and nobody else."""
    base = t.capacity * draw.uniform(0.2, 0.6)
    begin_s, over_s = draw.uniform(30, 300), log_uniform(draw, 10, 240)
    onset_s = begin_s + over_s + draw.choice([0, 0, log_uniform(draw, 60, 7200)])
    load = t.load(base, over_s, draw.choice([1, 1, 4]))
    noise = t.noise(draw.choice([0, 20, 100]))
    t.add("python train.py", leaking(t, lambda s: None if s < begin_s else 400 + load(s - begin_s) + noise(s), onset_s,
                                     log_uniform(draw, 0.7 * HOUR, 14 * HOUR), t.capacity - base - 700))
    t.busy = lambda s: 0 if s < begin_s + over_s else 92
    cut(t, draw)


def beside_tenant(t, draw):
    """A slow leak beside one to three programs that stay."""
    shares = [draw.uniform(0.08, 0.2) for _ in range(draw.choice([1, 1, 2, 3]))]
    for i, share in enumerate(shares):
        t.add(f"python serve{i}.py", t.tenant(share))
    base = t.capacity * draw.uniform(0.05, 0.15)
    room = t.capacity - 1.35 * sum(shares) * t.capacity - base - 300
    onset_s = log_uniform(draw, 120, 3 * HOUR)
    t.add("python worker.py", leaking(t, lambda s: base, onset_s, log_uniform(draw, 2 * HOUR, 24 * HOUR), room))
    cut(t, draw)


def beside_load(t, draw):
    """A leak beside another program that loads, once or again and again."""
    base = t.capacity * draw.uniform(0.05, 0.2)
    model = t.capacity * draw.uniform(0.15, 0.35)
    over_s = log_uniform(draw, 60, 1800)
    comes_s = log_uniform(draw, 300, 2 * HOUR)
    stays_s = draw.choice([1e9, log_uniform(draw, 1200, 3 * HOUR)])
    load = t.load(model, over_s, draw.choice([1, 1, 5]))
    pause_s = log_uniform(draw, 120, 1200)

    def loads(s):
        if s < comes_s:
            return None
        since = (s - comes_s) % (over_s + stays_s + pause_s)
        return None if since > over_s + stays_s else 300 + load(since)

    t.add("python -m vllm.entrypoints.openai.api_server", loads)
    room = t.capacity - base - model - 700
    t.add("python worker.py", leaking(t, lambda s: base, log_uniform(draw, 120, 2 * HOUR),
                                      log_uniform(draw, 1.5 * HOUR, 14 * HOUR), room))
    cut(t, draw)


def nobody_visible(t, draw):
    """What grows is in no list."""
    share = draw.uniform(0.1, 0.4)
    t.add("python serve.py", t.tenant(share))
    base = t.capacity * draw.uniform(0.02, 0.1)
    t.add("container", leaking(t, lambda s: base, log_uniform(draw, 120, 2 * HOUR),
                               log_uniform(draw, 1.5 * HOUR, 14 * HOUR), t.capacity * (1 - 1.3 * share) - base - 300),
          listed=False)
    cut(t, draw)


def sawtooth_leak(t, draw):
    """A program that breathes and leaks beneath that."""
    base = t.capacity * draw.uniform(0.1, 0.4)
    swing, every_s = t.capacity * draw.uniform(0.03, 0.15), log_uniform(draw, 10, 600)
    t.add("python train.py", leaking(t, lambda s: base + swing * ((s % every_s) / every_s), log_uniform(draw, 120, HOUR),
                                     log_uniform(draw, 1.5 * HOUR, 14 * HOUR), t.capacity - base - swing - 400))
    cut(t, draw)


def cache(t, draw):
    """A cache that fills to its cap, alone or beside a tenant."""
    if draw.random() < 0.5:
        t.add("python serve.py", t.tenant(draw.uniform(0.1, 0.25)))
    base = t.capacity * draw.uniform(0.05, 0.2)
    cap = t.capacity * draw.uniform(0.1, 0.4)
    tau_s = log_uniform(draw, 300, 2 * HOUR)
    straight = draw.random() < 0.4
    fills = (lambda s: cap * min(1.0, s / (2 * tau_s))) if straight else (lambda s: cap * (1 - math.exp(-s / tau_s)))
    begin_s = log_uniform(draw, 60, HOUR)
    t.add("python cache.py", lambda s: base + fills(max(0.0, s - begin_s)))
    t.duration_s = begin_s + 8 * tau_s


def loads(t, draw):
    """Programs that load, for 1 to 30 minutes, beside one that stays or by themselves."""
    room = 0.85
    if draw.random() < 0.6:
        share = draw.uniform(0.1, 0.3)
        room -= 1.4 * share
        t.add("python serve.py", t.tenant(share))
    at_s = log_uniform(draw, 60, 2 * HOUR)
    busy = []
    for i in range(draw.choice([1, 1, 2])):
        mib, over_s = t.capacity * room * draw.uniform(0.3, 0.5), log_uniform(draw, 60, 1800)
        load = t.load(mib, over_s, draw.choice([1, 1, 3, 8]))
        t.add(f"python model{i}.py", lambda s, at_s=at_s, load=load: None if s < at_s else 300 + load(s - at_s))
        busy.append((at_s, at_s + over_s))
        at_s += over_s + log_uniform(draw, 60, HOUR)
    t.busy = lambda s: 2 if any(a <= s < b for a, b in busy) else 70
    t.duration_s = at_s + HOUR


def tenants(t, draw):
    """Two to four programs that take from each other what each releases."""
    n = draw.choice([2, 3, 4])
    every = [log_uniform(draw, 300, 3 * HOUR) for _ in range(n)]
    phase = [draw.uniform(0, e) for e in every]
    share = 0.85 / n
    for i in range(n):
        low, high = t.capacity * share * 0.4, t.capacity * share * draw.uniform(0.7, 1.0)
        form = draw.choice(["ramp", "wave", "levels"])

        def mib(s, i=i, low=low, high=high, form=form):
            x = ((s + phase[i]) % every[i]) / every[i]
            if form == "wave":
                x = 0.5 - 0.5 * math.cos(2 * math.pi * x)
            elif form == "levels":
                x = math.floor(x * 3) / 2
            return low + (high - low) * x

        t.add(f"python tenant{i}.py", mib)
    t.duration_s = draw.uniform(4, 20) * HOUR


def rarely_listed(t, draw):
    """A leak of an hour or three that few lists of processes see, beside a tenant."""
    t.list_s = draw.choice([300, 300, 600, 900])
    share = draw.uniform(0.05, 0.2)
    t.add("python serve.py", t.tenant(share))
    base = t.capacity * draw.uniform(0.1, 0.4)
    t.add("python train.py", leaking(t, lambda s: base, log_uniform(draw, 300, HOUR),
                                     log_uniform(draw, 0.7 * HOUR, 3 * HOUR), t.capacity * (1 - 1.35 * share) - base - 400))
    cut(t, draw)


def jobs(t, draw):
    """Jobs that come and go beside a server."""
    t.add("python serve.py", t.tenant(draw.uniform(0.1, 0.3)))
    t.duration_s = draw.uniform(3, 16) * HOUR
    free = [0.0, 0.0]
    for i in range(60):
        lane = i % 2
        begin_s = free[lane] + log_uniform(draw, 30, 2400)
        lives_s = log_uniform(draw, 120, 2 * HOUR)
        free[lane] = begin_s + lives_s
        load = t.load(t.capacity * draw.uniform(0.05, 0.25), log_uniform(draw, 5, 600), draw.choice([1, 3]))
        t.add(f"python job.py --n {i}",
              lambda s, a=begin_s, b=begin_s + lives_s, load=load: 300 + load(s - a) if a <= s < b else None)
        if begin_s > t.duration_s:
            break


FAMILIES = [single_training, rarely_listed, beside_tenant, beside_load, nobody_visible, sawtooth_leak, cache, loads, tenants, jobs]


def notified(binary, *logs):
    done = subprocess.run([binary, "analyze", "--format", "json", *logs], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    first, last, suspected = None, None, False
    for line in done.stdout.splitlines():
        series = json.loads(line)
        suspected = suspected or bool(series.get("suspicions"))
        for alert in series["alerts"]:
            if alert.get("kind", "leak") != "leak":
                continue
            first = min(first or alert["raised"], alert["raised"])
            last = alert
    return {"first": first, "suspected": suspected, "alert": last}


def seconds(when):
    return datetime.datetime.fromisoformat(when.replace("Z", "+00:00")).timestamp() - BEGIN


def row(name, traces, key):
    leaks = [t for t in traces if t["leak"]]
    told = [t for t in traces if t[key]["first"]]
    right = [t for t in told if t["leak"]]
    due = [t for t in leaks if t["due"]]
    found = [t for t in due if t[key]["first"]]
    healthy = [t for t in traces if not t["leak"]]
    share = lambda a, b: f"{len(a) / len(b):.3f}" if b else "-"
    delays = sorted((seconds(t[key]["first"]) - t["onset_s"]) / (t["full_at_s"] - t["onset_s"]) for t in right)
    delay = f"{delays[len(delays) // 2]:.2f}" if delays else "-"
    return (f"{name:28} precision {share(right, told):>5}  recall {share(right, leaks):>5}  delay {delay:>5}  due {len(found):3} of "
            f"{len(due):3}  healthy notified {len(told) - len(right):3} of {len(healthy):3}, suspected "
            f"{sum(t[key]['suspected'] for t in healthy):3}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("binary")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--each", type=int, default=8, help="traces of each family")
    options.add_argument("--keep", help="a folder that keeps the logs")
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        traces = []
        for family in FAMILIES:
            for n in range(args.each):
                name = f"{family.__name__}{n}"
                draw = random.Random(f"{args.seed} {name}")
                trace = Trace(family.__name__, draw)
                family(trace, draw)
                traces.append({"name": name, **trace.write(os.path.join(args.keep or scratch, name))})

        def judge(trace):
            trace["alone"] = notified(args.binary, trace["gpu"])
            trace["lists"] = notified(args.binary, trace["gpu"], trace["apps"])

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(judge, traces))
        for family in FAMILIES:
            of_it = [t for t in traces if t["family"] == family.__name__]
            for key in ("alone", "lists"):
                print(row(f"{family.__name__}, {key}", of_it, key))
        for key in ("alone", "lists"):
            print(row(f"all, {key}", traces, key))
        for t in traces:
            if bool(t["alone"]["first"]) != bool(t["lists"]["first"]):
                print(f"{t['name']}: {'leak' if t['leak'] else 'healthy'}{', due' if t['due'] else ''}; alone "
                      f"{t['alone']['first']}, with its list {t['lists']['first']}")
    return 0


sys.exit(main())
