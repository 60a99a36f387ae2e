"""What the actions for Kubernetes must do, the same on a real API server (apiserver.py) and on the double (kubernetes.py).

`world` is a node n1 with the pods `other` and `train-7` of the ReplicaSet `train` in the namespace `train`; an act concerns train-7. Nothing is
budgeted, and the agent has the rights of contrib/kubernetes, unless a scenario changes that.
"""
import copy
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

CONTRIB = Path(__file__).resolve().parents[2] / "contrib/kubernetes"
MANIFEST = CONTRIB / "vramtrack.yaml"
# That of train-7, which no kubelet runs here: the test's world reports what a kubelet would.
CONTAINER = "4f1c0d9b" * 8
STATUS = {"containerStatuses": [{"name": "c", "image": "train", "imageID": "", "ready": True, "restartCount": 0, "containerID": "containerd://" + CONTAINER}]}
# What contrib/kubernetes grants, and no more.
ROLE = {"nodes get", "nodes patch", "nodes/status patch", "pods list", "pods/eviction create"}


def chart_rbac():
    """The chart's service accounts, role and binding, with all enabled; it has no other expressions than these."""
    text = (CONTRIB / "helm/vramtrack/templates/rbac.yaml").read_text()
    text = re.sub(r"\{\{ \.Release\.\w+ \}\}", "vramtrack", text).replace("{{ .Values.actions.enabled }}", "true")
    text = re.sub(r"(?m)^ *\{\{- (if [^}]*|end) \}\}\n", "", text)
    assert "{{" not in text, text
    return text


def granted(rules):
    return {f"{resource} {verb}" for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


class Case:
    """One scenario: the acts of `program` in `world`, which answers through `port`."""

    def __init__(self, program, world, port):
        self.program, self.world, self.port, self.folder = program, world, port, world.folder

    def act(self, action, *more, ok=True, name="n1", uid=None, container=CONTAINER):
        environment = {**os.environ, "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.port),
                       "ACT_ONCE_SERVICE_ACCOUNT": str(self.folder), "ACT_ONCE_POD": uid or self.world.uid, "ACT_ONCE_CONTAINER": container}
        # Any process serves as that of the pod: it is held, and not touched.
        done = subprocess.run([self.program, action, str(os.getpid()), "root", "", name, *more], env=environment, capture_output=True, text=True,
                              timeout=120)
        assert (done.returncode == 0) == ok, f"{action}: exit {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def conditions(self):
        return {c["type"]: c for c in self.world.node()["status"]["conditions"]}


def a_pod_is_evicted(case):
    assert "train/train-7 is evicted" in case.act("evict")
    assert case.world.names() == ["other"]


def a_pod_that_does_not_run_the_container(case):
    """The UID is that of another's pod: the cgroup of the process names it, and its kubelet does not."""
    said = case.act("evict", ok=False, container="e" * 64)
    assert "the kubelet of n1 runs no container eeeeeeeeeeee in the pod train/train-7" in said, said
    assert case.world.names() == ["other", "train-7"]


def a_pod_that_is_asked_twice(case):
    """After its eviction a pod is there until its grace period is over. Asking again does no harm, and the budget does not forbid it."""
    case.world.budget(True)
    case.act("evict")
    case.act("evict")
    assert case.world.names() == ["other"]


def a_budget_allows_it(case):
    case.world.budget(True)
    case.act("evict")
    assert case.world.names() == ["other"]


def a_budget_is_respected_and_asked_again(case):
    case.world.budget(False)
    case.world.recorder.after(429, lambda: case.world.budget(True))
    case.act("evict", "timeout=30")
    assert case.world.names() == ["other"]


def a_budget_that_never_allows_it(case):
    case.world.budget(False)
    said = case.act("evict", "timeout=1", ok=False)
    assert "PodDisruptionBudget" in said and "answered 429" in said, said
    assert "The disruption budget train needs 2 healthy pods and has 2 currently" in said, said
    assert case.world.names() == ["other", "train-7"]


def two_budgets_for_a_pod(case):
    case.world.budget(True)
    case.world.budget(True, name="second")
    said = case.act("evict", ok=False)
    assert "answered 500" in said and "PodDisruptionBudget" in said, said
    assert case.world.names() == ["other", "train-7"]


def bare_pods_stay(case):
    case.world.pod(None)
    assert "no controller" in case.act("evict", ok=False)
    assert case.world.names() == ["other", "train-7"]


def pods_of_a_daemon_set_stay(case):
    case.world.pod("DaemonSet")
    assert "DaemonSet" in case.act("evict", ok=False)
    assert case.world.names() == ["other", "train-7"]


def another_pod_of_the_name_stays(case):
    old = case.world.uid
    case.world.pod("ReplicaSet")
    assert "no pod on node n1 has the UID" in case.act("evict", ok=False, uid=old)
    assert case.world.names() == ["other", "train-7"]


def a_pod_that_is_replaced_meanwhile_stays(case):
    """Between the look and the eviction: only the precondition of the request protects the new pod."""
    case.world.recorder.before("POST", "/eviction", lambda: case.world.pod("ReplicaSet"))
    said = case.act("evict", ok=False)
    assert "answered 409" in said and "precondition" in said.lower(), said
    assert case.world.names() == ["other", "train-7"]


def a_pod_that_ends_meanwhile(case):
    case.world.recorder.before("POST", "/eviction", case.world.remove_pod)
    assert "was gone already" in case.act("evict")
    assert case.world.names() == ["other"]


def a_namespace_that_is_ended(case):
    """It forbids the eviction for a reason that no role takes away."""
    case.world.end_namespace()
    said = case.act("evict", ok=False)
    assert "answered 403" in said and "being terminated" in said and "contrib/kubernetes" not in said, said
    assert case.world.names() == ["other", "train-7"]


def no_right(case, right):
    """Without this one right, the act that needs it is refused with 403."""
    case.world.rights(ROLE - {right})
    before = copy.deepcopy(case.world.node())
    said = case.act("evict" if right.startswith("pods") else "cordon", ok=False)
    assert "answered 403" in said and "contrib/kubernetes" in said, said
    assert case.world.names() == ["other", "train-7"]
    if right != "nodes/status patch":
        assert case.world.node() == before


def no_right_to_get_nodes(case):
    no_right(case, "nodes get")


def no_right_to_patch_nodes(case):
    no_right(case, "nodes patch")


def no_right_to_patch_the_status(case):
    no_right(case, "nodes/status patch")


def no_right_to_list_pods(case):
    no_right(case, "pods list")


def no_right_to_evict(case):
    no_right(case, "pods/eviction create")


def a_wrong_token(case):
    (case.folder / "token").write_text("not a token\n")
    assert "answered 401" in case.act("evict", ok=False)
    assert "answered 401" in case.act("cordon", ok=False)
    assert case.world.names() == ["other", "train-7"] and not case.world.node()["spec"].get("unschedulable")


def a_node_is_cordoned_and_back(case):
    before = case.world.node()
    undo = case.act("cordon").split("undo: ")[1].strip()
    known = case.world.node()
    assert known["spec"].pop("unschedulable") is True and known["spec"] == before["spec"], known["spec"]
    assert known["metadata"]["annotations"] == {**before["metadata"]["annotations"], "vramtrack.io/cordoned-by": "act-1"}
    assert {t: c["status"] for t, c in case.conditions().items()} == {"Ready": "True", "GpuMemoryLeak": "True"}
    assert case.conditions()["GpuMemoryLeak"]["lastTransitionTime"] == "1970-01-01T00:00:00Z", "the time that act_once gives"
    assert "accepts pods again" in case.act("undo:cordon", undo)
    known = case.world.node()
    assert known["spec"] == before["spec"] and known["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert {t: c["status"] for t, c in case.conditions().items()} == {"Ready": "True", "GpuMemoryLeak": "False"}


def others_change_the_node_meanwhile(case):
    case.world.recorder.before("PATCH", "/n1", case.world.touch_node, times=2)
    case.act("cordon")
    assert case.world.node()["spec"]["unschedulable"] is True
    assert case.world.node()["metadata"]["annotations"]["touched"] == "2"


def a_persons_cordon_stays(case):
    case.world.cordon_by_a_person()
    said = case.act("cordon")
    assert "already cordoned" in said and said.rstrip().endswith("undo:"), said
    assert "left as it is" in case.act("undo:cordon", "n1|act-1")
    assert case.world.node()["spec"]["unschedulable"] is True


def a_person_cordons_it_meanwhile(case):
    """Between the look and the change. It stays that person's: the agent does not uncordon it afterwards."""
    case.world.recorder.before("PATCH", "/n1", case.world.cordon_by_a_person)
    said = case.act("cordon")
    assert "somebody else has cordoned it" in said, said
    assert "left as it is" in case.act("undo:cordon", "n1|act-1")
    assert case.world.node()["spec"]["unschedulable"] is True and set(case.conditions()) == {"Ready"}


def an_undo_that_is_cut_short(case):
    """The server goes down before each of its two changes. Doing it again takes all of it back."""
    case.act("cordon")
    for path in "/n1/status", "/n1":
        case.world.recorder.before("PATCH", path, case.world.stop)
        assert "cannot be asked" in case.act("undo:cordon", "n1|act-1", ok=False)
        case.world.start()
    assert "accepts pods again" in case.act("undo:cordon", "n1|act-1")
    assert not case.world.node()["spec"].get("unschedulable") and case.conditions()["GpuMemoryLeak"]["status"] == "False"


def a_node_that_is_not_there(case):
    said = case.act("cordon", ok=False, name="n9")
    assert "answered 404" in said and '"n9" not found' in said, said


def names_are_no_paths(case):
    assert "not the name of a Kubernetes node" in case.act("cordon", ok=False, name="../secrets")


def another_authority_is_not_trusted(case):
    from cluster import certificates
    other = Path(tempfile.mkdtemp(dir=case.folder))
    certificates(other)
    shutil.copy(case.folder / "token", other)
    case.folder = other
    assert "certificate" in case.act("cordon", ok=False)


def a_server_that_is_down(case):
    case.world.stop()
    assert "cannot be asked" in case.act("evict", ok=False)
    assert "cannot be asked" in case.act("cordon", ok=False)
    case.world.start()
    case.act("cordon")
    case.act("evict")
    assert case.world.names() == ["other"] and case.world.node()["spec"]["unschedulable"] is True


def a_server_that_restarts_while_a_budget_forbids_it(case):
    def restart():
        case.world.stop()
        case.world.start()
        case.world.budget(True)
    case.world.budget(False)
    case.world.recorder.after(429, restart)
    case.act("evict", "timeout=60")
    assert case.world.names() == ["other"]


SCENARIOS = [a_pod_is_evicted, a_pod_that_does_not_run_the_container, a_pod_that_is_asked_twice, a_budget_allows_it, a_budget_is_respected_and_asked_again, a_budget_that_never_allows_it, two_budgets_for_a_pod,
             bare_pods_stay, pods_of_a_daemon_set_stay, another_pod_of_the_name_stays, a_pod_that_is_replaced_meanwhile_stays, a_pod_that_ends_meanwhile,
             a_namespace_that_is_ended, no_right_to_get_nodes, no_right_to_patch_nodes, no_right_to_patch_the_status, no_right_to_list_pods,
             no_right_to_evict, a_wrong_token, a_node_is_cordoned_and_back, others_change_the_node_meanwhile, a_persons_cordon_stays,
             a_person_cordons_it_meanwhile, an_undo_that_is_cut_short, a_node_that_is_not_there, names_are_no_paths, another_authority_is_not_trusted, a_server_that_is_down,
             a_server_that_restarts_while_a_budget_forbids_it]
