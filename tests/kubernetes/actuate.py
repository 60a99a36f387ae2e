#!/usr/bin/env python3
"""The real `vramtrack actuate` on the double of the API server: a pod that leaks is asked to save and evicted, once. actuate.py BINARY

Alertmanager's webhook, the evidence of the agent (a double) and the acts, from outside. What the actuator asks must be of the form of what
the agent's own acts have asked of real servers (recorded/).
"""
import http.client
import json
import os
import shutil
import sys
import threading
import unittest
from pathlib import Path

BINARY = sys.argv.pop(1)
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from api_double import Double, Recording  # noqa: E402
from cluster import certificates  # noqa: E402
from recorder import Recorder, outline, pruned  # noqa: E402
from scenarios import CONTAINER  # noqa: E402

sys.path.insert(0, str(HERE.parent / "agent"))
from actuator import RunningActuator  # noqa: E402
from running import patience, until  # noqa: E402

RECORDINGS = [Recording(path) for path in sorted((HERE / "recorded").glob("*.json"))]

#: It notes what it is told, and kills who started it when it is told to.
KUBECTL = """#!/bin/sh
folder=$(dirname "$0")/..
echo "$*" >>"$folder/kubectl.told"
[ ! -e "$folder/kill" ] || { rm "$folder/kill"; kill -KILL $PPID; }
"""

POLICY = """
[[policy]]
name = "pods that leak"
when.user = ["alice"]
when.container = [".*"]
when.labels = { alertname = "GpuMemoryLeak" }
steps = [
  { do = "checkpoint", program = ["kubectl", "exec", "--namespace", "{namespace}", "{pod-name}", "--", "kill", "-USR1", "1"] },
  { do = "cordon" },
  { do = "evict", after = "%s" },
]
"""

CORDON = ["PATCH /api/v1/nodes/n1", "PATCH /api/v1/nodes/n1/status"]
EVICTION = "POST /api/v1/namespaces/train/pods/train-7/eviction"


class Actuator(RunningActuator):
    """With a double of the API server and of kubectl; the process is alice's, in the pod train/train-7 of the node n1."""
    host = "n1"

    def __init__(self, *args, after="0s", recording=RECORDINGS[-1]):
        super().__init__(BINARY, POLICY % after, *args)
        self.recording = recording

    def prepare(self):
        account = self.box.work / "account"
        account.mkdir()
        certificates(account)
        self.world = Double(self.recording, account)
        self.world.reset()
        self.recorder = self.world.recorder = Recorder(account, self.world.handle).__enter__()
        self.recorder.server.handle_error = lambda *_: None  # who asked was killed
        self.args += ("--kubernetes", f"https://127.0.0.1:{self.recorder.port}", "--service-account", str(account))
        self.uid = self.world.uid
        self.series()["process"].update(user="alice", pod=self.uid, container=CONTAINER)
        (self.box.work / "bin").mkdir()
        self.box.write("bin/kubectl", KUBECTL)
        (self.box.work / "bin/kubectl").chmod(0o755)
        self.env["PATH"] = f"{self.box.work / 'bin'}:{os.environ['PATH']}"

    def __exit__(self, *failure):
        super().__exit__(*failure)
        self.recorder.__exit__()
        if not failure[0]:
            known = list(map(outline, self.recording.exchanges))
            for exchange in pruned(self.recorder.exchanges, {f"pid {self.pid} ": "pid 4242 "}):
                assert outline(exchange) in known, f"no real server was asked this: {outline(exchange)}"

    def alert(self, *args, **labels):
        return super().alert(*args, **{"namespace": "train", "pod": "train-7", "pod_uid": self.uid, **labels})

    def told(self):
        """What has changed something in the cluster."""
        return [f"{e['request']['method']} {e['request']['path']}" for e in self.recorder.exchanges
                if e["request"]["method"] != "GET" and e["answer"]["status"] < 300]

    def saves(self):
        path = self.box.work / "kubectl.told"
        return path.read_text().splitlines() if path.exists() else []

    def is_cordoned(self):
        return bool(self.world.node()["spec"].get("unschedulable"))

    def leak_condition(self):
        return next((c["status"] for c in self.world.node()["status"]["conditions"] if c["type"] == "GpuMemoryLeak"), None)

    def steps(self):
        return [(e["action"], e["event"]) for e in self.record() if e.get("action")]

    def is_closed(self):
        return next(c["closed"] for c in self.status()["cases"] if c["fingerprint"] == self.alert()["fingerprint"])

    def two_rounds(self):
        asked = self.agent.asked
        self.post(self.alert(fingerprint="99", pid="1"))  # of another process: it is looked at, and nothing is done
        until(lambda: self.agent.asked > asked + 4, 10, "two more rounds")


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class OnKubernetes(unittest.TestCase):
    def test_a_pod_that_leaks_is_moved_once_and_the_node_returns(self):
        for recording in RECORDINGS:
            with self.subTest(recording.path.stem), Actuator("--enforce", recording=recording) as a:
                self.assertEqual(a.post(a.alert()), (200, '{"alerts": 1, "new": 1}'))
                until(lambda: a.world.names() == ["other"], 20, "the eviction")
                self.assertEqual((a.is_cordoned(), a.leak_condition()), (True, "True"))
                # Its memory is not free before its containers have ended.
                a.two_rounds()
                self.assertTrue(a.is_cordoned())
                a.end_of_the_process(is_memory_back=True)
                until(a.is_closed, 20, "the end")
                self.assertEqual((a.is_cordoned(), a.leak_condition()), (False, "False"))
                for _ in range(3):
                    self.assertEqual(a.post(a.alert())[1], '{"alerts": 1, "new": 0}')
                a.end()
                a.start()
                self.assertEqual(a.post(a.alert())[1], '{"alerts": 1, "new": 0}')
                a.two_rounds()
                self.assertEqual(a.saves(), ["exec --namespace train train-7 -- kill -USR1 1"])
                self.assertEqual(a.told(), [*CORDON, EVICTION, *reversed(CORDON)])
                self.assertEqual(a.steps(), [(action, event) for action in ("checkpoint", "cordon", "evict") for event in ("intent", "done")]
                                 + [("cordon", "undone")])  # fmt: skip

    def test_a_dry_run_asks_the_api_server_nothing(self):
        with Actuator() as a:
            a.post(a.alert())
            until(lambda: "would: evict the pod" in a.log(), 20, "the last step")
            self.assertIn("would: run 'kubectl exec --namespace {namespace} {pod-name} -- kill -USR1 1' to make pid", a.log())
            self.assertIn("would: cordon the Kubernetes node n1 because of pid", a.log())
            a.two_rounds()
            self.assertEqual((a.recorder.exchanges, a.saves()), ([], []))

    def test_killed_before_each_result_it_does_nothing_twice(self):
        """The act is carried out, and the actuator is gone before it is reported."""
        with Actuator("--enforce") as a:
            def kill():
                a.process.kill()
                a.process.wait()
            (a.box.work / "kill").touch()
            for method, path in (("PATCH", "/n1"), ("PATCH", "/n1/status"), ("POST", "/eviction")):
                a.recorder.before(method, path, kill)
            a.post(a.alert())
            for action in ("checkpoint", "cordon", "cordon", "evict"):
                a.process.wait(patience(20))
                self.assertEqual(a.steps()[-1], (action, "intent"))
                a.start()
                try:
                    self.assertEqual(a.post(a.alert())[1], '{"alerts": 1, "new": 0}')
                except (ConnectionError, http.client.HTTPException):
                    self.assertNotEqual(action, "evict", "only its next step may have ended it before it could answer")
            until(lambda: a.steps()[-1] == ("evict", "done"), 20, "the eviction")
            # The controller has started another pod of the name, which is not that of the alert.
            a.world.pod("ReplicaSet")
            a.end_of_the_process(is_memory_back=True)
            until(a.is_closed, 20, "the end")
            a.two_rounds()
            self.assertEqual(a.world.names(), ["other", "train-7"])
            self.assertEqual(a.saves(), ["exec --namespace train train-7 -- kill -USR1 1"])
            self.assertFalse(a.is_cordoned())
            bodies = [e["request"]["body"] for e in a.recorder.exchanges if e["request"]["method"] != "GET"]
            self.assertEqual({b["deleteOptions"]["preconditions"]["uid"] for b in bodies if "deleteOptions" in b}, {a.uid})
            acts = {b["metadata"]["annotations"]["vramtrack.io/cordoned-by"] for b in bodies if "annotations" in b["metadata"]} - {None}
            self.assertEqual(len(acts), 1, "one cordon, however often it was begun")

    def test_a_pod_that_is_gone_after_a_restart_is_not_evicted_again(self):
        with Actuator("--enforce") as a:
            dead = threading.Event()

            def kill():
                a.process.kill()
                a.process.wait()
                dead.set()
            a.recorder.before("POST", "/eviction", kill)
            a.post(a.alert())
            self.assertTrue(dead.wait(patience(20)))
            until(lambda: a.world.names() == ["other"], 20, "the eviction")
            a.end_of_the_process(is_memory_back=True)
            a.start()
            until(a.is_closed, 20, "the end")
            self.assertEqual(a.told(), [*CORDON, EVICTION, *reversed(CORDON)])
            self.assertIn("the process has ended: the step is assumed to be done", [e["text"] for e in a.record()])

    def test_a_node_whose_memory_does_not_return_stays_cordoned(self):
        library = os.environ.get("VRAMTRACK_MOVED_CLOCK")
        self.assertTrue(library, "VRAMTRACK_MOVED_CLOCK names no library")
        with Actuator("--enforce") as a:
            clock = a.box.work / "clock"
            a.env |= {"LD_PRELOAD": library, "CLOCK_AHEAD_FILE": str(clock)}
            a.end()
            a.start()
            a.post(a.alert())
            until(lambda: a.world.names() == ["other"], 20, "the eviction")
            a.end_of_the_process(is_memory_back=False)
            until(lambda: any(c["phase"] == "returning" for c in json.loads(a.ask("GET", "/api/v1/acts")[1])["climbs"]), 20, "watching the memory")
            clock.write_text("61\n")  # the minute that a driver gets
            a.agent.age_s = -61  # the agent's clock goes with the actuator's
            until(a.is_closed, 20, "the end")
            self.assertEqual((a.is_cordoned(), a.leak_condition()), (True, "True"))
            self.assertEqual(a.told(), [*CORDON, EVICTION])
            said = [e["text"] for e in a.record() if e.get("for_people") and e["event"] == "say"]
            self.assertEqual(len(said), 1, said)
            self.assertRegex(said[0], r"of memory were not freed within .* of the end of pid .* on n1; not undone until somebody checks: 'cordon'")

    def test_evidence_that_is_gone_before_the_eviction_ends_it(self):
        with Actuator("--enforce", after="1h") as a:
            a.post(a.alert())
            until(lambda: a.leak_condition() == "True", 20, "the cordon")
            a.series()["alerts"] = []
            until(a.is_closed, 20, "the end")
            self.assertEqual(a.world.names(), ["other", "train-7"])
            self.assertEqual(a.told(), [*CORDON, *reversed(CORDON)])

    def test_an_alert_of_another_pod_is_refused(self):
        with Actuator("--enforce") as a:
            a.post(a.alert(pod_uid="11111111-2222-4333-8444-555555555555"))
            until(lambda: a.status()["cases"][0]["refusal"] == "mismatch", 20, "the refusal")
            self.assertEqual((a.recorder.exchanges, a.saves()), ([], []))

    def test_the_breaker_holds_over_a_kill_until_a_person_closes_it(self):
        with Actuator("--enforce", "--set", "actuate.breaker-nodes=0") as a:
            a.post(a.alert())
            until(lambda: a.status()["breaker"], 20, "the breaker")
            a.end(9)
            a.args = (*a.args, "--set", "actuate.breaker-nodes=1")
            a.start()
            a.two_rounds()
            self.assertEqual((a.recorder.exchanges, a.saves()), ([], []))
            done = a.run("reset", "--by", "alice", "--reason", "one node it was")
            self.assertEqual(done.returncode, 0, done.stderr)
            until(lambda: a.world.names() == ["other"], 20, "the steps that waited")


if __name__ == "__main__":
    unittest.main(verbosity=1)
