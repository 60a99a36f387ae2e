"""The real `vramtrack actuate` from outside, with doubles of the agents and of Slurm's programs: what it takes, refuses and does."""
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import unittest

from running import Agent, Sandbox, UnixConnection, until

BINARY = sys.argv.pop(1)
SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests/cli"), str(SOURCE / "tests/fleet")]
from scan_data import healthy, labels, leaking, with_capacity  # noqa: E402
from servers import VictoriaMetrics  # noqa: E402

#: Each of Slurm's programs, as far as it is asked: the state is in the folder of the program.
SLURM = r"""#!/bin/sh
state=$(dirname "$0")/../slurm
name=$(basename "$0")
case "$name $*" in
  "squeue "*RestartCnt*) echo "0 (null)"; exit ;;
  "squeue "*%A) [ -e "$state/elsewhere" ] || echo 7; exit ;;
  "squeue "*%T) cat "$state/job"; exit ;;
  "squeue "*) echo "7|7|N/A|$(cat "$state/job")|alice|1000|gn1|(null)"; exit ;;
  "sinfo "*) [ -e "$state/drained" ] && echo "drained|$(cat "$state/drained")" || echo "mixed|none"; exit ;;
esac
echo "$name $*" >>"$state/told"
case "$name $*" in
  *State=DRAIN*) echo "$*" | sed 's/.*Reason=//' >"$state/drained" ;;
  *State=RESUME*) rm -f "$state/drained" ;;
  *"requeue "*) echo PENDING >"$state/job" ;;
esac
"""

POLICY = """
[[policy]]
name = "leaks"
when.user = ["alice"]
when.job = [".*"]
when.labels = { alertname = "GpuMemoryLeak" }
steps = [{ do = "signal-job", signal = "SIGUSR1", on-failure = "stop" }, { do = "drain" }, { do = "requeue", after = "1s" }]
"""


def view_of_a_leak():
    """The View of a simulated agent with a standing alert, as a fixture for the double."""
    with Sandbox(BINARY) as box, Agent(box, speed=1200) as agent:
        def whole():
            view = agent.get("/api/v1/view")
            return view if any(s.get("alerts") and s["key"].startswith("process_used") for s in view["series"]) else None
        return until(whole, 60, "an alert of the process")


class Double(http.server.BaseHTTPRequestHandler):
    """An agent: its host and its View are the server's attributes."""

    def do_GET(self):
        self.server.asked += 1
        self.server.tokens.append(self.headers.get("Authorization"))
        body = {"/api/v1/version": {"version": "0", "host": self.server.host, "pid": 1, "started": "2026-01-01T00:00:00Z"},
                "/api/v1/view": self.server.view}.get(self.path)
        self.send_response(200 if body else 404)
        self.end_headers()
        try:
            self.wfile.write(json.dumps(body or {}).encode())
        except OSError:  # who asked was killed
            pass

    def log_message(self, *_):
        pass


class Actuator:
    """`vramtrack actuate` in a sandbox, with one agent double and one Slurm double. Use it with `with`."""
    view = None

    def __init__(self, *args, policy=POLICY):
        Actuator.view = Actuator.view or view_of_a_leak()
        self.args = args
        self.policy = policy
        self.sandbox = Sandbox(BINARY)

    def __enter__(self):
        self.box = self.sandbox.__enter__()
        self.agent = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Double)
        self.agent.host, self.agent.asked, self.agent.tokens = "gn1", 0, []
        self.agent.view = json.loads(json.dumps(Actuator.view))
        self.process_key = next(s["key"] for s in self.agent.view["series"] if s["key"].startswith("process_used") and s.get("alerts"))
        self.pid = self.process_key.split("/")[2]
        for series in self.agent.view["series"]:
            if series["key"] == self.process_key:
                series["process"].update(user="alice", slurm_job="7.batch")
        threading.Thread(target=self.agent.serve_forever, daemon=True).start()
        self.state = self.box.work / "state"
        self.slurm = self.box.work / "slurm"
        self.slurm.mkdir()
        (self.slurm / "job").write_text("RUNNING\n")
        programs = self.box.work / "bin"
        programs.mkdir()
        for name in ("squeue", "sinfo", "scontrol", "scancel"):
            (programs / name).write_text(SLURM)
            (programs / name).chmod(0o755)
        self.env = {**self.box.environment(), "PATH": f"{programs}:{os.environ['PATH']}"}
        self.box.write("fleet.toml", self.policy)
        self.start()
        return self

    def start(self, *more):
        log = open(self.box.work / "log", "ab")
        self.process = subprocess.Popen([BINARY, "actuate", "--policy", "fleet.toml", "--listen", "127.0.0.1:0", "--state", self.state, "--node", "{Hostname}",
                                         "--agents", "http://{instance}", "--set", "actuate.poll-seconds=0.1", *self.args, *more],
                                        cwd=self.box.work, env=self.env, stdout=subprocess.DEVNULL, stderr=log)  # fmt: skip
        log.close()
        self.begun = len(self.log()) if hasattr(self, "port") else 0
        match = until(lambda: re.search(r"receives alerts on http://127.0.0.1:(\d+)", self.log()[self.begun:]) or self.process.poll() is not None, 20, "starting")
        assert match is not True, self.log()
        self.port = int(match[1])

    def __exit__(self, *failure):
        self.end()
        if failure[0]:
            print(self.log()[-3000:], *self.record(), *self.told(), sep="\n")
        self.agent.shutdown()
        self.agent.server_close()
        self.sandbox.__exit__(*failure)

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(20)

    def log(self):
        path = self.box.work / "log"
        return path.read_text() if path.exists() else ""

    def ask(self, method, path, body=None, unix=False, **headers):
        connection = UnixConnection(self.state / "actuate.sock") if unix else http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            if body is not None and not isinstance(body, (str, bytes)):
                body = json.dumps(body)
            connection.request(method, path, body, {"Content-Type": "application/json", **headers} if body is not None else headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def alert(self, status="firing", fingerprint="abcdef0123456789", **labels):
        return {"status": status, "fingerprint": fingerprint, "startsAt": "2026-01-02T03:04:05.678Z", "endsAt": "0001-01-01T00:00:00Z",
                "labels": {"alertname": "GpuMemoryLeak", "instance": f"127.0.0.1:{self.agent.server_port}", "Hostname": "gn1", "pid": self.pid,
                           "slurm_job_id": "7", **labels},
                "annotations": {"summary": "GPU 0 leaks"}}  # fmt: skip

    def post(self, *alerts, **headers):
        return self.ask("POST", "/api/v1/alerts", {"version": "4", "receiver": "vramtrack", "groupKey": "{}", "truncatedAlerts": 0,
                                                   "alerts": list(alerts)}, **headers)  # fmt: skip

    def told(self):
        path = self.slurm / "told"
        return path.read_text().splitlines() if path.exists() else []

    def record(self):
        path = self.state / "actuate.acts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def status(self):
        return json.loads(self.ask("GET", "/api/v1/status")[1])

    def run(self, *args):
        return subprocess.run([BINARY, "actuate", *args, "--state", self.state], cwd=self.box.work, env=self.env, capture_output=True, text=True, timeout=30)


class FromOutside(unittest.TestCase):
    def test_a_leak_is_moved_once_and_the_node_returns(self):
        with Actuator("--enforce") as a:
            self.assertEqual(a.post(a.alert())[0], 200)
            until(lambda: any("StartTime=now" in line for line in a.told()), 20, "the requeue")
            a.agent.view["series"] = [s for s in a.agent.view["series"] if s["key"] != a.process_key]
            for s in a.agent.view["series"]:
                if s["key"].startswith("device_used"):
                    s["used_bytes"] = 1
            until(lambda: any("RESUME" in line for line in a.told()), 20, "the node's return")
            until(lambda: a.status()["cases"][0]["closed"], 20, "the end")
            for _ in range(3):
                self.assertEqual(a.post(a.alert())[1], '{"alerts": 1, "new": 0}')
            a.end()
            a.start()
            a.post(a.alert())
            asked = a.agent.asked
            a.post(a.alert(fingerprint="99", pid="1"))
            until(lambda: a.agent.asked > asked + 2, 10, "two more rounds")
            kinds = [re.sub(r" Reason=.*| \d+$", "", line) for line in a.told()]
            self.assertEqual(kinds, ["scancel --batch --signal=USR1", "scontrol update NodeName=gn1 State=DRAIN", "scontrol requeue",
                                     "scontrol update JobId=7 ExcNodeList=gn1 StartTime=now", "scontrol update NodeName=gn1 State=RESUME"])  # fmt: skip
            metrics = a.ask("GET", "/metrics")[1]
            acts = json.loads(a.ask("GET", "/api/v1/acts")[1])
            self.assertEqual(acts["schema"], "vramtrack.acts.v1")
            self.assertIn("requeue", [e.get("action") for e in acts["acts"]])
            self.assertIn("vramtrack_actuate_breaker_open 0\n", metrics)
            self.assertRegex(metrics, r"vramtrack_actuate_last_webhook_timestamp_seconds \d{10}\.\d{3}\n")

    def test_a_dry_run_prints_what_it_would_do(self):
        with Actuator() as a:
            a.post(a.alert())
            until(lambda: "would: requeue the Slurm job 7.batch of pid" in a.log(), 20, "the last step")
            self.assertIn("dry run: nothing is done", a.log())
            self.assertIn("would: send SIGUSR1 to the Slurm job 7.batch", a.log())
            self.assertIn("would: drain the node gn1 in Slurm", a.log())
            self.assertEqual(a.told(), [])
            self.assertIn("dry run", a.run("status").stdout)

    def test_what_is_no_webhook_is_refused_with_the_place(self):
        with Actuator() as a:
            for body, status, words in (("x", 400, "the body is not JSON"), ({"version": "4"}, 400, "alerts is missing"),
                                        ({"version": "4", "alerts": [{}]}, 400, "alerts[0].status is missing"),
                                        ({"version": "3", "alerts": []}, 400, "version: expected")):
                answer = a.ask("POST", "/api/v1/alerts", body)
                self.assertEqual(answer[0], status, answer)
                self.assertIn(words, answer[1])
            answer = a.ask("POST", "/api/v1/alerts", "", **{"Content-Length": "4194305"})
            self.assertEqual((answer[0], "at most 4096 KiB" in answer[1]), (413, True), answer)
            self.assertEqual(a.post(a.alert(), Origin="http://evil.example")[0], 403)
            self.assertEqual(a.post(a.alert(), Host="evil.example")[0], 421)
            self.assertEqual(a.ask("GET", "/api/v1/alerts")[0], 405)
            self.assertEqual(a.ask("GET", "/nothing")[0], 404)
            self.assertIn("vramtrack_actuate_bad_webhooks_total 4\n", a.ask("GET", "/metrics")[1])
            many = [a.alert(fingerprint=f"{i:x}", pid="1") for i in range(1, 1500)]
            self.assertEqual(a.post(*many), (200, '{"alerts": 1499, "new": 1499}'))

    def test_a_token_is_asked_for_and_the_agents_get_theirs(self):
        with Sandbox(BINARY) as box:
            for name in ("token", "agents"):
                (box.work / name).write_text(f"0123456789abcdef-{name}\n")
                (box.work / name).chmod(0o600)
            with Actuator("--set", f"actuate.token-file={box.work}/token", "--set", f"actuate.agent-token-file={box.work}/agents") as a:
                self.assertEqual(a.post(a.alert())[0], 401)
                self.assertEqual(a.ask("GET", "/metrics")[0], 401)
                self.assertEqual(a.ask("GET", "/healthz")[0], 200)
                self.assertEqual(a.post(a.alert(), Authorization="Bearer 0123456789abcdef-token")[0], 200)
                until(lambda: "Bearer 0123456789abcdef-agents" in a.agent.tokens, 10, "the agent being asked")
                self.assertEqual(a.run("status").returncode, 0)
        done = subprocess.run([BINARY, "actuate", "--listen", "0.0.0.0:0", "--state", "/nonexistent"], capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no token", done.stderr)

    def test_an_alert_that_disagrees_with_its_agent_is_refused_and_recorded(self):
        with Actuator("--enforce") as a:
            a.post(a.alert(fingerprint="1", pid="99999"), a.alert(fingerprint="2", Hostname="gn[1-4]"),
                   a.alert(fingerprint="3", instance="127.0.0.1:1"), a.alert(fingerprint="4", slurm_job_id="8"))
            until(lambda: {c["fingerprint"]: c["refusal"] for c in a.status()["cases"]} ==
                  {"1": "mismatch", "2": "bad_label", "3": "no_agent", "4": "mismatch"}, 20, "four refusals")
            self.assertEqual(a.told(), [])
            texts = [e["text"] for e in a.record()]
            self.assertTrue(any("the alert is about pid 99999" in t for t in texts), texts)
            self.assertTrue(any("is not the name of one node" in t for t in texts), texts)
            self.assertIn('vramtrack_actuate_refused_total{reason="mismatch"} 2', a.ask("GET", "/metrics")[1])

    @unittest.skipUnless(shutil.which(VictoriaMetrics.program), "victoria-metrics is not installed (scripts/setup.sh test)")
    def test_without_an_agent_the_series_of_a_server_are_the_evidence(self):
        policy = '[[policy]]\nname = "nodes"\nwhen.labels = { alertname = "GpuMemoryLeak" }\nsteps = [{ do = "drain" }]\n'
        server = VictoriaMetrics()
        self.addCleanup(server.close)
        server.write(with_capacity([(labels("gn1", 0), leaking(1)), (labels("gn2", 0), healthy(2))]))
        until(lambda: "gn2" in subprocess.run([BINARY, "fleet", "scan", "--url", server.url, "--since", "4h", "--format", "json"],
                                              capture_output=True, text=True, timeout=60).stdout, 20, "the server's series")
        with Actuator("--enforce", "--url", server.url, policy=policy) as a:
            def alert(host, fingerprint):
                one = a.alert(fingerprint=fingerprint, instance="127.0.0.1:1", Hostname=host, UUID=f"GPU-{host}-0")
                for name in ("pid", "slurm_job_id"):
                    del one["labels"][name]
                return one
            a.post(alert("gn1", "1"), alert("gn2", "2"), alert("gn3", "3"))
            until(lambda: any("NodeName=gn1 State=DRAIN" in line for line in a.told()), 30, "the drain of the node that leaks")
            until(lambda: {c["fingerprint"]: c.get("refusal") for c in a.status()["cases"] if c["fingerprint"] != "1"} ==
                  {"2": "no_evidence", "3": "no_agent"}, 30, "the refusals")
            self.assertEqual([line for line in a.told() if "gn1" not in line], [])
            self.assertTrue(any('has no memory series for UUID="GPU-gn3-0"' in e["text"] for e in a.record()), [e["text"] for e in a.record()])

    def test_the_breaker_keeps_a_fleet_from_harm_until_a_person_closes_it(self):
        policy = POLICY.replace('steps = [', 'steps = [{ do = "notify" }, ')
        with Actuator("--enforce", "--set", "actuate.breaker-nodes=0", policy=policy) as a:
            a.post(a.alert())
            until(lambda: a.status()["breaker"], 20, "the breaker")
            self.assertEqual(a.run("status").returncode, 1)
            self.assertIn("OPEN since", a.run("status").stdout)
            self.assertEqual(a.post(a.alert(fingerprint="2"))[0], 200)
            self.assertEqual(a.told(), [])
            self.assertIn("vramtrack_actuate_breaker_open 1\n", a.ask("GET", "/metrics")[1])
            a.end(signal.SIGKILL)
            a.args = ("--enforce", "--set", "actuate.breaker-nodes=1")
            a.start()
            asked = a.agent.asked
            until(lambda: a.agent.asked > asked + 2, 10, "two rounds")
            self.assertEqual(a.told(), [], "a restart does not close it")
            self.assertEqual(a.run("reset").returncode, 2)
            self.assertEqual(a.ask("POST", "/api/v1/breaker/reset", {"reason": "x"})[0], 400)
            done = a.run("reset", "--by", "alice", "--reason", "one node it was")
            self.assertEqual(done.returncode, 0, done.stderr)
            until(a.told, 20, "the step that waited")
            self.assertTrue(any("closed by alice: one node it was" in e["text"] for e in a.record()))
            self.assertEqual(a.run("reset", "--by", "alice").returncode, 2)

    def test_killed_at_random_it_neither_repeats_nor_forgets(self):
        with Actuator("--enforce") as a:
            a.post(a.alert())
            for delay in (0, 1, 2, 3):
                until(lambda n=delay: len(a.told()) >= n, 20, "a step")
                a.end(signal.SIGKILL)
                a.start()
            until(lambda: any("StartTime=now" in line for line in a.told()), 30, "the requeue")
            told = a.told()
            self.assertEqual(sum("scontrol requeue" in line for line in told), 1, told)
            self.assertLessEqual(sum("--signal=USR1" in line for line in told), 1, told)

    def test_a_state_that_cannot_be_written_makes_alertmanager_repeat(self):
        with Actuator("--enforce") as a:
            (a.state / "actuate.json.new").mkdir()
            self.assertEqual(a.post(a.alert())[0], 500)
            self.assertEqual(a.told(), [])
            (a.state / "actuate.json.new").rmdir()
            self.assertEqual(a.post(a.alert())[0], 200)
            until(a.told, 20, "the first step")


if __name__ == "__main__":
    unittest.main(verbosity=1)
