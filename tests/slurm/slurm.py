#!/usr/bin/env python3
"""The actions for Slurm on a real Slurm of four nodes: slurm.py ACT_ONCE

A batch job writes a checkpoint when it gets SIGUSR1. It is requeued, continues from the checkpoint on another node and
ends. The node is drained with a reason and takes jobs again. What must not be done is refused.
"""
import os
import subprocess
import sys
from pathlib import Path

CONTRIB = Path(__file__).resolve().parents[2] / "contrib" / "slurm"
sys.path.insert(0, str(Path(__file__).parent))
from cluster import NODES, Cluster, until, why_not  # noqa: E402

# It works until the file `end` exists. What it has done is in `checkpoint`, which only the signal writes.
JOB = """#!/bin/bash
cd {root}
trap 'echo "from $SLURMD_NODENAME" >checkpoint.new; mv checkpoint.new checkpoint' USR1
echo $$ >"pid.${{SLURM_RESTART_COUNT:-0}}"
echo "$SLURMD_NODENAME ${{SLURM_RESTART_COUNT:-0}} $(cat checkpoint 2>/dev/null)" >>runs
until [ -e end ]; do read -r -t 0.1 <>{root}/fifo; done
echo "finished on $SLURMD_NODENAME after checkpoint $(cat checkpoint)" >result
"""


def act(cluster, program, *words, ok=True):
    done = subprocess.run([program, *words], env=cluster.environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode == 0) == ok, f"{words}: exit {done.returncode}: {done.stdout}{done.stderr}"
    print("  " + done.stdout.strip().replace("\n", "\n  "))
    return done.stdout


def pid_of(root, run):
    path = root / f"pid.{run}"
    until(f"run {run} of the job", lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text().strip()


def leaking_job_moves(cluster, program):
    root = cluster.root
    os.mkfifo(root / "fifo")
    job = cluster.submit(JOB.format(root=root), "--requeue", "--job-name=x UserId=nobody(65534)")
    until("the job runs", lambda: cluster.job(job)[0] == "RUNNING")
    pid, node = pid_of(root, 0), cluster.job(job)[1]

    act(cluster, program, "signal-job", pid, "root", f"{job}.batch", node, "signal=SIGUSR1")
    until("the checkpoint", (root / "checkpoint").exists)

    drained = act(cluster, program, "drain", pid, "root", job, node)
    undo = drained.split("undo: ")[1].strip()
    state = until("a drained node", lambda: cluster.ask("sinfo", "-h", "-N", "-n", node, "-o", "%T|%E").strip())
    assert state.startswith("drain") and "vramtrack act-1: leak on GPU 3" in state, state

    act(cluster, program, "requeue", pid, "root", f"{job}.0", node)
    until("a second run", lambda: cluster.job(job)[0] == "RUNNING")
    second = cluster.job(job)[1]
    assert second != node, f"it runs on {node} again"
    pid_of(root, 1)
    (root / "end").touch()
    until("the result", (root / "result").exists)
    result = (root / "result").read_text().strip()
    assert result == f"finished on {second} after checkpoint from {node}", result
    until("the job is gone", lambda: cluster.job(job)[0] in ("", "COMPLETED"))

    act(cluster, program, "undo:drain", str(os.getpid()), "root", job, node, undo)
    until("the node takes jobs", lambda: cluster.ask("sinfo", "-h", "-N", "-n", node, "-o", "%T").strip() == "idle")


def others_are_left_alone(cluster, program):
    root = cluster.root
    (root / "end").unlink()
    for old in root.glob("pid.*"):
        old.unlink()
    job = cluster.submit(JOB.format(root=root), "--requeue")
    until("the job runs", lambda: cluster.job(job)[0] == "RUNNING")
    pid, node = pid_of(root, 0), cluster.job(job)[1]
    assert "belongs to user root" in act(cluster, program, "requeue", pid, "alice", job, node, ok=False)
    assert "Invalid job id" in act(cluster, program, "requeue", pid, "root", "999999", node, ok=False)
    assert "names none" in act(cluster, program, "requeue", pid, "root", "", node, ok=False)
    assert "not the number" in act(cluster, program, "requeue", pid, "root", "1;reboot", node, ok=False)
    assert cluster.job(job) == ("RUNNING", node)

    # A person's drain is neither overwritten nor taken back.
    cluster.ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=fan | broken")
    said = act(cluster, program, "drain", pid, "root", job, node)
    assert "already drained" in said and said.rstrip().endswith("undo:"), said
    assert "left as it is" in act(cluster, program, "undo:drain", pid, "root", job, node, f"{node}|vramtrack act-1:")
    assert "fan | broken" in cluster.ask("sinfo", "-h", "-N", "-n", node, "-o", "%E")

    act(cluster, program, "requeue", pid, "root", job, node, "hold=true")
    reason = cluster.ask("squeue", "-h", "-j", job, "-o", "%T %r")
    assert "PENDING" in reason and ("held" in reason.lower() or "JobHeld" in reason), reason
    (root / "end").touch()
    cluster.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")


def array_task_alone(cluster, program):
    root = cluster.root
    for old in (*root.glob("pid.*"), root / "end"):
        old.unlink()
    job = cluster.submit(JOB.format(root=root).replace('"pid.$', '"pid.$SLURM_ARRAY_TASK_ID.$'), "--requeue", "--array=1-2")
    until("both tasks run", lambda: cluster.ask("squeue", "-h", "-j", job, "-o", "%T").split() == ["RUNNING"] * 2)
    numbers = dict(line.split() for line in cluster.ask("squeue", "-h", "-j", job, "-o", "%K %A").splitlines())
    pid = pid_of(root, "1.0")
    node = cluster.job(numbers["1"])[1]
    act(cluster, program, "requeue", pid, "root", numbers["1"], node)
    pid_of(root, "1.1")
    assert not (root / "pid.2.1").exists(), "the other task was requeued, too"
    (root / "end").touch()


def neighbours_are_moved(cluster, program):
    root = cluster.root
    until("earlier jobs to end", lambda: "RUNNING" not in cluster.ask("squeue", "-h", "-o", "%T"))
    for old in (*root.glob("pid.*"), root / "end"):
        old.unlink(missing_ok=True)
    (root / "checkpoint").unlink(missing_ok=True)
    for node in ("gn1", "gn3", "gn4"):
        cluster.ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=not now")
    jobs = [cluster.submit(JOB.format(root=root).replace('"pid.$', f'"pid.{n}.$'), "--requeue", "--ntasks=1") for n in (1, 2)]
    for job in jobs:
        until("both run on one node", lambda: cluster.job(job) == ("RUNNING", "gn2"))
    leak, other = jobs
    pid = pid_of(root, "1.0")
    pid_of(root, "2.0")
    assert "no other job" in act(cluster, program, "evacuate", pid, "root", leak, "gn2", "users=alice", ok=False)
    assert "no other job" in act(cluster, program, "evacuate", pid, "root", leak, "gn2", "partitions=cpu", ok=False)
    assert "no other job" in act(cluster, program, "evacuate", pid, "root", leak, "gn3", "users=root", ok=False)
    for node in ("gn1", "gn3", "gn4"):
        cluster.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
    said = act(cluster, program, "evacuate", pid, "root", leak, "gn2", "users=root", "partitions=gpu", "signal=SIGUSR1", "wait=1")
    assert f"job {other} was requeued, excluding gn2" in said, said
    assert (root / "checkpoint").read_text() == "from gn2\n", "it saved its work first"
    pid_of(root, "2.1")
    state, node = cluster.job(other)
    assert (state, cluster.job(leak)) == ("RUNNING", ("RUNNING", "gn2")) and node != "gn2", (state, node)
    assert not (root / "pid.1.1").exists(), "the leak stays"
    (root / "end").touch()


# What Slurm runs: its own environment has neither the GPUs of a job without GRES, nor our stand-ins for nvidia-smi and vramtrack.
EPILOG = """#!/bin/sh
export VRAMTRACK_SLURM_SETTINGS={folder}/settings SLURM_JOB_GPUS=3 SLURM_CONF={folder}/slurm.conf
exec {script}
"""


def epilog_drains(cluster, _program):
    root = cluster.root
    job = cluster.submit("#!/bin/sh\necho $SLURMD_NODENAME >%s/short\n" % root)
    node = until("a short job", lambda: (root / "short").exists() and (root / "short").read_text().strip())
    until("its end", lambda: cluster.job(job)[0] in ("", "COMPLETED"))
    state = lambda: cluster.ask("sinfo", "-h", "-N", "-n", node, "-o", "%T|%E").strip()
    until("an idle node: nothing is left over", lambda: state() == "idle|none")

    (root / "used").write_text("3, 8192\n")
    (root / "said").write_text("unhealthy: GPU 3: 7.5 GiB in use are held by no process\n")
    (root / "short").unlink()
    job = cluster.submit("#!/bin/sh\necho $SLURMD_NODENAME >%s/short\n" % root)
    node = until("a short job", lambda: (root / "short").exists() and (root / "short").read_text().strip())
    said = until("a drained node", lambda: state().startswith("drain") and state())
    assert said.endswith(f"|vramtrack epilog: after job {job}: GPU 3: 7.5 GiB in use are held by no process"), said
    assert (root / "asked").read_text() == "--expect-empty --gpu 3 --format npd\n"
    prolog = subprocess.run([CONTRIB / "prolog.sh"], env={**cluster.environment, "SLURM_JOB_GPUS": "3",
                            "VRAMTRACK_SLURM_SETTINGS": str(root / "settings")}, capture_output=True, text=True)
    assert prolog.returncode == 1 and "8192 MiB in use on GPU 3" in prolog.stderr, prolog
    cluster.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
    (root / "used").write_text("3, 12\n")
    (root / "said").write_text("healthy: 1 GPU\n")


# As contrib/slurm/README.md says, but more often. It looks at nothing until the test wants it.
HEALTH_CHECK = """HealthCheckProgram={root}/health_check
HealthCheckInterval=1
HealthCheckNodeState=ANY"""
RUN_HEALTH_CHECK = """#!/bin/sh
[ -e {folder}/check ] || exit 0
export VRAMTRACK_SLURM_SETTINGS={folder}/settings SLURM_CONF={folder}/slurm.conf
{script}
code=$?
echo $code >>{folder}/checked
exit $code
"""


def health_check_drains(cluster, _program):
    root = cluster.root
    state = lambda node: cluster.ask("sinfo", "-h", "-N", "-n", node, "-o", "%T|%E").strip()
    until("idle nodes", lambda: all(state(node) == "idle|none" for node in NODES))
    checked = lambda: len((root / "checked").read_text().split()) if (root / "checked").exists() else 0
    (root / "check").touch()
    until("checks of healthy nodes", lambda: checked() >= 2 * len(NODES))
    assert all(state(node) == "idle|none" for node in NODES), "a healthy node is left alone"
    # A person's drain keeps its reason.
    cluster.ask("scontrol", "update", "NodeName=gn2", "State=DRAIN", "Reason=fan")
    (root / "said").write_text("unhealthy: GPU 3: XID 79: it has fallen off the bus\n")
    for node in ("gn1", "gn3", "gn4"):
        until(f"{node} is drained", lambda: state(node).startswith("drain"))
        assert state(node).endswith("|vramtrack health: GPU 3: XID 79: it has fallen off the bus"), state(node)
    before = checked()
    until("another round", lambda: checked() >= before + 2 * len(NODES))
    assert state("gn2").endswith("|fan"), state("gn2")
    assert set((root / "checked").read_text().split()) == {"0"}, "Slurm would drain a node whose program fails"
    assert (root / "asked").read_text() == "--format npd\n"
    (root / "check").unlink()
    (root / "said").write_text("healthy: 1 GPU\n")
    for node in NODES:
        cluster.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")


def prepare(root):
    (root / "health_check").write_text(RUN_HEALTH_CHECK.format(folder=root, script=CONTRIB / "health.sh"))
    (root / "health_check").chmod(0o755)
    (root / "used").write_text("3, 12\n")
    (root / "said").write_text("healthy: 1 GPU\n")
    (root / "health").write_text(f'#!/bin/sh\necho "$@" >{root}/asked\ncat {root}/said\n')
    (root / "smi").write_text(f"#!/bin/sh\ncat {root}/used\n")
    (root / "epilog").write_text(EPILOG.format(folder=root, script=CONTRIB / "epilog.sh"))
    (root / "settings").write_text(f"SMI={root}/smi HEALTH={root}/health WAIT_S=0\n")
    for name in ("smi", "health", "epilog"):
        (root / name).chmod(0o755)


def main():
    program = sys.argv[1]
    reason = why_not()
    if reason:
        print(f"slurm: SKIPPED: {reason}")
        return 77
    with Cluster(prepare, settings=HEALTH_CHECK) as cluster:
        try:
            for test in (leaking_job_moves, others_are_left_alone, array_task_alone, neighbours_are_moved, epilog_drains, health_check_drains):
                test(cluster, program)
                print(f"ok   {test.__name__}")
        except BaseException:
            print(cluster.logs())
            raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
