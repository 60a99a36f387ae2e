"""kill -9 of the real agent at random moments while alerts arise: no notification is lost, and none arrives twice unless
the kill fell between the receiver's answer and the agent's record of it; then it has the same Idempotency-Key.

VRAMTRACK_KILLS: how many kills (default 6)."""
import collections
import http.server
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

from patience import patience
from sandbox import Sandbox

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")
KILLS = int(os.environ.get("VRAMTRACK_KILLS", "6"))
GPUS = 8
LIMIT_S = patience(30)


class Receiver:
    """Accepts every message; `got`: (id, body, number of the agent that sent it), in order."""

    def __init__(self):
        self.got = []
        self.lock = threading.Lock()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                text = self.rfile.read(int(self.headers["Content-Length"]))
                if len(text) < int(self.headers["Content-Length"]):
                    return  # the agent was killed while sending
                body = json.loads(text)
                with receiver.lock:
                    receiver.got.append((self.headers["Idempotency-Key"], body, int(self.path[1:])))
                try:
                    self.send_response(200)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass  # the agent was killed meanwhile

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def all(self):
        with self.lock:
            return list(self.got)


@unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
class Killed(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        # Separate programs: the ranks of one job would be one incident, and one message.
        self.jobs = [subprocess.Popen([f"model-{chr(ord('a') + i) * 4}", "3600"], executable=shutil.which("sleep")) for i in range(GPUS)]
        for job in self.jobs:
            self.addCleanup(lambda j=job: (j.kill(), j.wait()))
        self.receiver = Receiver()
        self.addCleanup(self.receiver.server.server_close)
        self.addCleanup(self.receiver.server.shutdown)

    @property
    def queue(self):
        path = self.box.path / "home/.local/state/vramtrack/vramtrack.db.notify.json"
        return json.loads(path.read_text()) if path.exists() else {"messages": [], "incidents": []}

    def start(self, number, last_tick=None):
        """The agent of that number: of eight GPUs, on each of which a process leaks; from `last_tick` on those are gone. The agent sees
        a tick each 0.1 s."""
        end = f" to={last_tick}" if last_tick else ""
        scenario = "".join(f"gpu {i} uuid=GPU-{i} name=Fake pci=00000000:{i + 1:02x}:00.0 total=80G used=1G\n"
                           f"process gpu={i} pid={job.pid} list=C used=1G+8M{end}\n" for i, job in enumerate(self.jobs))
        self.box.write("nvml.txt", scenario)
        env = {**self.box.environment(), "VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")}
        settings = {"sources.nvml-library": FAKE, "minimum-duration-minutes": 0, "minimum-samples": 10,
                    "notify.webhook": f"{self.receiver.url}{number}", "notify.max-per-hour": 100000, "notify.retry-seconds": 0.05,
                    "watch.experience": "false",  # each agent raises its alerts again
                    "agent.socket": self.box.path / "agent.sock"}
        options = [f"--set={key}={value}" for key, value in settings.items()]
        return subprocess.Popen([BINARY, "agent", "--listen", "", "--detector", "linear_trend", "--interval", "0.1s", "--source",
                                 "nvml", *options], cwd=self.box.work, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def wait_for(self, agent, condition, what):
        end = time.monotonic() + LIMIT_S
        while not condition():
            if agent.poll() is not None or time.monotonic() > end:
                agent.kill()
                self.fail(f"{what} did not come: {agent.communicate()[1].decode()[-2000:]}")
            time.sleep(0.02)

    def test_nothing_is_lost_and_nothing_arrives_twice(self):
        chance = random.Random(20261122)
        queued = set()
        left = []  # per kill: ids of the messages that the agent had not recorded as delivered
        for kill in range(KILLS):
            before = len(self.receiver.all())
            # Half of the kills come within a burst of messages, when all leaks begin or end. The others come at any time.
            in_burst = kill % 2 == 0
            agent = self.start(kill, last_tick=chance.choice([16, 24] if in_burst else [None, 16, 24]))
            if in_burst:
                self.wait_for(agent, lambda: len(self.receiver.all()) > before, "a message")
                time.sleep(chance.uniform(0, 0.1))
            else:
                time.sleep(chance.uniform(0.2, 4))
            agent.send_signal(signal.SIGKILL)
            agent.communicate(timeout=LIMIT_S)
            left.append({message["id"] for message in self.queue["messages"]})
            queued |= left[-1]
        # Undisturbed, it delivers the leftovers, and reports the leaks.
        agent = self.start(KILLS)
        self.wait_for(agent, lambda: {b["device"] for _, b, _ in self.receiver.all() if b["event"] == "raised"} >=
                      {f"GPU-{i}" for i in range(GPUS)}, "an alert of each GPU")
        self.wait_for(agent, lambda: not self.queue["messages"] and len(self.queue["incidents"]) >= GPUS, "all to be delivered")
        agent.send_signal(signal.SIGTERM)
        _, err = agent.communicate(timeout=LIMIT_S)

        got = self.receiver.all()
        agents = collections.defaultdict(list)
        for key, body, number in got:
            self.assertEqual(key, body["id"])
            agents[key].append(number)
        lost = [i for i in queued if i not in agents]
        self.assertEqual(lost, [], "were queued and never arrived")
        # A later agent repeats a message of the previous one only if that was killed before it could record the delivery.
        twice = {i: numbers for i, numbers in agents.items()
                 if len(set(numbers)) < len(numbers) or any(i not in left[n] for n in numbers[:-1])}
        self.assertEqual(twice, {}, "arrived twice though no kill fell between answer and record")
        # Each incident is raised once and resolved at most once, in that order.
        events = collections.defaultdict(list)
        for key in agents:
            body = next(b for k, b, _ in got if k == key)
            events[body["incident"]].append(body["event"])
        for incident, seen in events.items():
            self.assertEqual(seen.count("raised"), 1, f"{incident}: {seen}")
            self.assertLessEqual(seen.count("resolved"), 1, f"{incident}: {seen}")
        print(f"outbox: {KILLS} kills, {len(agents)} notifications, 0 lost, "
              f"{sum(len(n) - 1 for n in agents.values())} arrived again after a kill between answer and record", file=sys.stderr)
        self.assertNotIn(b"would not survive", err)


if __name__ == "__main__":
    unittest.main(verbosity=1)
