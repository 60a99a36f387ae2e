"""What people type without having read --help does what they mean: a table of commands with what each answers, and local times and progress on terminals."""
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

BINARY = sys.argv.pop(1)
LEAK = r"^GPU 0 NVIDIA A10: LEAK"
SHORT_JSON = r'^\{"schema":"vramtrack\.analysis'
NOTHING = r"\A\Z"

# what is typed, exit code, what is printed, what is said on standard error; {in}: standard input
TABLE = [
    ("gpu.csv", 1, LEAK, NOTHING),
    ("./gpu.csv", 1, LEAK, NOTHING),
    ("--json gpu.csv", 1, SHORT_JSON, NOTHING),
    ("steady.csv gpu.csv", 1, LEAK, NOTHING),
    ("missing.csv", 2, NOTHING, r"cannot analyse: .*missing\.csv"),
    ("- {in}", 1, LEAK, NOTHING),
    ("analyze {in}", 1, LEAK, NOTHING),
    ("analyze --json gpu.csv", 1, SHORT_JSON, NOTHING),
    ("analyze --format JSON gpu.csv", 1, SHORT_JSON, NOTHING),
    ("analyze --since 2026-01-02T03:24 --until 2026-01-02T03:30 gpu.csv", 0, r"72 samples over 6m", NOTHING),
    ("analyze --since yesterday gpu.csv", 2, NOTHING, r"no usable samples between --since and --until"),
    ("analyze --detector linear_trend --lead-time 5min gpu.csv", 1, r"an alert is raised when 5 min are left \(lead-time\)", NOTHING),
    ("analyze --unit foo gpu.csv", 2, NOTHING, r"--unit: 'foo' is not one of: B, KiB, MiB, GiB, MB, GB"),
    ("analyze --capacity 5GiB bare.csv", 1, r"warning: GPU 0: up to 8\.6 GiB are in use, more than the 5\.0 GiB that --capacity says", NOTHING),
    ("report gpu.csv -o report.html", 1, NOTHING, r"wrote the report as one HTML page to report\.html"),
    ("report --json gpu.csv", 1, r'^\{', NOTHING),
    ("replay --json gpu.csv", 1, SHORT_JSON, r".*"),
    ("replay --since 03:10 --timezone UTC gpu.csv", 2, NOTHING, r"nothing to replay: gpu\.csv has no sample between --since and --until"),
    ("replay --from 2026-01-02T03:10 --to 2026-01-02T03:12 gpu.csv", 0, r"replayed 2m of gpu\.csv", NOTHING),
    ("replay --since '2 hours ago' gpu.csv", 2, NOTHING, r"no sample between"),
    ("replay --since 30 gpu.csv", 2, NOTHING, r"--since: '30' has no unit; write for example 30s, 30min or 30h"),
    ("simulate --lead-time 5", 2, NOTHING, r"--lead-time: '5' has no unit; write for example 5s, 5min or 5h"),
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
    ("help analyze", 0, r"^Analyse logs", NOTHING),
    ("anlyze gpu.csv", 2, NOTHING, r"unknown command 'anlyze'; the nearest is 'analyze'"),
    ("ps", 2, NOTHING, r"unknown command 'ps'; the nearest is 'holders'"),
    ("status", 2, NOTHING, r"unknown command 'status'; the nearest is 'watch --once'"),
    ("run --output x python3 -c pass", 2, NOTHING, r"unknown option '-c'.*; options of the program come after '--'"),
    ("si", 2, NOTHING, r"unknown command 'si'; the nearest are 'silence', 'simulate'"),
    ("analyze --out x gpu.csv", 2, NOTHING, r"unknown option '--out'; "),
    ("report --out x gpu.csv", 2, NOTHING, r"unknown option '--out'; the nearest is '--output'"),
    ("snapshot summry x", 2, NOTHING, r"unknown subcommand 'summry' of snapshot; the nearest is 'summary'"),
    ("analyze -j gpu.csv", 2, NOTHING, r"unknown option '-j'; the nearest is '--json'"),
]


class Typed(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY, alerts_wait=True).__enter__()
        self.addCleanup(self.box.__exit__)
        self.box.write("gpu.csv", leak_log())
        self.box.write("steady.csv", steady_log())
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

    def test_the_port_of_the_agent(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with self.box.start("agent", "--port", str(port), "--scenario", "leaking_training", "--set", f"agent.socket={self.box.path}/agent.sock") as agent:
            said = agent.stderr.readline().decode()
            agent.send_signal(signal.SIGTERM)
            agent.communicate(timeout=patience(30))
        self.assertIn(f"answers on http://127.0.0.1:{port}", said)

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


class Waiting(Typed):
    """Why a leak has no alert yet, in each form: the leak is confirmed, and an hour and more is left."""

    WHY = "memory lasts for 2h 11m at least; an alert is raised when 57 min are left, the last third of this growth, which is less than lead-time (1h 00m)"
    TREND = ("--detector", "linear_trend")

    def test_every_form_says_why(self):
        for typed in (("analyze", "gpu.csv"), ("replay", "gpu.csv"), ("report", "gpu.csv"), ("replay", "--json", "gpu.csv"), ("analyze", "--json", "gpu.csv"),
                      ("report", "--format", "html", "gpu.csv")):
            with self.subTest(typed=typed):
                out = self.box.run(*typed, *self.TREND).stdout.decode()
                self.assertIn(self.WHY, re.sub(r"\s+", " ", out))

    def test_a_screen_of_top_says_why(self):
        out = self.box.run("top", "--once", "--replay", "gpu.csv", *self.TREND).stdout.decode()
        self.assertIn("memory lasts for 2h 11m at least", re.sub(r"[\s│]+", " ", out))


class Progress(unittest.TestCase):
    def test_a_line_appears_gives_way_and_is_gone(self):
        with Sandbox(BINARY) as box:
            os.mkfifo(box.work / "slow.csv")
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
            with subprocess.Popen([box.binary, "analyze", "slow.csv"], cwd=box.work, env=box.environment(), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=slave) as analysis:
                os.close(slave)
                log = open(box.work / "slow.csv", "w")  # when the program has opened it, too
                shown, end = b"", time.monotonic() + patience(30)
                while b"so far" not in shown and time.monotonic() < end:
                    if select.select([master], [], [], 1)[0]:
                        shown += os.read(master, 4096)
                self.assertRegex(shown.decode(), r"analysing slow\.csv.*, \d+ s so far")
                log.write(leak_log())
                log.close()
                out = analysis.stdout.read().decode()
                self.assertEqual(analysis.wait(timeout=patience(30)), 1)
            while True:
                try:
                    part = os.read(master, 4096)
                except OSError:
                    break
                if not part:
                    break
                shown += part
            os.close(master)
            self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)  # nothing of it stays
            self.assertRegex(out, r"(?m)^GPU 0")

    def test_there_is_none_without_a_terminal(self):
        with Sandbox(BINARY) as box:
            box.write("gpu.csv", leak_log())
            self.assertEqual(box.run("gpu.csv").stderr, b"")


if __name__ == "__main__":
    unittest.main(verbosity=1)
