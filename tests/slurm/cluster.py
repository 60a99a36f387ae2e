"""A real Slurm of four nodes on this machine, in its own folder: munged, slurmctld, four slurmd.

Debian's slurmd runs several nodes on one host (`-N NAME`). Everything waits for a state that Slurm reports, and ends the
daemons that it started, by their process ids.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from patience import patience  # noqa: E402

NODES = [f"gn{i}" for i in range(1, 5)]
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "scancel", "squeue", "sinfo")


def why_not():
    """Why no Slurm can be started here; empty: it can."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [p for p in PROGRAMS if not shutil.which(p, path=path)]
    if missing:
        return f"{', '.join(missing)} not found; scripts/setup.sh slurm installs them"
    if os.geteuid() != 0:
        return "slurmd runs batch jobs as root only"
    return ""


def until(what, look, seconds=60):
    """Asks again and again until look() is true; what it was."""
    end = time.monotonic() + patience(seconds)
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.05)


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


class Cluster:
    def __init__(self, prepare, by_cgroup=False, settings=""):
        """`prepare(folder)` writes what the nodes need, `epilog` at least. by_cgroup: a job's processes are in their own cgroup. `settings`: more
        of slurm.conf, with {root} for the folder."""
        self.root = Path(tempfile.mkdtemp(prefix="vramtrack-slurm-", dir="/tmp"))
        os.chmod(self.root, 0o755)
        self.started = []
        prepare(self.root)
        host = socket.gethostname().split(".")[0]
        ports = free_ports(5)
        for name in ("munge", "state", *NODES):
            (self.root / name).mkdir(mode=0o755)
        nodes = "\n".join(f"NodeName={n} NodeHostname={host} NodeAddr=127.0.0.1 Port={p} CPUs=2 RealMemory=1000 State=UNKNOWN"
                          for n, p in zip(NODES, ports[1:]))
        settings = settings.format(root=self.root)
        self.conf = self.root / "slurm.conf"
        self.conf.write_text(f"""ClusterName=vramtrack
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.root}/munge/socket
CredType=cred/munge
ProctrackType=proctrack/{"cgroup" if by_cgroup else "linuxproc"}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=2
JobRequeue=1
MpiDefault=none
MailProg=/bin/true
SchedulerParameters=bf_interval=1,sched_min_interval=0,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
StateSaveLocation={self.root}/state
SlurmctldPidFile={self.root}/slurmctld.pid
SlurmctldLogFile={self.root}/slurmctld.log
SlurmdSpoolDir={self.root}/%n/spool
SlurmdPidFile={self.root}/%n/pid
SlurmdLogFile={self.root}/%n/log
Epilog={self.root}/epilog
{settings}
{nodes}
PartitionName=gpu Nodes=gn[1-4] Default=YES MaxTime=INFINITE State=UP
""")
        (self.root / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n")
        self.environment = {**os.environ, "SLURM_CONF": str(self.conf), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        munge = self.root / "munge"
        key = munge / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.daemon("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                    f"--log-file={munge}/log", f"--seed-file={munge}/seed", "--num-threads=2")
        until("munged's socket", (munge / "socket").exists)
        self.daemon("slurmctld", "-D", "-c", "-f", str(self.conf))
        for node in NODES:
            self.daemon("slurmd", "-D", "-N", node, "-f", str(self.conf))
        until("four idle nodes", lambda: self.ask("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * 4)

    def daemon(self, *argv):
        log = open(self.root / f"{argv[0]}.out", "ab")
        self.started.append(subprocess.Popen(argv, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        log.close()

    def stop(self):
        try:  # slurmstepd outlives slurmd: first the jobs, then the daemons
            for job in self.ask("squeue", "-h", "-o", "%A").split():
                self.ask("scancel", job)
            until("an empty queue", lambda: not self.ask("squeue", "-h").strip(), 20)
        except (TimeoutError, OSError, subprocess.SubprocessError) as error:
            print(f"slurm: the queue could not be emptied: {error}")
        for process in reversed(self.started):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self.started):
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def ask(self, *argv):
        """What a program of Slurm's wrote; empty when it failed, as they do while the controller starts."""
        return subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=60).stdout

    def submit(self, script, *options):
        path = self.root / "job.sh"
        path.write_text(script)
        done = subprocess.run(["sbatch", "--parsable", "-o", f"{self.root}/job.log", "--open-mode=append", *options, str(path)],
                              env=self.environment, capture_output=True, text=True, timeout=60, cwd=self.root)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def job(self, job):
        """Its state and node: ("RUNNING", "gn1")."""
        line = self.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%T|%B").strip()
        return tuple(line.split("|")) if line else ("", "")

    def logs(self):
        return "\n".join(f"== {p}\n{p.read_text(errors='replace')[-2000:]}" for p in self.root.rglob("*log") if p.is_file())
