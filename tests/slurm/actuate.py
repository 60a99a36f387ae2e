#!/usr/bin/env python3
"""Rule -> Alertmanager -> actuator -> Slurm, all of them real: actuate.py BINARY FAKE_NVML

A Slurm of four nodes, an agent for each (on simulated GPUs), Prometheus with the rules of contrib/prometheus, and Alertmanager, which is
restarted in between and repeats every alert. Two jobs leak. Each is asked for a checkpoint, requeued on another node and finishes. The
memory of one comes back, and its node takes jobs again; that of the other does not, and its node stays drained. Nothing is done twice.
Prints what happened, as docs/actuate.md has it.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
from cluster import NODES, Cluster, free_ports, until, why_not  # noqa: E402

#: Its first run leaks 20 MiB each 0.1 s and never ends; it saves on SIGUSR1. A run with a checkpoint holds 1 GiB and ends.
WORK = """
import os, pathlib, signal, sys, time
node, job = os.environ["SLURMD_NODENAME"], os.environ["SLURM_JOB_ID"]
saved, left = pathlib.Path(f"checkpoint.{job}"), sys.argv[1]
first = int(saved.read_text()) if saved.exists() else 0
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
print(f"{node}: training from step {first}", flush=True)
for step in range(first, 10**9):
    held = (1 << 30) + (step << 21 if first == 0 else 0)
    new = pathlib.Path(f"{node}.{job}.new")
    new.write_text(f"{os.getpid()} {held} {left}\\n")
    new.replace(f"{node}.gpu")
    if asked:
        asked.clear()
        saved.write_text(str(step + 1))
        print(f"{node}: checkpoint at step {step + 1}", flush=True)
    if first and step == first + 30:
        break
    time.sleep(0.01 if first == 0 else 0.1)
print(f"{node}: finished after step {step}", flush=True)
pathlib.Path(f"finished.{job}").touch()
"""

JOB = """#!/bin/bash
cd {root}
trap 'kill -USR1 $!' USR1
{python} work.py {left} &
until wait $!; [ $? -le 128 ]; do
  {tells} || continue
  while [ ! -e checkpoint.$SLURM_JOB_ID ]; do read -r -t 0.1 <>fifo; done
  scontrol update JobId=$SLURM_JOB_ID Comment="vramtrack saved ${{SLURM_RESTART_COUNT:-0}}"
done
"""

POLICY = """
[act]
max-acts-per-hour = 30

[[policy]]
name = "training that leaks"
when.user = ["root"]
when.job = [".*"]
when.labels = { alertname = "GpuMemoryLeak" }
steps = [
  { do = "signal-job", signal = "SIGUSR1", on-failure = "stop" },
  { do = "drain" },
  { do = "requeue", after = "30s" },
]
"""

#: Decides within half a minute: the judge waits longer before it calls anything a leak.
QUICKLY = ["--source", "nvml", "--interval", "500ms", "--detector", "linear_trend", "--set", "minimum-duration-minutes=0.4",
           "--set", "minimum-samples=30"]  # fmt: skip

PROMETHEUS = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [vramtrack.recording.yml, vramtrack.alerts.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{alertmanager}"]}}]}}]}}
scrape_configs:
  - job_name: vramtrack
    static_configs:
{targets}
"""

ALERTMANAGER = """
route: {{receiver: vramtrack, group_by: [alertname, instance], group_wait: 1s, group_interval: 1s, repeat_interval: 2s}}
receivers:
  - name: vramtrack
    webhook_configs: [{{url: 'http://127.0.0.1:{actuator}/api/v1/alerts', send_resolved: true}}]
"""


def skip(reason):
    print(f"slurm: SKIPPED: {reason}")
    return 77


def prepare(root):
    os.mkfifo(root / "fifo")
    (root / "epilog").write_text("#!/bin/sh\nexit 0\n")
    (root / "epilog").chmod(0o755)


class Loop:
    """All that runs beside Slurm."""

    def __init__(self, cluster, binary, nvml):
        self.cluster, self.binary, self.nvml, self.root = cluster, binary, nvml, cluster.root
        self.ports = dict(zip((*NODES, "actuator", "prometheus", "alertmanager"), free_ports(7)))
        self.begun = time.monotonic()
        self.told = set()
        self.environment = {**cluster.environment, "HOME": str(self.root), "XDG_RUNTIME_DIR": str(self.root), "XDG_CONFIG_HOME": str(self.root)}

    def start(self, name, *argv, **more):
        log = open(self.root / f"{name}.log", "ab")
        process = subprocess.Popen(argv, cwd=self.root, env={**self.environment, **more}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.cluster.started.append(process)
        return process

    def start_agents(self):
        for node in NODES:
            (self.root / f"{node}.txt").write_text(f'gpu 0 uuid=GPU-{node} name="Fake GPU" total=16G used=500M util=50 holders={self.root}/{node}.gpu\n')
            self.start(f"agent-{node}", self.binary, "agent", *QUICKLY, "--listen", f"127.0.0.1:{self.ports[node]}",
                       "--set", f"store.path={self.root}/{node}.db", "--set", f"sources.nvml-library={self.nvml}", "--set", "agent.socket=none",
                       VRAMTRACK_FAKE_NVML=str(self.root / f"{node}.txt"))  # fmt: skip

    def start_alertmanager(self):
        return self.start("alertmanager", "prometheus-alertmanager", "--config.file=alertmanager.yml", "--storage.path=am",
                          "--cluster.listen-address=", f"--web.listen-address=127.0.0.1:{self.ports['alertmanager']}")

    def start_actuator(self):
        return self.start("actuator", self.binary, "actuate", "--policy", self.root / "fleet.toml", "--enforce", "--state", self.root / "actuate",
                          "--listen", f"127.0.0.1:{self.ports['actuator']}", "--node", "{node}",
                          "--set", "actuate.agent-hosts=" + json.dumps([f"{n}=http://127.0.0.1:{self.ports[n]}" for n in NODES]), "--set", "actuate.poll-seconds=0.5")  # fmt: skip

    def start_all(self):
        for rules in ("vramtrack.recording.yml", "vramtrack.alerts.yml"):
            shutil.copy(SOURCE / "contrib/prometheus" / rules, self.root)
        targets = "\n".join(f'      - {{targets: ["127.0.0.1:{self.ports[n]}"], labels: {{node: {n}}}}}' for n in NODES)
        (self.root / "prometheus.yml").write_text(PROMETHEUS.format(targets=targets, **self.ports))
        (self.root / "alertmanager.yml").write_text(ALERTMANAGER.format(**self.ports))
        (self.root / "fleet.toml").write_text(POLICY)
        (self.root / "work.py").write_text(WORK)
        self.start_agents()
        self.actuator = self.start_actuator()
        self.alertmanager = self.start_alertmanager()
        self.start("prometheus", "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", "--rules.alert.resend-delay=2s",
                   f"--web.listen-address=127.0.0.1:{self.ports['prometheus']}")

    def submit(self, left):
        script = JOB.format(root=self.root, python=sys.executable, left=left, tells="true" if left else "false")
        return self.cluster.submit(script, "--requeue", "--exclusive", "--job-name=train", "--export=ALL")

    def record(self):
        path = self.root / "actuate" / "actuate.acts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def done(self, action, job=None):
        return [e for e in self.record() if e["event"] == "done" and e.get("action") == action
                and job in (None, e["process"].get("job", "").split(".")[0])]  # fmt: skip

    def metrics(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['actuator']}/metrics", timeout=10) as answer:
                return dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#"))
        except OSError:  # it has not started yet
            return {}

    def tell(self, text):
        if text not in self.told:
            self.told.add(text)
            print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    def news(self, jobs):
        for job in jobs:
            state, node = self.cluster.job(job)
            if state:
                self.tell(f"slurm     job {job} is {state}{f' on {node}' if node and state == 'RUNNING' else ''}")
        log = self.root / "job.log"
        for line in log.read_text().splitlines() if log.exists() else []:
            self.tell(f"job       {line}")
        for act in self.record():
            if act["event"] in ("begin", "done", "failed", "refused", "undone", "say", "end"):
                self.tell(f"actuator  {act['event']}{' ' + act['action'] if act.get('action') else ''}: {act['text']} ({act['process'].get('node', '')})")
        for line in self.cluster.ask("sinfo", "-h", "-N", "-o", "%N is %T: %E").splitlines():
            if "drain" in line:
                self.tell(f"slurm     {line}")
        return all((self.root / f"finished.{job}").exists() for job in jobs)


def the_loop(loop):
    cluster, root = loop.cluster, loop.root
    jobs = [loop.submit(left=0), loop.submit(left=4 << 30)]
    until("both jobs run", lambda: loop.news(jobs) or all(cluster.job(j)[0] == "RUNNING" for j in jobs))
    first = [cluster.job(j)[1] for j in jobs]
    until("both are asked for a checkpoint", lambda: loop.news(jobs) or all(loop.done("signal-job", j) for j in jobs), 240)
    # Each alert is repeated every two seconds, by two Alertmanagers one after another, to two actuators one after another.
    for program in (loop.alertmanager, loop.actuator):
        program.kill()
        program.wait()
    loop.alertmanager, loop.actuator = loop.start_alertmanager(), loop.start_actuator()
    loop.tell("test      Alertmanager and the actuator were killed and started again")
    heard = lambda: int(loop.metrics().get("vramtrack_actuate_alerts_total", 0))
    until("the alerts come again", lambda: loop.news(jobs) or heard() > 2, 60)
    until("both jobs finish", lambda: loop.news(jobs), 240)
    back, gone = first
    state_of = lambda node: cluster.ask("sinfo", "-h", "-N", "-n", node, "-o", "%T|%E").strip()
    until("the node whose memory is back takes jobs", lambda: loop.news(jobs) and state_of(back) == "idle|none", 30)
    until("the other ladder ends", lambda: loop.news(jobs) and sum(e["event"] == "end" for e in loop.record()) == 2, 120)
    assert state_of(gone).startswith("drained|vramtrack"), state_of(gone)
    assert any("not freed within" in e["text"] for e in loop.record())
    log = (root / "job.log").read_text()
    for job, node in zip(jobs, first):
        for action in ("signal-job", "drain", "requeue"):
            assert len(loop.done(action, job)) == 1, (action, job, loop.record())
        saved = re.findall(rf"^{node}: checkpoint at step (\d+)$", log, re.M)
        assert len(saved) == 1, log
        again = re.findall(rf"^(gn\d): training from step {saved[0]}$", log, re.M)
        assert len(again) == 1 and again[0] not in first, log
    asked, moved = ({e["process"]["node"]: e["time_ns"] / 1e9 for e in loop.done(action)} for action in ("signal-job", "requeue"))
    assert moved[back] - asked[back] > 29, "a job that tells nothing has 30 s for its checkpoint"
    assert moved[gone] - asked[gone] < 25, "one that tells of it is moved then"
    assert sum(e["event"] == "begin" for e in loop.record()) == 2, loop.record()
    print(f"          alerts posted to the second actuator: {heard()}")


def main():
    binary, nvml = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    if reason := why_not():
        return skip(reason)
    if missing := [p for p in ("prometheus", "prometheus-alertmanager") if not shutil.which(p)]:
        return skip(f"{', '.join(missing)} not found; scripts/setup.sh test installs them")
    if not Path("/sys/fs/cgroup/freezer").is_dir() or not os.access("/sys/fs/cgroup/freezer", os.W_OK):
        return skip("jobs need a cgroup of their own: no cgroup v1 that may be written")
    with Cluster(prepare, by_cgroup=True) as cluster:
        loop = Loop(cluster, binary, nvml)
        try:
            loop.start_all()
            the_loop(loop)
        except BaseException:
            print((root_log := cluster.root / "actuator.log").exists() and root_log.read_text()[-5000:], cluster.logs()[-8000:], sep="\n")
            raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
