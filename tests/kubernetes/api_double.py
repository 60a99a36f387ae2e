"""A double of the Kubernetes API server: roles, budgets and resource versions are its own, its answers are those of a real server.

They come from a recording (recorded/VERSION.json, which apiserver.py writes): a refusal word for word, a node and pods with every field.
What was never recorded is not made up: a request that would need it fails the test.
"""
import copy
import json
import re
import uuid
from urllib.parse import parse_qs, urlsplit

from scenarios import ROLE, STATUS

GO_BUFFERS = 2048  # bytes: what is longer, Go's server sends in chunks


class Recording:
    def __init__(self, path):
        self.path, self.scenarios = path, json.loads(path.read_text())
        self.exchanges = [e for exchanges in self.scenarios.values() for e in exchanges]

    def answer(self, method, path, status, words=""):
        """The first answer of this status to such a request that holds these words."""
        for e in self.exchanges:
            request, answer = e["request"], e["answer"]
            if (request["method"], urlsplit(request["path"]).path, answer["status"]) == (method, path, status) and words in json.dumps(answer["body"]):
                return copy.deepcopy(answer)
        raise LookupError(f"{self.path.name} has no answer {status} {words!r} to {method} {path}; record one (make test-kubernetes)")


def merge(into, patch):
    """A strategic merge patch, as far as it is needed: null deletes, conditions merge by type and a new one comes first."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif key == "conditions":
            for condition in value:
                known = next((c for c in into[key] if c["type"] == condition["type"]), None)
                known.update(condition) if known else into[key].insert(0, copy.deepcopy(condition))
        elif isinstance(value, dict):
            merge(into.setdefault(key, {}), value)
            if not into[key] and key == "annotations":
                del into[key]
        else:
            into[key] = value


class Double:
    """The world of scenarios.py, and what it answers (handle)."""

    def __init__(self, recording, folder):
        self.recording, self.folder, self.recorder = recording, folder, None

    def reset(self):
        self.role, self.is_up, self.is_ended = set(ROLE), True, False
        self.budgets = {}  # name -> whether it allows a disruption
        (self.folder / "token").write_text("good\n")
        self.known_node = self.recording.answer("GET", "/api/v1/nodes/n1", 200)["body"]
        self.list = self.recording.answer("GET", "/api/v1/pods", 200, "train-7")["body"]
        self.pods = self.list.pop("items")
        for known in self.pods:
            known["metadata"]["uid"] = str(uuid.uuid4())
            known["status"].update(copy.deepcopy(STATUS))

    # What others do than the agent.

    @property
    def uid(self):
        return self.train()["metadata"]["uid"]

    def train(self):
        return next(p for p in self.pods if p["metadata"]["name"] == "train-7")

    def remove_pod(self):
        self.pods.remove(self.train())

    def recorded_pod(self, owner, uid, ends=False):
        """train-7 as it was recorded with this owner, before or after its eviction."""
        for e in self.recording.exchanges:
            for known in e["answer"]["body"].get("items", []):
                owners = known["metadata"].get("ownerReferences", [{"kind": None}])
                if (known["metadata"]["name"], owners[0]["kind"], "deletionTimestamp" in known["metadata"]) == ("train-7", owner, ends):
                    known = copy.deepcopy(known)
                    known["metadata"]["uid"] = uid
                    known["status"].update(copy.deepcopy(STATUS))
                    return known
        raise LookupError(f"no pod of a {owner} was recorded")

    def pod(self, owner):
        self.remove_pod()
        self.pods.append(self.recorded_pod(owner, str(uuid.uuid4())))

    def names(self):
        return [p["metadata"]["name"] for p in self.pods if "deletionTimestamp" not in p["metadata"]]

    def node(self):
        return copy.deepcopy(self.known_node)

    def changed(self):
        self.known_node["metadata"]["resourceVersion"] += "1"

    def touch_node(self):
        annotations = self.known_node["metadata"]["annotations"]
        annotations["touched"] = str(int(annotations.get("touched", 0)) + 1)
        self.changed()

    def cordon_by_a_person(self):
        self.known_node["spec"]["unschedulable"] = True
        self.changed()

    def budget(self, allows, name="train"):
        self.budgets[name] = allows

    def end_namespace(self):
        self.is_ended = True

    def rights(self, rights):
        self.role = set(rights)

    def stop(self):
        self.is_up = False

    def start(self):
        self.is_up = True

    # What it answers.

    def handle(self, method, path, headers, body):
        if not self.is_up:
            raise ConnectionRefusedError
        parts = urlsplit(path)
        answer = self.route(method, parts.path, parse_qs(parts.query), headers, json.loads(body or "{}"))
        text = json.dumps(answer["body"]).encode()
        framing = {"Transfer-Encoding": "chunked"} if len(text) > GO_BUFFERS else {}
        return answer["status"], {**{n: v for n, v in answer["headers"].items() if n != "Transfer-Encoding"}, **framing}, text

    def route(self, method, path, query, headers, body):
        def recorded(status, words=""):
            return self.recording.answer(method, path, status, words)
        match = re.fullmatch(r"/api/v1(?:/namespaces/train)?/(nodes|pods)(?:/([^/]+))?(?:/(status|eviction))?", path)
        assert match, f"the double does not know {path}"
        kind, name, part = match.groups()
        verb = {"PATCH": "patch", "POST": "create", "GET": "get" if name else "list"}[method]
        if headers["Authorization"] != "Bearer good":
            return recorded(401)
        right = f"{kind}{'/' + part if part else ''} {verb}"
        if right not in self.role:
            return recorded(403, "cannot " + verb)
        if right == "pods list":
            wanted = query["fieldSelector"][0].removeprefix("spec.nodeName=")
            answer = recorded(200)
            answer["body"] = {**self.list, "items": [p for p in self.pods if p["spec"]["nodeName"] == wanted]}
            return answer
        if kind == "nodes":
            return self.nodes(recorded, name, verb, part, body, headers)
        return self.evict(recorded, body)

    def nodes(self, recorded, name, verb, part, body, headers):
        if name != "n1":
            return recorded(404)
        if verb == "patch":
            assert headers["Content-Type"] == "application/strategic-merge-patch+json", headers["Content-Type"]
            if body["metadata"].pop("resourceVersion") != self.known_node["metadata"]["resourceVersion"]:
                return recorded(409)
            merge(self.known_node, {k: v for k, v in body.items() if k == (part or "spec") or (k == "metadata" and not part)})
            self.changed()
        answer = recorded(200)
        answer["body"] = self.node()
        return answer

    def evict(self, recorded, body):
        try:
            older = recorded(400)
        except LookupError:
            older = None  # this version knows policy/v1
        if older and body["apiVersion"] == "policy/v1":
            return older
        if self.is_ended:
            return recorded(403, "NamespaceTerminating")
        known = next((p for p in self.pods if p["metadata"]["name"] == "train-7"), None)
        if known is None:
            return recorded(404)
        if "deletionTimestamp" in known["metadata"]:
            return recorded(201)
        if len(self.budgets) > 1:
            return recorded(500)
        if not all(self.budgets.values()):
            return recorded(429)
        uid = body["deleteOptions"]["preconditions"]["uid"]
        if uid != known["metadata"]["uid"]:
            return recorded(409)
        # It ends within its grace period, which takes longer than any test.
        self.remove_pod()
        self.pods.append(self.recorded_pod("ReplicaSet", uid, ends=True))
        return recorded(201)
