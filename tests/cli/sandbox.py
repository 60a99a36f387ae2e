"""Runs the real vramtrack with its own home, away from this machine's GPUs, settings and store."""
import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import tempfile
import termios

from patience import patience

TESTS = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = TESTS / "fixtures"
MIB = 2**20


class Sandbox:
    """A temporary home and working directory; use it with `with`."""

    def __init__(self, binary, alerts_wait=False):
        """`alerts_wait`: a leak raises its alert when little time is left, as by default; else as soon as it is confirmed, which is what most tests are about."""
        self.binary = str(pathlib.Path(binary).resolve())
        self.alerts_wait = alerts_wait

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="vramtrack-cli-")
        self.path = pathlib.Path(self._folder.name).resolve()
        for name in ("home", "work"):
            (self.path / name).mkdir()
        self.work = self.path / "work"
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def environment(self, extra=None):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")}
        if "CLOCK_AHEAD_S" in os.environ:  # make test-anywhere
            kept |= {k: os.environ[k] for k in ("CLOCK_AHEAD_S", "LD_PRELOAD") if k in os.environ}
        if not self.alerts_wait:
            kept["VRAMTRACK_ALERT_LEAD_TIME_MINUTES"] = "0"
        return {**kept, "HOME": str(self.path / "home"), "TMPDIR": str(self.path), "TZ": "UTC", "LC_ALL": "C.UTF-8", "TERM": "xterm", **(extra or {})}

    def run(self, *args, stdin="", env=None, timeout=patience(60)):
        return subprocess.run([self.binary, *args], cwd=self.work, env=self.environment(env), input=stdin if isinstance(stdin, bytes) else stdin.encode(),
                              capture_output=True, timeout=timeout)

    def start(self, *args, **kwargs):
        return subprocess.Popen([self.binary, *args], cwd=self.work, env=self.environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)

    def on_terminal(self, *args, env=None, size=None, keys=b"", once_shown=b""):
        """Runs on a pseudo-terminal of `size` (columns, rows) and returns what it showed; presses `keys` as soon as that has `once_shown`."""
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            os.execve(self.binary, [self.binary, *args], self.environment(env))
        if size:
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        shown = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # it has closed its terminal
                break
            if not part:
                break
            shown += part
            if keys and once_shown in shown:
                os.write(master, keys)
                keys = b""
        os.close(master)
        os.waitpid(pid, 0)
        return shown

    def write(self, name, text):
        (self.work / name).parent.mkdir(parents=True, exist_ok=True)
        (self.work / name).write_text(text)


def expect_golden(test, name, text, known=()):
    """Expects `text` to be what tests/golden/words/run/NAME holds. `known`: (regular expression, word) for what differs from run to run. With
    VRAMTRACK_UPDATE in the environment, the file is rewritten."""
    for pattern, word in known:
        text = re.sub(pattern, word, text)
    path = TESTS / "golden/words/run" / name
    if "VRAMTRACK_UPDATE" in os.environ:
        path.write_text(text)
    test.assertEqual(text, path.read_text(), f"{path}; VRAMTRACK_UPDATE=1 rewrites it: then read the difference")


def no_gpu():
    """Options for a machine without any GPU, wherever the test runs."""
    return ["--source", "drm", "--set", "sources.sys-root=no-sys"]


def drm_machine():
    """Options for the machine of the fixture trees: cards of three vendors."""
    return ["--source", "drm", "--set", f"sources.sys-root={FIXTURES}/sys", "--set", f"sources.proc-root={FIXTURES}/proc"]


def smi_log(used_mib, period_s=5, total_mib=24576):
    """An nvidia-smi log with used_mib(t_s) until that is None; it begins at 2026-01-02 03:04:05."""
    rows = ["timestamp, index, name, memory.used [MiB], memory.total [MiB]"]
    n = 0
    while (used := used_mib(n * period_s)) is not None:
        t = 3 * 3600 + 4 * 60 + 5 + n * period_s
        day, t = 2 + t // 86400, t % 86400
        rows.append(f"2026/01/{day:02} {t // 3600:02}:{t // 60 % 60:02}:{t % 60:02}.000, 0, NVIDIA A10, {used:.0f} MiB, {total_mib} MiB")
        n += 1
    return "\n".join(rows) + "\n"


def leak_log(mib_per_min=120, minutes=40):
    return smi_log(lambda t: 4000 + mib_per_min / 60 * t if t <= minutes * 60 else None)


def steady_log(minutes=40):
    return smi_log(lambda t: 9000 if t <= minutes * 60 else None)
