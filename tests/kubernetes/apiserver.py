#!/usr/bin/env python3
"""The actions for Kubernetes on a real API server: apiserver.py ACT_ONCE PROGRAMS [--update] [NAME...]

PROGRAMS is the folder of etcd, kube-apiserver, kube-controller-manager and kubectl (`make test-kubernetes`). Each scenario runs twice: straight
to the server, and through a recorder. What was recorded must agree with tests/kubernetes/recorded, which --update writes and which the
double of the tests without a server answers from. NAMEs choose scenarios.
"""
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from cluster import Cluster, until  # noqa: E402
from recorder import Recorder, difference, forward_to, pruned  # noqa: E402
from scenarios import MANIFEST, ROLE, SCENARIOS, STATUS, Case, chart_rbac, granted  # noqa: E402

RECORDED = Path(__file__).parent / "recorded"
ACCOUNT = "system:serviceaccount:vramtrack:vramtrack"
TRAIN = "/api/v1/namespaces/train/pods"
REPLICA_SETS = "/apis/apps/v1/namespaces/train/replicasets"
LABELS = {"app": "train"}
SPEC = {"containers": [{"name": "c", "image": "train"}], "automountServiceAccountToken": False}


class World:
    """The world of scenarios.py in a cluster. What else than the agent acts here acts as its administrator."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder, self.recorder, self.uid = cluster, folder, None, None
        shutil.copy(cluster.folder / "ca.crt", folder)
        cluster.apply(MANIFEST.read_text())
        rules = cluster.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/vramtrack")["rules"]
        cluster.apply(chart_rbac())
        self.rules = cluster.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/vramtrack")["rules"]
        assert self.rules == rules, "the chart and vramtrack.yaml grant different rights"
        assert granted(self.rules) == ROLE, granted(self.rules)

    def reset(self):
        ask = self.cluster.ask
        ask("PATCH", "/api/v1/namespaces/train", {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        ask("DELETE", REPLICA_SETS)
        ask("DELETE", self.cluster.budgets + "/namespaces/train/poddisruptionbudgets")

        def empty():
            ask("DELETE", TRAIN + "?gracePeriodSeconds=0")
            return not self.cluster.get("/api/v1/pods")["items"]
        until("an empty namespace", empty)
        if "deletionTimestamp" in ask("GET", "/api/v1/namespaces/train")[1]["metadata"]:
            until("the namespace's end", lambda: ask("GET", "/api/v1/namespaces/train")[0] == 404)
        if ask("GET", "/api/v1/namespaces/train")[0] == 404:
            self.cluster.must("POST", "/api/v1/namespaces", {"metadata": {"name": "train"}})
        until("the namespace's account", lambda: ask("GET", "/api/v1/namespaces/train/serviceaccounts/default")[0] == 200)
        ask("DELETE", "/api/v1/nodes/n1")
        self.cluster.must("POST", "/api/v1/nodes", {"metadata": {"name": "n1", "annotations": {"other": "kept"}, "labels": {"nvidia.com/gpu.present": "true"}}})
        self.cluster.patch("/api/v1/nodes/n1/status", {"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
             "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
        # As no kubelet says that it is ready, and no controller takes this from it.
        if self.node()["spec"].get("taints"):
            self.cluster.patch("/api/v1/nodes/n1", {"spec": {"taints": None}})
        self.make("other", "ReplicaSet")
        self.uid = self.make("train-7", "ReplicaSet")
        self.cluster.must("POST", REPLICA_SETS, {"metadata": {"name": "train"}, "spec": {
            "replicas": 2, "selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}, "spec": SPEC}}})
        until("adopted pods", lambda: self.cluster.get(REPLICA_SETS + "/train")["status"].get("readyReplicas") == 2)
        until("owners", lambda: self.is_owned("other") and self.is_owned("train-7"))
        self.rights(ROLE)
        (self.folder / "token").write_text(self.cluster.token("vramtrack", "vramtrack") + "\n")

    def make(self, name, owner):
        """A pod that runs, as far as the API server knows. The ReplicaSet takes it as its own by its labels."""
        metadata = {"name": name, "labels": LABELS if owner == "ReplicaSet" else {}}
        if owner == "DaemonSet":
            metadata["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": owner, "name": "train", "controller": True, "uid": self.node()["metadata"]["uid"]}]
        made = self.cluster.must("POST", TRAIN, {"metadata": metadata, "spec": {"nodeName": "n1", **SPEC}})
        self.cluster.patch(f"{TRAIN}/{name}/status", {"status": {**STATUS, "phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
        return made["metadata"]["uid"]

    def is_owned(self, name):
        return "ownerReferences" in self.cluster.get(f"{TRAIN}/{name}")["metadata"]

    def remove_pod(self):
        self.cluster.must("DELETE", TRAIN + "/train-7?gracePeriodSeconds=0")

    def pod(self, owner):
        self.remove_pod()
        self.uid = self.make("train-7", owner)
        if owner:
            until("the owner", lambda: self.is_owned("train-7"))

    def names(self):
        """Those that are not asked to end. What the ReplicaSet starts instead has another name."""
        pods = self.cluster.get(TRAIN)["items"]
        return sorted({"other", "train-7"} & {p["metadata"]["name"] for p in pods if "deletionTimestamp" not in p["metadata"]})

    def node(self):
        return self.cluster.get("/api/v1/nodes/n1")

    def touch_node(self):
        touched = int(self.node()["metadata"]["annotations"].get("touched", 0)) + 1
        self.cluster.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {"touched": str(touched)}}})

    def cordon_by_a_person(self):
        self.cluster.patch("/api/v1/nodes/n1", {"spec": {"unschedulable": True}})

    def budget(self, allows, name="train"):
        path = self.cluster.budgets + "/namespaces/train/poddisruptionbudgets"
        spec = {"minAvailable": 1 if allows else 2, "selector": {"matchLabels": LABELS}}
        if self.cluster.ask("PATCH", f"{path}/{name}", {"spec": spec}, "application/merge-patch+json")[0] == 404:
            self.cluster.must("POST", path, {"metadata": {"name": name}, "spec": spec})

        def counted():
            known = self.cluster.get(f"{path}/{name}")
            status = known.get("status", {})
            return status.get("observedGeneration") == known["metadata"]["generation"] and status["disruptionsAllowed"] == int(allows)
        until("a budget that is counted", counted)

    def end_namespace(self):
        """Something waits for its end, as often; so its pods are still there."""
        self.cluster.patch("/api/v1/namespaces/train", {"metadata": {"finalizers": ["test.example/wait"]}})
        self.cluster.must("DELETE", "/api/v1/namespaces/train")

    def rights(self, rights):
        rules = [{**rule, "verbs": [v for v in rule["verbs"] if f"{rule['resources'][0]} {v}" in rights]} for rule in self.rules]
        self.cluster.patch("/apis/rbac.authorization.k8s.io/v1/clusterroles/vramtrack", {"rules": [rule for rule in rules if rule["verbs"]]})

        def is_known(right):
            resource, verb = right.split()
            resource, _, sub = resource.partition("/")
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": ACCOUNT, "resourceAttributes": {
                "verb": verb, "resource": resource, "subresource": sub}}}
            answer = self.cluster.must("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
            return answer["status"]["allowed"] == (right in rights)
        until("the changed role", lambda: all(map(is_known, ROLE)))

    def stop(self):
        """Killed: asked to end, it would wait for those that watch it."""
        self.cluster.stop("kube-apiserver", kills=True)

    def start(self):
        self.cluster.start("kube-apiserver")


class Straight:
    """In place of a recorder: hooks need one."""
    port, exchanges = None, []

    def before(self, *_, **__):
        raise NotImplementedError

    after = before


def run(program, world, recorder, port):
    """The chosen scenarios: name -> exchanges."""
    found = {}
    for scenario in SCENARIOS:
        if CHOSEN and scenario.__name__ not in CHOSEN:
            continue
        started = time.monotonic()
        world.reset()
        world.recorder = recorder
        recorder.exchanges, recorder.hooks = [], []
        try:
            scenario(Case(program, world, port))
        except NotImplementedError:
            continue
        except AssertionError as failure:
            FAILED.append(scenario.__name__)
            print(f"FAIL {scenario.__name__}: {failure!r}", flush=True)
            continue
        if recorder.exchanges:
            found[scenario.__name__] = pruned(recorder.exchanges, {f"pid {os.getpid()} ": "pid 4242 "})
        print(f"ok   {'recorded' if isinstance(recorder, Recorder) else 'straight'}  {scenario.__name__}  {time.monotonic() - started:.1f} s", flush=True)
    return found


def compare(path, found, update):
    """The scenarios that are answered otherwise than recorded: name -> how. A recording has one line for each exchange."""
    if not path.exists() and not update:
        print(f"no answers of this version are recorded; --update would write {path}")
        return {}
    recorded = json.loads(path.read_text()) if path.exists() else {}
    if update:
        if not CHOSEN:
            recorded = {}
        lines = [f"{json.dumps(name)}: [\n  " + ",\n  ".join(map(json.dumps, exchanges)) + "\n]" for name, exchanges in {**recorded, **found}.items()]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return {}
    said = {name: difference(exchanges, recorded.get(name, [])) for name, exchanges in found.items()}
    return {name: how for name, how in said.items() if how}


CHOSEN, FAILED = [], []


def main():
    words = [w for w in sys.argv[1:] if w != "--update"]
    program, programs = words[0], Path(words[1]).resolve()
    CHOSEN.extend(words[2:])
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two, Cluster(Path(one), programs) as cluster:
        print(f"kube-apiserver {cluster.version}, budgets are {cluster.budgets}")
        world = World(cluster, Path(two))
        run(program, world, Straight(), cluster.port)
        with Recorder(cluster.folder, forward_to(cluster.port, cluster.context)) as recorder:
            found = run(program, world, recorder, recorder.port)
        path = RECORDED / (".".join(cluster.version.split(".")[:2]) + ".json")
        wrong = compare(path, found, "--update" in sys.argv and not FAILED)
    for name, how in wrong.items():
        print(f"{path}: {name}: {how}\nIf the server is right, run this with --update and read the difference.")
    print(f"{len(found)} scenarios went through the recorder to {cluster.version}")
    return bool(wrong or FAILED)


if __name__ == "__main__":
    sys.exit(main())
