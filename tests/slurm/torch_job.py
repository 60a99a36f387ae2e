#!/usr/bin/env python3
"""A real PyTorch job that leaks, unattended: torch_job.py BINARY BUILD [TORCH_VERSION]

A real Slurm of four nodes, real PyTorch on the fake driver, and the agent with a policy: the job gets SIGUSR1 and writes a checkpoint,
Slurm requeues it on another node, and it continues from the checkpoint and finishes. Prints what happened, as docs/schedulers.md has it.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(SOURCE / "tests/torch"))
from cluster import Cluster, NODES, until, why_not  # noqa: E402

#: Each step keeps its loss, and with it its graph: 4 MiB. It saves on SIGUSR1, and goes on where it was saved.
TRAIN = """
import os, pathlib, signal, sys, time
import torch

node, steps, saved = os.environ["SLURMD_NODENAME"], int(sys.argv[1]), pathlib.Path("checkpoint.pt")
device = torch.device("cuda", int(node[2:]) - 1)  # each node has a GPU
weights = torch.nn.Parameter(torch.ones(512, 1024, device=device))
optimizer = torch.optim.SGD([weights], lr=0.1)
first = torch.load(saved)["step"] if saved.exists() else 0
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
print(f"{node}: training from step {first}", flush=True)
losses = []
for step in range(first, steps):
    loss = (torch.randn(512, 1024, device=device) * weights).sin().sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss)  # the leak
    if asked:
        asked.clear()
        torch.save({"step": step + 1, "weights": weights.detach().cpu()}, "checkpoint.new")
        os.replace("checkpoint.new", saved)
        print(f"{node}: checkpoint at step {step + 1}", flush=True)
    time.sleep(0.05)
print(f"{node}: finished after step {steps}", flush=True)
pathlib.Path("finished").touch()
"""

JOB = """#!/bin/bash
cd {root}
trap 'kill -USR1 $!' USR1
{python} train.py {steps} &
until wait $!; [ $? -le 128 ]; do :; done
"""

POLICY = """
[act]
enabled = true
dry-run = false

[[policy]]
name = "training that leaks"
when.user = ["root"]
when.job = [".*"]
steps = [
  { do = "signal-job", signal = "SIGUSR1" },
  { do = "requeue", after = "5s" },
]
"""

#: Decides within a minute: the judge waits longer before it calls anything a leak.
QUICKLY = ["--source", "nvml", "--interval", "500ms", "--detector", "linear_trend", "--set", "minimum-duration-minutes=0.5",
           "--set", "minimum-samples=40"]  # fmt: skip


def prepare(root):
    (root / "epilog").write_text("#!/bin/sh\nexit 0\n")
    (root / "epilog").chmod(0o755)


def skip(reason):
    print(f"slurm: SKIPPED: {reason}")
    return 77


def acts_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main():
    binary, build, version = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), (sys.argv[3:] or ["2.15.0"])[0]
    if reason := why_not():
        return skip(reason)
    os.environ["VRAMTRACK_BUILD_DIR"] = str(build)
    import lane  # of tests/torch
    python = lane.venv(version) / "bin/python"
    if not python.exists():
        return skip(f"PyTorch {version} is not installed; make test-torch installs it")
    if not os.access("/sys/fs/cgroup/freezer", os.W_OK) or not Path("/sys/fs/cgroup/freezer").is_dir():
        return skip("jobs need a cgroup of their own: no cgroup v1 that may be written")
    with Cluster(prepare, by_cgroup=True) as cluster:
        root = cluster.root
        for name, value in lane.environment(version, build).items():
            cluster.environment[name] = str(value)
        cluster.environment.update(VRAMTRACK_FAKE_GPU_STATE=str(root / "gpus"), VRAMTRACK_FAKE_GPU_DEVICES=str(len(NODES)), VRAMTRACK_FAKE_GPU_MIB="16384",
                                   HOME=str(root), XDG_RUNTIME_DIR=str(root), XDG_CONFIG_HOME=str(root))
        (root / "train.py").write_text(TRAIN)
        (root / "policy.toml").write_text(POLICY)
        begun = time.monotonic()
        told = set()

        def tell(text):
            if text not in told:
                told.add(text)
                print(f"{time.monotonic() - begun:6.1f} s  {text}", flush=True)

        agent = subprocess.Popen([binary, "agent", "--config", root / "policy.toml", *QUICKLY, "--set", f"store.path={root}/store.db",
                                  "--set", f"sources.nvml-library={lane.LANE / version / 'lib' / 'libnvidia-ml.so.1'}", "--set", "agent.listen="],
                                 env=cluster.environment, stdout=subprocess.DEVNULL, stderr=open(root / "agent.log", "wb"))  # fmt: skip
        cluster.started.append(agent)
        job = cluster.submit(JOB.format(root=root, python=python, steps=1000), "--requeue", "--job-name=train", "--export=ALL")
        try:
            def news():
                state, node = cluster.job(job)
                if state:
                    tell(f"slurm   job {job} is {state}{f' on {node}' if node and state == 'RUNNING' else ''}")
                log = root / "job.log"
                for line in log.read_text().splitlines() if log.exists() else []:
                    tell(f"job     {line}")
                for act in acts_of(root / "store.db.acts.jsonl"):
                    if act["event"] in ("begin", "done", "failed", "end"):
                        tell(f"agent   {act['event']}{' ' + act['action'] if act.get('action') else ''}: {re.sub(str(root), '', act['text'])}")
                return (root / "finished").exists() or state in ("FAILED", "CANCELLED")
            until("the end of the job", news, 900)
            news()
            lines = (root / "job.log").read_text()
            began = re.findall(r"^(gn\d): training from step (\d+)$", lines, re.M)
            saved = re.findall(r"^(gn\d): checkpoint at step (\d+)$", lines, re.M)
            assert len(began) >= 2 and began[0][0] != began[1][0], "it was requeued on another node"
            assert saved and began[1][1] == saved[0][1] and saved[0][0] == began[0][0], "it went on from its checkpoint"
            assert "finished after step 1000" in lines
        except BaseException:
            print((root / "agent.log").read_text()[-3000:], cluster.logs(), sep="\n")
            raise
        finally:
            agent.terminate()
            agent.wait(30)
            shutil.rmtree(root / "gpus", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
