"""The real `vramtrack actuate` from outside, with doubles of the agents and of Slurm's programs: what it takes, refuses and does."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import unittest
import urllib.parse

from actuator import AgentDouble, RunningActuator
from running import Sandbox, until

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


class Actuator(RunningActuator):
    """With a double of Slurm's programs; the process is alice's, of job 7."""

    def __init__(self, *args, policy=POLICY):
        super().__init__(BINARY, policy, *args)

    def prepare(self):
        self.series()["process"].update(user="alice", slurm_job="7.batch")
        self.slurm = self.box.work / "slurm"
        self.slurm.mkdir()
        (self.slurm / "job").write_text("RUNNING\n")
        programs = self.box.work / "bin"
        programs.mkdir()
        for name in ("squeue", "sinfo", "scontrol", "scancel"):
            (programs / name).write_text(SLURM)
            (programs / name).chmod(0o755)
        self.env["PATH"] = f"{programs}:{os.environ['PATH']}"

    def alert(self, *args, **labels):
        return super().alert(*args, **{"slurm_job_id": "7", **labels})

    def told(self):
        path = self.slurm / "told"
        return path.read_text().splitlines() if path.exists() else []


class FromOutside(unittest.TestCase):
    def test_a_leak_is_moved_once_and_the_node_returns(self):
        with Actuator("--enforce") as a:
            self.assertEqual(a.post(a.alert())[0], 200)
            until(lambda: any("StartTime=now" in line for line in a.told()), 20, "the requeue")
            a.end_of_the_process(is_memory_back=True)
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
            self.assertIn("would: drain the node gn1", a.log())
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

    def test_the_alertmanager_of_contrib_posts_to_where_it_listens(self):
        url = re.search(r"url: (http\S*)", (SOURCE / "contrib/prometheus/alertmanager.yml").read_text())[1]
        self.assertIn(url.removesuffix("/api/v1/alerts").removeprefix("http://"), subprocess.run([BINARY, "actuate", "--help"], capture_output=True, text=True).stdout)
        with Actuator() as a:
            status, text = a.ask("POST", urllib.parse.urlsplit(url).path, {"version": "4", "alerts": [a.alert()]})
            self.assertEqual((status, text), (200, '{"alerts": 1, "new": 1}'))

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

    def test_a_server_that_an_alert_names_is_not_asked_unless_it_is_listed(self):
        with Sandbox(BINARY) as box:
            (box.work / "agents").write_text("0123456789abcdef-agents\n")
            (box.work / "agents").chmod(0o600)
            with Actuator("--enforce", "--set", f"actuate.agent-token-file={box.work}/agents") as a:
                evil = AgentDouble.serve(a.host, a.agent.view)  # it would confirm everything
                self.addCleanup(evil.server_close)
                self.addCleanup(evil.shutdown)
                a.post(a.alert(instance=f"127.0.0.1:{evil.server_port}"), a.alert(fingerprint="2", instance=f"localhost:{a.agent.server_port}"))
                until(lambda: [c["refusal"] for c in a.status()["cases"]] == ["not_listed"] * 2, 20, "two refusals")
                self.assertEqual((evil.asked, evil.tokens, a.agent.asked, a.told()), (0, [], 0, []))
                # Counted once it is recorded, which is after it is decided.
                until(lambda: 'vramtrack_actuate_refused_total{reason="not_listed"} 2' in a.ask("GET", "/metrics")[1], 20, "the count")
                until(lambda: any("which is not an agent listed in actuate.agent-hosts" in e["text"] for e in a.record()), 20, "the record")
            self.assertIn("actuate.agent-hosts lists no agent", subprocess.run(
                [BINARY, "actuate", "--state", box.work / "state"], cwd=box.work, env=box.environment(),
                capture_output=True, text=True, timeout=20).stderr)  # fmt: skip

    def test_what_an_agent_said_long_ago_or_makes_up_is_no_evidence(self):
        with Actuator("--enforce") as a:
            a.agent.age_s = 3600
            a.post(a.alert())
            for age_s, simulated, told in ((3600, None, "last sample is 1h 00m old"), (-3600, None, "clock is 1h 00m ahead"), (0, "leak", "simulates the scenario 'leak'")):
                # A view of now that is not simulated would be evidence: also one that was being written when this changed.
                a.agent.simulated = simulated
                asked = a.agent.asked
                until(lambda: a.agent.asked > asked + 1, 20, "a view that says so")
                a.agent.age_s = age_s
                a.post(a.alert(fingerprint=f"{age_s & 0xffff:x}"))
                until(lambda: any("refused (not_current)" in e["text"] and told in e["text"] for e in a.record()), 20, told)
            self.assertEqual(a.told(), [])
            a.agent.simulated = None
            until(a.told, 20, "the first step, once it is of now")

    def test_an_alert_that_disagrees_with_its_agent_is_refused_and_recorded(self):
        with Actuator("--enforce") as a:
            a.post(a.alert(fingerprint="1", pid="99999"), a.alert(fingerprint="2", Hostname="gn[1-4]"),
                   a.alert(fingerprint="3", instance="127.0.0.1:1"), a.alert(fingerprint="4", slurm_job_id="8"))
            until(lambda: {c["fingerprint"]: c["refusal"] for c in a.status()["cases"]} ==
                  {"1": "mismatch", "2": "bad_label", "3": "no_agent", "4": "mismatch"}, 20, "four refusals")
            self.assertEqual(a.told(), [])
            for told in ("the alert is about pid 99999", "is not the name of one node"):  # recorded after the refusal
                until(lambda: any(told in e["text"] for e in a.record()), 20, told)
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

    def test_a_record_that_cannot_be_written_makes_alertmanager_repeat(self):
        with Actuator("--enforce") as a:
            unlimited = resource.prlimit(a.process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(a.process.pid, resource.RLIMIT_FSIZE, (0, unlimited[1]))
            self.assertEqual(a.post(a.alert())[0], 500)
            self.assertEqual(a.told(), [])
            resource.prlimit(a.process.pid, resource.RLIMIT_FSIZE, unlimited)
            self.assertEqual(a.post(a.alert())[0], 200)
            until(a.told, 20, "the first step")


if __name__ == "__main__":
    unittest.main(verbosity=1)
