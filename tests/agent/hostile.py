"""One hostile client against the agent: root's /metrics answers soon throughout (a second on an idle machine), /healthz always, and what it holds is bounded.

The client (attacker.py) is another user of this machine where root runs this, and an address of its own beside loopback."""
import datetime
import json
import os
import pathlib
import socket
import subprocess
import sys
import unittest
import time

from attacker import ask
from running import Agent, Sandbox, patience, until

BINARY = sys.argv.pop(1)
CLIENT = pathlib.Path(__file__).resolve().with_name("attacker.py").read_text()
ATTACKER, BYSTANDER = 65534, 65533
SECONDS = float(os.environ.get("VRAMTRACK_HOSTILE_SECONDS", 3))  # of each kind of attack
KINDS = ("connections", "histories", "streams", "requests", "connections,histories,streams,requests")
TOKEN = "0123456789abcdef0123456789abcdef"
WITHIN_S = patience(1.0)
LONGEST = 8_500_000  # bytes of JSON: the 200,000 points that one history may have
MOST_RESIDENT = 160 << 20
# A device that never says the same number twice. One key 128 times, each written in another way, and 26 hours of
# minutes are as many points as one answer may have.
WAVERING = """
name = "wavering"
period_s = 30
duration_s = "30d"
[[device]]
id = "GPU-1"
capacity_bytes = "80GiB"
[[process]]
  [[process.shape]]
  kind = "constant"
  bytes = "40GiB"
  [[process.shape]]
  kind = "noise"
  sigma_bytes = "1GiB"
"""
HISTORY_S = 1562 * 60
KEY = "device_used/GPU-1"
SPELLINGS = ["".join(f"%{ord(c):02x}" if n >> i & 1 else c for i, c in enumerate(KEY)) for n in range(128)]
HISTORY = "/api/v1/history?" + "&".join("series=" + spelling for spelling in SPELLINGS) + "&points=5000&resolution=minute"


def as_user(uid, *args, **kwargs):
    extra = {"user": uid, "group": uid, "extra_groups": []} if uid is not None else {}
    return subprocess.Popen(["/usr/bin/env", "python3", "-c", CLIENT, *args], cwd="/", start_new_session=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, env={"PATH": os.environ["PATH"]}, **extra, **kwargs)


def own_address():
    """An address of this machine that is not loopback; None: it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # sends nothing
            return s.getsockname()[0]
        except OSError:
            return None


class Hostile(unittest.TestCase):
    def sandbox(self):
        """Removed after the agent in it has ended: cleanups run from the last to the first."""
        box = Sandbox(BINARY).__enter__()
        self.addCleanup(box.__exit__)
        return box

    def agent(self, box, *args, runtime=None, **kwargs):
        store = f"store.path={box.work}/kept.db"
        (box.work / "wavering.toml").write_text(WAVERING)
        with Agent(box, "--set", store, "--scenario", str(box.work / "wavering.toml"), "--speed", "18000", simulate=False) as past:
            def recorded():
                for series in past.get("/api/v1/series", unix=True)["series"]:
                    if series["key"] == KEY:
                        first, last = (datetime.datetime.fromisoformat(series[which][:19]) for which in ("first", "last"))
                        return last if (last - first).total_seconds() > HISTORY_S + 3600 else None
            last = until(recorded, 120, "a day of minutes")
        first = last - datetime.timedelta(seconds=HISTORY_S)
        self.history = f"{HISTORY}&from={first.isoformat()}Z&to={last.isoformat()}Z"
        agent = Agent(box, "--set", store, *args, speed=60, **kwargs)
        agent.socket = runtime / "agent.sock" if runtime else agent.socket
        agent.__enter__()
        self.addCleanup(agent.__exit__)
        status, seconds, answer = ask(str(agent.socket), self.history, timeout=60)
        self.assertEqual(status, 200, answer[:500])
        self.assertGreater(len(answer), LONGEST)
        print(f"\none history: {len(answer) / 1e6:.1f} MB in {seconds:.2f} s")
        return agent

    def resident(self, agent):
        return int(pathlib.Path(f"/proc/{agent.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    def measure(self, agent, uid, attacked, watched):
        for kind in KINDS:
            with self.subTest(kind):
                # A machine that is busy with other things makes everybody wait: what counts is what the attacker brings about each time.
                for last in (False, False, True):
                    attacker = as_user(uid, "attack", kind, self.history, *attacked)
                    try:
                        longest = self.measure_one(agent, attacker, watched, kind, may_ask=uid is not None)
                    finally:
                        attacker.stdin.close()
                        attacker.stdout.close()
                        attacker.wait(20)
                    if longest < WITHIN_S:
                        break
                    self.assertFalse(last, f"{longest:.2f} s")

    def measure_one(self, agent, attacker, watched, kind, may_ask):
        """`watched`: (what, where, path, headers) that are asked in turns while the attacker works."""
        self.assertEqual(attacker.stdout.readline(), b"attacking\n")
        before, most = self.resident(agent), 0
        took = {what: [] for what, *_ in watched}
        print(f"\n{kind}, {SECONDS:.0f} s:")
        wrong = []
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            for what, where, path, headers in watched:
                try:
                    # A flood throws out some of its own address; whoever probes asks again.
                    for _ in range(3 if "hostile" in what else 1):
                        status, seconds, answer = ask(where, path, headers, 5)
                        if status == 200:
                            break
                except OSError as e:
                    status, seconds, answer = 0, 5, repr(e).encode()
                took[what].append(seconds)
                if status != 200:
                    wrong.append((what, answer[:200]))
            most = max(most, self.resident(agent))
        self.assertIsNone(attacker.poll(), "the attacker ended by itself")
        status = json.loads(ask(watched[0][1], "/api/v1/status", watched[0][3])[2].split(b"\r\n\r\n", 1)[1])
        for what, times in took.items():
            times.sort()
            print(f"  {what}: {len(times)} answers, median {times[len(times) // 2] * 1e3:.1f} ms, 99 % under {times[len(times) * 99 // 100] * 1e3:.0f} ms, "
                  f"longest {times[-1] * 1e3:.0f} ms")
        print(f"  the agent: {before / 2**20:.0f} MiB when it began, {most / 2**20:.0f} MiB at most; {status['own']['clients']} streams")
        self.assertEqual(len(wrong), 0, wrong[:5])
        if not os.environ.get("VRAMTRACK_SANITIZE"):
            # Without a bound, the histories that nobody reads would take hundreds: 40 or 80 of them.
            self.assertLess(most, MOST_RESIDENT)
            if kind == "histories" and may_ask:
                self.assertGreater(most, before + LONGEST, "nothing was unread: this attack is none")
        return max(times[-1] for times in took.values())

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to attack as another user")
    def test_by_another_user_of_this_machine(self):
        box = self.sandbox()
        box.path.chmod(0o755)
        public = box.path / "public"
        public.mkdir()
        public.chmod(0o755)
        agent = self.agent(box, runtime=public, env={"RUNTIME_DIRECTORY": str(public)})
        unix, tcp = str(public / "agent.sock"), f"{agent.host}:{agent.port}"
        probe = as_user(BYSTANDER, "ask", tcp, "/healthz")
        if probe.communicate()[0] != b"200\n":
            self.skipTest("python3 cannot run as another user here")
        self.measure(agent, ATTACKER, (unix, tcp), [("root's /metrics over TCP", tcp, "/metrics", ""), ("root's /metrics over the Unix socket", unix, "/metrics", ""),
                                                    ("root's /healthz", tcp, "/healthz", ""), ("root's /api/v1/view", unix, "/api/v1/view", "")])
        attacker = as_user(ATTACKER, "attack", KINDS[-1], self.history, unix, tcp)
        self.addCleanup(lambda: (attacker.stdin.close(), attacker.stdout.close(), attacker.wait(20)))
        self.assertEqual(attacker.stdout.readline(), b"attacking\n")
        for uid in (BYSTANDER, ATTACKER):
            for where in (tcp, unix):
                for path in ("/healthz", "/api/v1/status")[:1 if uid == ATTACKER else 2]:
                    self.assertEqual(as_user(uid, "ask", where, path).communicate(timeout=30)[0], b"200\n", (uid, where, path))

    @unittest.skipUnless(own_address(), "this machine has no address beside loopback")
    def test_by_an_address(self):
        box = self.sandbox()
        token = box.work / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        agent = self.agent(box, "--set", f"agent.token-file={token}", "--set", "agent.allowed-hosts=localhost", listen="0.0.0.0:0")
        hostile = f"{own_address()}:{agent.port}"
        bearer = f"Authorization: Bearer {TOKEN}\r\n"
        local = f"127.0.0.1:{agent.port}"
        self.measure(agent, None, (hostile,), [("the owner's /metrics over TCP", local, "/metrics", bearer), ("/healthz from loopback", local, "/healthz", ""),
                                               ("/healthz from the hostile address", hostile, "/healthz", "")])


if __name__ == "__main__":
    unittest.main(verbosity=1)
