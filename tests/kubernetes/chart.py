#!/usr/bin/env python3
"""The Helm chart and contrib/kubernetes/vramtrack.yaml on a real kube-apiserver: chart.py PROGRAMS

PROGRAMS is the folder of etcd and kube-apiserver (`make test-kubernetes`). Each object that helm renders is created as a server-side dry run
with strict validation of its fields: everything is checked, and nothing is kept. A PodMonitor needs the definition of its kind, which
VRAMTRACK_PODMONITOR names (example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml of prometheus-operator). It is skipped
(77) without helm, PyYAML, openssl or PROGRAMS.
"""
import copy
import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from cluster import Cluster, until  # noqa: E402
from helm import POLICY, definition, rendered  # noqa: E402
from scenarios import MANIFEST  # noqa: E402

METRICS = {"enabled": True, "tokenSecret": "vt", "tlsSecret": "cert"}
FLEET = {"enabled": True, "url": "http://p:9090", "tokenSecret": "ft"}
ACTUATE = {"enabled": True, "tokenSecret": "at", "config": '[actuate]\nagent-hosts = ["*"]\n' + POLICY}
VALUES = {
    "the agent": {},
    "the agent with a policy and metrics": {"actions": {"enabled": True}, "config": POLICY, "metrics": METRICS},
    "the tracer's capabilities": {"telemetry": {"enabled": True}},
    "the kernel log and a runtime class": {"kernelLog": {"enabled": True}, "runtimeClassName": "nvidia"},
    "the fleet watch": {"fleet": FLEET, "otlp": {"endpoint": "http://collector:4318"}},
    "the fleet watch and actuate": {
        "fleet": {**FLEET, "tlsSecret": "cert", "extraArgs": ["--history", "7d"]},
        "actuate": {**ACTUATE, "enforce": True, "agentTokenSecret": "vt", "agentCaSecret": "ca", "persistentVolumeClaim": "taken"}},
    "a PodMonitor": {"metrics": {**METRICS, "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}},
}
FIRST_STRICT = 25  # of Kubernetes 1: earlier servers ignore fieldValidation, and drop a field that they do not know


def path_of(cluster, document):
    """Where an object of its kind is created; None: the server does not know the kind."""
    version = document["apiVersion"]
    base = ("/apis/" if "/" in version else "/api/") + version
    status, known = cluster.ask("GET", base)
    if status == 404:
        return None
    resource, = (r for r in known["resources"] if r["kind"] == document["kind"] and "/" not in r["name"])
    return base + (f"/namespaces/{document['metadata']['namespace']}" if resource["namespaced"] else "") + f"/{resource['name']}"


def tried(cluster, document):
    """Status and message of its creation, which is a dry run; a namespace is created, because those that follow are in it."""
    dry = "" if document["kind"] == "Namespace" else "dryRun=All&"
    status, answer = cluster.ask("POST", f"{path_of(cluster, document)}?{dry}fieldValidation=Strict", document)
    return status, answer.get("message", "") if isinstance(answer, dict) else str(answer)


def misspelt(document):
    """The object with a field that its kind does not have, as deep as the chart's own text goes."""
    document = copy.deepcopy(document)
    at = document
    for name in ("spec", "template", "spec", "containers", 0, "securityContext"):
        if name != 0 and name not in at:
            break
        at = at[name]
    at["misspelt"] = "a"
    return document


def check(cluster, name, documents, is_strict):
    """Each is accepted as it is, and refused with a field that does not exist."""
    kinds = []
    for document in documents:
        kind = f"{document['kind']} {document['metadata']['name']}"
        if not path_of(cluster, document):
            assert document["kind"] == "PodMonitor", f"{name}: the server does not know {kind}"
            print(f"skip {name}: {kind}: VRAMTRACK_PODMONITOR names no definition of its kind")
            continue
        if is_strict:
            status, said = tried(cluster, misspelt(document))
            assert status == 400 and "misspelt" in said, f"{name}: {kind} is accepted with a field that does not exist: {status} {said}"
        status, said = tried(cluster, document)
        assert status == 201, f"{name}: {kind}: {status} {said}"
        kinds.append(document["kind"])
    print(f"ok   {name}: {', '.join(kinds)}", flush=True)
    return kinds


def define(cluster, defined):
    """Adds the kind of a definition (CustomResourceDefinition)."""
    cluster.must("POST", path_of(cluster, defined), defined)
    spec = defined["spec"]

    def is_served():
        status, known = cluster.ask("GET", f"/apis/{spec['group']}/{spec['versions'][0]['name']}")
        return status == 200 and spec["names"]["kind"] in [r["kind"] for r in known["resources"]]
    until("a served kind", is_served)


def main():
    programs = Path(sys.argv[1]).resolve()
    try:
        import yaml
    except ImportError:
        yaml = None
    helm = shutil.which("helm")
    if not (yaml and helm and shutil.which("openssl") and (programs / "kube-apiserver").exists() and (programs / "etcd").exists()):
        print(f"chart: SKIPPED: needs helm, PyYAML, openssl, and kube-apiserver and etcd in {programs}")
        return 77
    with tempfile.TemporaryDirectory() as one, Cluster(Path(one), programs, controllers=False) as cluster:
        print(f"kube-apiserver {cluster.version}")
        is_strict = int(cluster.get("/version")["minor"].rstrip("+")) >= FIRST_STRICT
        if not is_strict:
            print("skip fields that do not exist: this server does not check them")
        if defined := definition():
            define(cluster, defined)
        cluster.must("POST", "/api/v1/namespaces", {"metadata": {"name": "monitoring"}})
        values, kinds = Path(one) / "values.json", set()
        for name, chosen in VALUES.items():
            values.write_text(json.dumps(chosen))
            kinds.update(check(cluster, name, rendered(helm, "-f", values).values(), is_strict))
        check(cluster, MANIFEST.name, [d for d in yaml.safe_load_all(MANIFEST.read_text()) if d], is_strict)
        expected = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "Deployment", "Service"}
        assert kinds - {"PodMonitor"} == expected and ("PodMonitor" in kinds) == bool(defined), kinds

        # What only a server checks: a mount of no volume, and a selector that its own pods do not have.
        values.write_text("{}")
        agent = rendered(helm, "-f", values)["DaemonSet"]
        agent["spec"]["template"]["spec"]["volumes"].pop()
        status, said = tried(cluster, agent)
        assert status == 422 and "volumeMounts" in said, (status, said)
        agent = rendered(helm, "-f", values)["DaemonSet"]
        agent["spec"]["selector"]["matchLabels"] = {"app": "another"}
        status, said = tried(cluster, agent)
        assert status == 422 and "selector" in said, (status, said)
        print("ok   what is wrong is refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
