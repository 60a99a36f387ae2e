"""The programs that are traced while they run."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def line_of(source, name):
    """The number of the line that the comment names."""
    for number, line in enumerate((HERE / source).read_text().splitlines(), 1):
        if line.endswith(f"LINE {name}"):
            return number
    raise ValueError(name)


class Program:
    def __init__(self, *command, **how):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **how)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def do(self, *commands):
        for command in commands:
            answer = self.ask(command)
            assert answer in ("done", "ready"), answer

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)


def is_probed_at(program, address):
    with open(f"/proc/{program.pid}/mem", "rb") as memory:
        memory.seek(address)
        return memory.read(1) == b"\xcc"


def is_probed(program, library):
    """Whether the library's functions are: cuMemFree_v2 is one of the last."""
    symbols = subprocess.run(["readelf", "-W", "--dyn-syms", library], capture_output=True, text=True, check=True).stdout
    offset = next(int(line.split()[1], 16) for line in symbols.splitlines() if line.endswith(" cuMemFree_v2"))
    maps = pathlib.Path(f"/proc/{program.pid}/maps").read_text()
    base = next(int(line.split("-")[0], 16) for line in maps.splitlines() if line.endswith(str(library)))
    return is_probed_at(program, base + offset)


def until(condition, within_s=20):
    """Whether it becomes true."""
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def another_traces():
    """Whether another program on this machine traces, whose probe looks like that of ours: it holds links of BPF or events of perf."""
    for fd in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            what = os.readlink(fd)
        except OSError:
            continue
        if "perf_event" in what or "bpf-link" in what or "bpf_link" in what:
            return True
    return False


def stays_probed(program, library, within_s=5):
    """Whether the probe is still there after this time: the kernel takes it away a moment after its owner's end."""
    return not until(lambda: not is_probed(program, library), within_s) and not another_traces()


class Traced(unittest.TestCase):
    """`vramtrack trace live` beside programs. `binary` is set by who inherits."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace = self.folder / "live.trace"
        self.before = []  # a command that starts the tracer

    def start(self, *command, **how):
        program = Program(*command, **how)
        self.addCleanup(program.end)
        return program

    def start_for_all(self, keeper, library, *before):
        """Starts copies of a program and its library that every user may read, which the build's may not be."""
        folder = self.folder / "for-all"
        folder.mkdir()
        for path in (self.folder, folder):
            path.chmod(0o755)
        for path in (keeper, library):
            shutil.copy(path, folder)
        return self.start(*before, "env", f"LD_LIBRARY_PATH={folder}", folder / keeper.name)

    def attach(self, *options):
        tracer = subprocess.Popen([*self.before, self.binary, "trace", "live", "--output", self.trace, *map(str, options)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        self.addCleanup(tracer.communicate)
        self.addCleanup(tracer.kill)
        first = tracer.stdout.readline()
        if not first.startswith("tracing "):
            self.fail(f"{first}{tracer.communicate()[1]}")
        return tracer

    def detach(self, tracer, warning="^$"):
        tracer.send_signal(signal.SIGINT)
        out, err = tracer.communicate(timeout=60)
        self.assertRegex(err, warning)
        self.warning = err
        report = subprocess.run([self.binary, "trace", "report", "--format", "json", self.trace], capture_output=True, text=True, timeout=60)
        report = json.loads(report.stdout)
        self.processes = report["verdict"]["processes"]
        self.live_bytes = sum(process["live_bytes"] for process in self.processes)
        return tracer.returncode, out, report

    def traced(self, program, *commands, options=None):
        tracer = self.attach(*(options or ("--pid", program.process.pid)))
        program.do(*commands)
        return self.detach(tracer)


def why_not(binary):
    """Why no program can be traced here, by what doctor finds; None if it can."""
    said = subprocess.run([binary, "doctor"], capture_output=True, text=True).stdout
    line = next(line for line in said.splitlines() if re.match(r"\w+ +tracing ", line))
    return None if line.startswith("ok ") else line


def main(binary):
    """Runs the tests, where programs can be traced."""
    if why := why_not(binary):
        print(f"skipped: {why}")
        sys.exit(77)
    unittest.main()


def pythons():
    """The interpreters that are here whose frames are walked, by version: the system's, those of pyenv, and that of scripts/python314.sh."""
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    found = {}
    fetched = HERE.parents[1].glob("build/python3.14/usr/bin/python3.14")
    for path in ("/usr/bin/python3", *sorted(map(str, root.glob("versions/3.*/bin/python3"))), *map(str, fetched)):
        tell = "import sys; print(*sys.version_info[:2])"
        told = subprocess.run([path, "-c", tell], capture_output=True, text=True) if os.path.exists(path) else None
        if told and told.returncode == 0 and (3, 8) <= (version := tuple(map(int, told.stdout.split()))) <= (3, 14):
            found.setdefault(version, path)
    return found
