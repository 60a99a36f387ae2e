"""What people type without having read --help does what they mean: a table of commands with what each answers, and local times and progress on terminals."""
import concurrent.futures
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import unittest

from patience import patience
from sandbox import Sandbox, drm_machine, leak_log, no_gpu, steady_log
from trace_writer import leaking_trace

BINARY = sys.argv.pop(1)
LEAK = r"^GPU 0 NVIDIA A10: LEAK"
SHORT_JSON = r'^\{"schema":"vramtrack\.analysis'
NOTHING = r"\A\Z"

# input, exit code, output, standard error; {in}: standard input
TABLE = [
    ("gpu.csv", 1, LEAK, NOTHING),
    ("./gpu.csv", 1, LEAK, NOTHING),
    ("--json gpu.csv", 1, SHORT_JSON, NOTHING),
    ("steady.csv gpu.csv", 1, LEAK, NOTHING),
    ("missing.csv", 2, NOTHING, r"cannot read the logs: .*missing\.csv"),
    ("- {in}", 1, LEAK, NOTHING),
    ("analyze {in}", 1, LEAK, NOTHING),
    ("analyze --json gpu.csv", 1, SHORT_JSON, NOTHING),
    ("analyze --format JSON gpu.csv", 1, SHORT_JSON, NOTHING),
    ("analyze --since 2026-01-02T03:24 --until 2026-01-02T03:30 gpu.csv", 0, r"72 samples over 6m", NOTHING),
    ("analyze --since 09:00 --timezone UTC gpu.csv", 2, NOTHING, r"no usable samples between --since and --until: it is from 2026-01-02T03:04:05Z to 2026-01-02T03:44:05Z, --since is \d{4}-\d\d-\d\dT09:00:00Z; give another period"),
    ("analyze --detector linear_trend --lead-time 5min gpu.csv", 1, r"an alert is raised when 5 min are left \(lead-time\)", NOTHING),
    ("analyze --unit foo gpu.csv", 2, NOTHING, r"--unit: 'foo' is not one of: B, KiB, MiB, GiB, MB, GB"),
    ("analyze --capacity 5GiB bare.csv", 1, r"warning: GPU 0: up to 8\.6 GiB are in use, more than the 5\.0 GiB that --capacity says", NOTHING),
    ("report gpu.csv -o report.html", 1, NOTHING, r"wrote the report as one HTML page to report\.html"),
    ("report --json gpu.csv", 1, r'^\{', NOTHING),
    ("replay --json gpu.csv", 1, SHORT_JSON, r".*"),
    ("replay --since 03:10 --timezone UTC gpu.csv", 2, NOTHING, r"nothing to replay: gpu\.csv has no sample between --since and --until"),
    ("replay --from 2026-01-02T03:10 --to 2026-01-02T03:12 gpu.csv", 0, r"replayed 2m of gpu\.csv", NOTHING),
    ("policy test --config p.toml --since 2027-01-01 gpu.csv", 2, NOTHING, r"nothing to test: gpu\.csv has no sample between --since and --until: it is from 2026-01-02T03:04:05Z to 2026-01-02T03:44:05Z, --since is 2027"),
    ("policy test --config p.toml --since 2h --until 3h gpu.csv", 2, NOTHING, r"--since must be before --until"),
    ("replay --since '2 hours ago' gpu.csv", 2, NOTHING, r"no sample between"),
    ("replay --since 30 gpu.csv", 2, NOTHING, r"--since: '30' has no unit; write, for example, 30s, 30min or 30h"),
    ("simulate --lead-time 5", 2, NOTHING, r"--lead-time: '5' has no unit; write, for example, 5s, 5min or 5h"),
    ("watch --interval 1", 2, NOTHING, r"--interval: '1' has no unit"),
    ("watch -n 1 --once --no-record {drm}", 0, r"GPU 0", r".*"),
    ("top --once --no-record --no-agent {drm}", 0, r"^vramtrack +4 GPUs", r".*"),
    ("top --once --replay gpu.csv", 1, r"REPLAY gpu\.csv", NOTHING),
    ("holders --json {none}", 2, NOTHING, r"."),
    ("explain --json {in}", 1, r"^\{|\A\Z", r".*"),
    ("programs --format json", 2, NOTHING, r"cannot list programs"),
    ("doctor --health --json --set sources.enabled=drm --set sources.sys-root=no-sys", 2, r'^\{"schema":"vramtrack\.health', r".*"),
    ("version", 0, r"^vramtrack \d", NOTHING),
    ("-v", 0, r"^vramtrack \d", NOTHING),
    ("help analyze", 0, r"^Judge logs", NOTHING),
    ("anlyze gpu.csv", 2, NOTHING, r"unknown command 'anlyze'; the nearest is 'analyze'"),
    ("ps", 2, NOTHING, r"unknown command 'ps'; the nearest is 'holders'"),
    ("status", 2, NOTHING, r"unknown command 'status'; the nearest is 'watch --once'"),
    ("run --output x python3 -c pass", 2, NOTHING, r"unknown option '-c'.*; put the program's own options after '--'"),
    ("si", 2, NOTHING, r"unknown command 'si'; the nearest are 'silence', 'simulate'"),
    ("report --out x gpu.csv", 2, NOTHING, r"unknown option '--out'; the nearest is '--output'"),
    ("snapshot summry x", 2, NOTHING, r"unknown subcommand 'summry' of snapshot; the nearest is 'summary'"),
    ("analyze -j gpu.csv", 2, NOTHING, r"unknown option '-j'; the nearest is '--json'"),
    ("update", 2, NOTHING, r"unknown command 'update'; install a new version in the same way as this one"),
    ("completion bash", 2, NOTHING, r"unknown command 'completion'; the packages install the completions"),
    ("logs", 2, NOTHING, r"the nearest is 'analyze'"),
    ("leak", 2, NOTHING, r"the nearest is 'analyze'"),
    ("history", 2, NOTHING, r"the nearest is 'report'"),
    ("info", 2, NOTHING, r"the nearest is 'doctor'"),
    ("diff a b", 2, NOTHING, r"the nearest is 'trace diff'"),
    ("stop", 2, NOTHING, r"unknown command 'stop'; Ctrl-C ends a command; 'systemctl' starts and stops the services"),
    ("agent stop", 2, NOTHING, r"unexpected argument 'stop'; Ctrl-C ends a command"),
    ("nothing", 2, NOTHING, r"unknown command 'nothing'; see"),
    ("man", 2, NOTHING, r"the packages install the page that 'man vramtrack' shows"),
    ("gpu", 2, NOTHING, r"the nearest is 'holders'"),
    ("sh train.sh", 2, NOTHING, r"the nearest is 'run -- sh train\.sh', which runs it under the probe"),
    ("train.py", 2, NOTHING, r"unknown command 'train\.py'; the nearest are 'run -- python train\.py' and 'check train\.py'"),
    ("test -- train.py", 2, NOTHING, r"cannot run train\.py: .*; give its interpreter, too: -- python train\.py"),
    ("watch gpu.csv", 2, NOTHING, r"unexpected argument 'gpu\.csv'; 'vramtrack replay gpu\.csv' plays a recording"),
    ("top gpu.csv", 2, NOTHING, r"unexpected argument 'gpu\.csv'; the nearest is '--replay gpu\.csv'"),
    ("trace gpu.csv", 2, NOTHING, r"unknown subcommand 'gpu\.csv' of trace; the nearest is 'trace report gpu\.csv'"),
    ("oom gpu.csv", 2, NOTHING, r"the nearest are 'oom show gpu\.csv' for a trace and 'explain gpu\.csv' for a program's output"),
    ("config edit", 2, NOTHING, r"edit the file that 'config path' names"),
    ("holders 0", 2, NOTHING, r"unexpected argument '0'; the nearest is '--gpu 0'"),
    ("trace live 4711", 2, NOTHING, r"unexpected argument '4711'; the nearest is '--pid 4711'"),
    ("attach --pid 4711", 2, NOTHING, r"unknown option '--pid'; PID is given without an option"),
    ("wait 20GiB", 2, NOTHING, r"unexpected argument '20GiB'; the nearest is '--free 20GiB'"),
    ("report --html gpu.csv", 2, NOTHING, r"unknown option '--html'; the nearest is '--format html'"),
    ("analyze --verbose gpu.csv", 2, NOTHING, r"unknown option '--verbose'; the nearest is '--explain'"),
    ("top --version", 2, NOTHING, r"unknown option '--version'; 'vramtrack --version' prints the version"),
    ("agent --host 0.0.0.0", 2, NOTHING, r"unknown option '--host'; the nearest is '--listen'"),
    ("top -b", 2, NOTHING, r"unknown option '-b'; the nearest is '--once'"),
    ("report --fro 1h", 2, NOTHING, r"unknown option '--fro'; the nearest is '--since'"),
    ("report --last 1h", 2, NOTHING, r"unknown option '--last'; the nearest is '--since'"),
    ("analyze --gpu 0 gpu.csv", 1, LEAK, NOTHING),
    ("analyze --gpu 0,7 gpu.csv", 2, NOTHING, r"cannot read gpu\.csv: --gpu 7: no such GPU in what was read; the GPUs are GPU 0"),
    ("analyze --pid 4711 gpu.csv", 2, NOTHING, r"unknown option '--pid'; 'top', 'trace live', 'mark' and \d+ more have it"),
    ("analyze --quiet gpu.csv", 2, NOTHING, r"unknown option '--quiet'; add >/dev/null"),
    ("watch --no-color", 2, NOTHING, r"unknown option '--no-color'; set NO_COLOR=1"),
    ("run -c pass", 2, NOTHING, r"unknown option '-c'; put the program's own options after '--'; see"),
    ("doctor --json", 2, NOTHING, r"vramtrack: --json needs --health"),
    ("doctor --until 1h", 2, NOTHING, r"vramtrack: --until needs --health"),
    ("doctor --health --since 1h --until 2h", 2, NOTHING, r"--since must be before --until"),
    ("doctor --health --since 2h --until 1h --set sources.enabled=drm --set sources.sys-root=no-sys", 2, r"", r".*"),
    ("analyze gpu.csv -o analysis.txt", 1, NOTHING, NOTHING),
    ("explain --json -o explanation.json {in}", 1, NOTHING, r"no out-of-memory message found"),
]


class Typed(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY, alerts_wait=True).__enter__()
        self.addCleanup(self.box.__exit__)
        self.box.write("gpu.csv", leak_log())
        self.box.write("steady.csv", steady_log())
        self.box.write("train.py", "import torch\n")
        self.box.write("p.toml", '[[policy]]\nname = "p"\nsteps = [{ do = "notify" }]\n')
        self.box.write("bare.csv", "\n".join(line.rsplit(",", 1)[0] for line in leak_log().splitlines()) + "\n")

    def words(self, typed):
        words = []
        for word in re.findall(r"'[^']*'|\S+", typed):
            words += {"{in}": [], "{drm}": drm_machine(), "{none}": no_gpu()}.get(word, [word.strip("'")])
        return words


class Natural(Typed):
    def test_the_table(self):
        self.assertGreaterEqual(len(TABLE), 30)
        for typed, code, printed, said in TABLE:
            with self.subTest(typed=typed):
                result = self.box.run(*self.words(typed), stdin=leak_log() if "{in}" in typed else "")
                out, err = result.stdout.decode(), result.stderr.decode()
                self.assertEqual(result.returncode, code, out + err)
                self.assertRegex(out, re.compile(printed, re.MULTILINE) if printed != NOTHING else NOTHING)
                self.assertRegex(err, re.compile(said, re.MULTILINE) if said != NOTHING else NOTHING)
        self.assertTrue((self.box.work / "report.html").read_text().lower().startswith("<!doctype html"))
        self.assertRegex((self.box.work / "analysis.txt").read_text(), re.compile(LEAK, re.MULTILINE))
        self.assertFalse((self.box.work / "explanation.json").exists(), "nothing was printed")

    def test_policies_are_tried_on_a_period(self):
        self.box.run("simulate", "--csv", "gpu.csv", "--process-csv", "apps.csv")
        for period, ladders in (((), 1), (("--since", "2026-01-05T08:05Z", "--until", "2026-01-05T09:10Z"), 1), (("--to", "2026-01-05T08:30Z"), 0)):
            with self.subTest(period=period):
                tried = self.box.run("policy", "test", "--config", "p.toml", *period, "gpu.csv", "apps.csv")
                self.assertIn(f"apps.csv: {ladders} ladder", tried.stdout.decode())

    def test_the_port_of_the_agent(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with self.box.start("agent", "--port", str(port), "--scenario", "leaking_training", "--set", f"agent.socket={self.box.path}/agent.sock") as agent:
            said = agent.stderr.readline().decode()
            agent.send_signal(signal.SIGTERM)
            agent.communicate(timeout=patience(30))
        self.assertIn(f"answers on http://127.0.0.1:{port}", said)

    def test_an_output_file_is_what_a_pipe_gets(self):
        """Also from a terminal: no colours, lines of any width, times in UTC."""
        (self.box.work / "train.py").write_text("losses = []\nfor x in data:\n    losses.append(loss)\n")
        (self.box.work / "oom.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.78 GiB\n")
        for typed in (["analyze", "gpu.csv"], ["replay", "gpu.csv"], ["explain", "oom.log"], ["check", "train.py"], ["holders", *drm_machine()]):
            with self.subTest(typed=typed):
                printed = self.box.run(*typed)
                shown = self.box.on_terminal(*typed, "-o", "out", env={"TZ": "Asia/Tokyo"}).decode()
                self.assertTrue(printed.stdout)
                self.assertNotIn(printed.stdout.decode().splitlines()[0], shown)
                self.assertEqual(re.sub(r"\d", "", (self.box.work / "out").read_text()), re.sub(r"\d", "", printed.stdout.decode()))
                (self.box.work / "out").unlink()

    def test_a_written_log_needs_no_zone(self):
        for zone in ("UTC", "America/New_York"):
            self.box.run("simulate", "--csv", "s.csv", env={"TZ": zone})
            row = json.loads(self.box.run("s.csv", "--json", env={"TZ": "Asia/Tokyo"}).stdout.splitlines()[0])
            self.assertEqual(row["start"], "2026-01-05T08:00:00Z")

    def test_terminals_have_local_times_and_files_and_json_have_utc(self):
        if not os.path.exists("/usr/share/zoneinfo/Asia/Tokyo"):
            self.skipTest("no zone database")
        tokyo = {"TZ": "Asia/Tokyo"}
        typed = ("analyze", "--timezone", "UTC", "gpu.csv")
        shown = self.box.on_terminal(*typed, env=tokyo).decode()
        self.assertEqual(shown.count("times are local, JST (UTC+09:00)"), 1, shown)
        self.assertRegex(shown, r"since +2026-01-02 12:0\d:\d\d")
        self.assertNotRegex(shown, r"\d\dZ\b")
        self.assertRegex(self.box.run(*typed, env=tokyo).stdout.decode(), r"since +2026-01-02T03:0\d:\d\dZ")
        as_json = self.box.on_terminal(*typed, "--json", env=tokyo).decode()
        self.assertNotIn("JST", as_json)
        self.assertIn('"start":"2026-01-02T03:04:05Z"', as_json)
        once = self.box.on_terminal("top", "--once", "--replay", "gpu.csv", "--timezone", "UTC", env=tokyo, size=(120, 40)).decode()
        self.assertEqual(once.count("JST"), 1, once)
        self.assertIn("2026-01-02 12:44:05 JST", once)
        for columns, rows, first in ((60, 16, r"vramtrack +1 GPU"), (120, 40, r"vramtrack +1 GPU"), (59, 15, r"vramtrack top needs 60x16; this is 59x15")):
            once = self.box.on_terminal("top", "--once", "--replay", "gpu.csv", "--timezone", "UTC", env=tokyo, size=(columns, rows)).decode().splitlines()
            self.assertRegex(once[0], first)
            self.assertLess(len(once), rows)
            self.assertLessEqual(max(map(len, once)), columns)
        refused = self.box.on_terminal("report", "gpu.csv", "--timezone", "UTC", "--since", "2026-02-01", env=tokyo).decode()
        self.assertRegex(refused, r"times are local, JST[\s\S]*2026-01-02 12:0\d:\d\d")
        self.assertNotRegex(refused, r"\d\dZ\b")


class Waiting(Typed):
    """Why a leak has no alert yet, in each form: the leak is confirmed, and an hour and more is left."""

    WHY = "memory lasts at least 2h 11m; an alert is raised when 57 min are left, the last third of this growth, which is less than lead-time (1h 00m)"
    TREND = ("--detector", "linear_trend")

    def test_every_form_says_why(self):
        for typed in (("analyze", "gpu.csv"), ("replay", "gpu.csv"), ("report", "gpu.csv"), ("replay", "--json", "gpu.csv"), ("analyze", "--json", "gpu.csv"),
                      ("report", "--format", "html", "gpu.csv")):
            with self.subTest(typed=typed):
                out = self.box.run(*typed, *self.TREND).stdout.decode()
                self.assertIn(self.WHY, re.sub(r"\s+", " ", out))

    def test_a_screen_of_top_says_why(self):
        out = self.box.run("top", "--once", "--replay", "gpu.csv", *self.TREND).stdout.decode()
        self.assertIn("memory lasts at least 2h 11m", re.sub(r"[\s│]+", " ", out))


class Progress(unittest.TestCase):
    #: by command: what it reads, and the exit code
    READERS = {"analyze": ("csv", 1), "replay": ("csv", 1), "report": ("csv", 1), "policy test --config p.toml": ("csv", 0), "top --once --replay": ("csv", 1),
               "trace report": ("trace", 1), "trace flamegraph -o f.html": ("trace", 0), "trace page -o p.html": ("trace", 0),
               "trace export --format folded": ("trace", 0), "trace export --format csv": ("trace", 0), "oom show": ("trace", 1), "check": ("py", 1)}
    WRITTEN = {"csv": leak_log().encode(), "trace": leaking_trace().bytes(), "py": b"import torch\nlosses = []\nfor x in data:\n    loss = model(x)\n    loss.backward()\n    losses.append(loss)\n"}

    def test_a_line_appears_gives_way_and_is_gone(self):
        with concurrent.futures.ThreadPoolExecutor(len(self.READERS)) as pool:  # each waits for two seconds
            results = {typed: pool.submit(self.reads, typed.split(), *expected) for typed, expected in self.READERS.items()}
        for typed, result in results.items():
            with self.subTest(typed=typed):
                result.result()

    def reads(self, typed, ending, code):
        with Sandbox(BINARY) as box:
            slow = f"slow.{ending}"
            box.write("p.toml", '[[policy]]\nname = "p"\nsteps = [{ do = "notify" }]\n')
            os.mkfifo(box.work / slow)
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
            with subprocess.Popen([box.binary, *typed, slow], cwd=box.work, env=box.environment(), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=slave) as analysis:
                os.close(slave)
                log = open(box.work / slow, "wb")  # once the program has opened it, too
                shown, end = b"", time.monotonic() + patience(30)
                while b"so far" not in shown and time.monotonic() < end:
                    if select.select([master], [], [], 1)[0]:
                        shown += os.read(master, 4096)
                self.assertRegex(shown.decode(), rf"reading slow\.{ending}.*, \d+ s so far")
                log.write(self.WRITTEN[ending])
                log.close()
                out = analysis.stdout.read().decode()
                self.assertEqual(analysis.wait(timeout=patience(30)), code)
            while True:
                try:
                    part = os.read(master, 4096)
                except OSError:
                    break
                if not part:
                    break
                shown += part
            os.close(master)
            if code == 1 and typed[0] != "oom":
                self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)  # nothing of it remains
                self.assertTrue(out)

    def test_there_is_none_without_a_terminal(self):
        with Sandbox(BINARY) as box:
            box.write("gpu.csv", leak_log())
            self.assertEqual(box.run("gpu.csv").stderr, b"")


if __name__ == "__main__":
    unittest.main(verbosity=1)
