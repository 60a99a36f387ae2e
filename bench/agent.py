#!/usr/bin/env python3
"""What the agent costs, with its page, its metrics and its store: CPU and memory, alone and beside others.

  bench/agent.py cost [SECONDS]       at 1 Hz on the fake NVML library: 8 GPUs, 64 real processes, a Prometheus that asks
                                      every 15 s and one open page (default 120 s)
  bench/agent.py soak [DAYS] [--churn]  a simulated machine of that size through DAYS days (default 7), as fast as it goes;
                                      fails unless memory has stopped growing after the second day; with 16 jobs an
                                      hour that come and go, too
  bench/agent.py peers SECONDS CMD…   beside each other in one run on the same fake NVML library: the agent, `top`, `watch`
                                      and each CMD, a program for the terminal such as 'nvitop -m full' (needs tmux)

Run by `make soak`; the figures are in docs/BENCHMARKS.md."""
import os
import pathlib
import shlex
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "agent"))
from running import Agent, Sandbox, until  # noqa: E402

BUILD = ROOT / "build" / "bench"
FAKE = BUILD / "fake_nvml" / "current"
GPUS, PROCESSES = 8, 64
DAY_S = 86400
HZ = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    """User and system time; the second field of the line may hold blanks, so count behind its ")"."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / HZ


def resident_bytes(pid):
    return next(int(line.split()[1]) * 1024 for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS:"))


def fake_machine(pids):
    """The fake NVML library's text: on each GPU one process leaks, one is a sawtooth, six hold what they have."""
    uses = ["2G+1M<9G", "1G+20M%60"] + ["1G"] * 6
    lines = [f'gpu {g} uuid=GPU-bench-{g} name="Bench GPU" pci=00000000:0{g}:00.0 total=80G used=500M util=90' for g in range(GPUS)]
    lines += [f"process gpu={n % GPUS} pid={pid} list=C used={uses[n // GPUS % 8]}" for n, pid in enumerate(pids)]
    return "\n".join(lines) + "\n"


def scenario(days, churn):
    """The simulated machine: on each GPU a leak, a sawtooth and six that hold what they have; `churn`: jobs that come and go."""
    shapes = ['kind = "linear"\nrate_bytes_per_s = "1MiB/min"',
              'kind = "gc"\nkeep_bytes = "1GiB"\nthreshold_bytes = "3GiB"\nrate_bytes_per_s = "300MiB/min"\nthreshold_spread = 0.15'] + \
             ['kind = "constant"\nbytes = "3GiB"'] * 6
    text = f'name = "soak"\nseed = 1\nperiod_s = 1\nduration_s = "{days}d"\nquantum_bytes = "2MiB"\n'
    for g in range(GPUS):
        text += f'[[device]]\nname = "Bench GPU"\ncapacity_bytes = "80GiB"\nbaseline_bytes = "500MiB"\n'
    for g in range(GPUS):
        for n, shape in enumerate(shapes):
            text += f'[[process]]\nname = "p{g}_{n}"\ndevices = [{g}]\npid = {1000 + 100 * g + n}\ncommand = "python train.py --rank {g}"\n'
            text += f'user = "ada"\nframework = "PyTorch"\n[[process.shape]]\n{shape}\n'
        if churn:
            text += f'[[tenants]]\nname = "job{g}"\ndevices = [{g}]\ncommand = "python experiment.py"\nuser = "students"\narrivals_per_s = "2/h"\n'
            text += 'lifetime_s = "30min"\nmin_bytes = "1GiB"\nmax_bytes = "8GiB"\nat_start = 1\n'
    return text + "[truth]\nleak = true\n"


class Visitors:
    """What an agent in use has: a Prometheus that scrapes and a page that listens, until closed."""

    def __init__(self, agent, every_s):
        self.ends = threading.Event()
        self.threads = [threading.Thread(target=self.scrape, args=(agent, every_s), daemon=True),
                        threading.Thread(target=self.listen, args=(agent,), daemon=True)]
        for thread in self.threads:
            thread.start()

    def scrape(self, agent, every_s):
        while not self.ends.wait(every_s):
            agent.ask("GET", "/metrics")

    def listen(self, agent):
        for _ in agent.events():
            if self.ends.is_set():
                return

    def close(self):
        self.ends.set()


def report(name, pid, seconds):
    begun, since = cpu_s(pid), time.monotonic()
    time.sleep(seconds)  # the measurement itself
    share = (cpu_s(pid) - begun) / (time.monotonic() - since) * 100
    print(f"{name:<28} {share:7.3f} % of one core  {resident_bytes(pid) / 2**20:7.1f} MiB resident", flush=True)


class Machine:
    """The fake GPUs and 64 real processes, so that reading their /proc entries is paid for."""

    def __init__(self, box):
        self.sleepers = [subprocess.Popen(["sleep", "100000"]) for _ in range(PROCESSES)]
        box.write("nvml.txt", fake_machine([p.pid for p in self.sleepers]))
        self.env = {"VRAMTRACK_FAKE_NVML": str(box.work / "nvml.txt"), "LD_LIBRARY_PATH": str(FAKE)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.sleepers:
            p.kill()
            p.wait()


def watched(box, machine):
    library = f"sources.nvml-library={FAKE}/libnvidia-ml.so.1"
    return Agent(box, "--source", "nvml", "--interval", "1s", "--set", library, simulate=False, env=machine.env)


def cost(seconds):
    with Sandbox(BUILD / "vramtrack") as box, Machine(box) as machine, watched(box, machine) as agent:
        visitors = Visitors(agent, 15)
        time.sleep(5)  # what starting costs is not what running costs
        report("vramtrack agent", agent.process.pid, seconds)
        visitors.close()


def in_terminal(box, name, command, env):
    """Starts a program in its own terminal, 200x50, and gives its pid."""
    socket = str(box.work / "tmux")
    variables = [f"{k}={v}" for k, v in {**box.environment(), **env, "PATH": os.environ["PATH"], "TERM": "screen-256color"}.items()]
    subprocess.run(["tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-s", name, "-x", "200", "-y", "50",
                    "exec env " + shlex.join(variables + command)], check=True)
    shown = subprocess.run(["tmux", "-S", socket, "list-panes", "-t", name, "-F", "#{pane_pid}"], check=True, capture_output=True, text=True)
    return int(shown.stdout)


def peers(seconds, commands):
    library = f"sources.nvml-library={FAKE}/libnvidia-ml.so.1"
    own = str(BUILD / "vramtrack")
    with Sandbox(own) as box, Machine(box) as machine, watched(box, machine) as agent:
        visitors = Visitors(agent, 15)
        running = {"vramtrack agent": agent.process.pid}
        every = {"vramtrack top": [own, "top", "--no-agent", "--interval", "1s", "--set", library],
                 "vramtrack watch": [own, "watch", "--no-record", "--interval", "1s", "--set", library]}
        every.update({command: shlex.split(command) for command in commands})
        try:
            for n, (name, command) in enumerate(every.items()):
                running[name] = in_terminal(box, f"s{n}", command, machine.env)
            time.sleep(10)
            for name, pid in list(running.items()):
                if not os.path.exists(f"/proc/{pid}"):
                    print(f"{name:<36} ended by itself")
                    del running[name]
            begun, since = {name: cpu_s(pid) for name, pid in running.items()}, time.monotonic()
            time.sleep(seconds)  # the measurement itself
            took = time.monotonic() - since
            for name, pid in running.items():
                print(f"{name:<36} {(cpu_s(pid) - begun[name]) / took * 100:7.3f} % of one core  {resident_bytes(pid) / 2**20:7.1f} MiB resident")
        finally:
            subprocess.run(["tmux", "-S", str(box.work / "tmux"), "kill-server"], capture_output=True, check=False)
        visitors.close()


def soak(days, churn):
    """Resident memory after each simulated day. The store keeps two days of every sample, so the first two may grow."""
    with Sandbox(BUILD / "vramtrack") as box:
        box.write("soak.toml", scenario(days, churn))
        with Agent(box, "--scenario", str(box.work / "soak.toml"), "--speed", "1000000", simulate=False) as agent:
            visitors, pid = Visitors(agent, 1), agent.process.pid
            begun, first, resident = time.monotonic(), None, []
            while len(resident) < days:
                own = until(lambda: agent.get("/api/v1/status", unix=True)["own"], 60, "an answer")
                first = first if first is not None else own["polls"]
                if own["polls"] >= (len(resident) + 1) * DAY_S - 60:
                    resident.append(resident_bytes(pid))
                    print(f"day {len(resident)}: {resident[-1] / 2**20:.1f} MiB resident, {own['polls']} polls, {cpu_s(pid):.0f} s of CPU, "
                          f"{time.monotonic() - begun:.0f} s by the clock, {len(os.listdir(f'/proc/{pid}/fd'))} files open", flush=True)
                time.sleep(0.2)
            visitors.close()
            grown = resident[-1] - resident[min(1, days - 1)]
            print(f"soak: {GPUS} GPUs and {PROCESSES} processes{' and 16 jobs an hour' if churn else ''} at 1 Hz for {days} days: {resident[0] / 2**20:.1f} MiB after a day, "
                  f"{grown / 2**20:+.1f} MiB from the second day to the last")
            if grown > 1 << 20:
                sys.exit("soak: more than 1 MiB: a leak in the leak finder")


def main(args):
    if args[:1] == ["cost"]:
        cost(float(args[1]) if len(args) > 1 else 120)
    elif args[:1] == ["soak"]:
        rest = [a for a in args[1:] if a != "--churn"]
        soak(int(rest[0]) if rest else 7, "--churn" in args)
    elif args[:1] == ["peers"] and len(args) > 1:
        peers(float(args[1]), args[2:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
