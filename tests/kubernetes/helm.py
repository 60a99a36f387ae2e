#!/usr/bin/env python3
"""The Helm chart, as helm renders it: what it grants and what it mounts. helm.py BINARY

Where VRAMTRACK_OPENAPI names a folder of Kubernetes' OpenAPI documents (api/openapi-spec/v3 of the Go module k8s.io/kubernetes) and kubeconform
is in PATH (go install github.com/yannh/kubeconform/cmd/kubeconform@latest), each rendering is checked against their schemas, strictly.
VRAMTRACK_PODMONITOR names the definition of a PodMonitor (example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml of
prometheus-operator); without it, PodMonitors are skipped."""
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHART = Path(__file__).resolve().parents[2] / "contrib/kubernetes/helm/vramtrack"
DOCUMENTS = ("api__v1", "apis__apps__v1", "apis__rbac.authorization.k8s.io__v1")  # those of the chart's kinds
POLICY = '[act]\nenabled = true\n[[policy]]\nname = "p"\nsteps = [{ do = "evict" }]\n'


def closed(schema):
    """The schema, in which a field that is misspelt is not ignored."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: closed(part) for name, part in schema.items()}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        schema.setdefault("additionalProperties", False)
    return schema


@functools.cache
def definition():
    """That of a PodMonitor (CustomResourceDefinition); None: there is none."""
    import yaml
    given = os.environ.get("VRAMTRACK_PODMONITOR")
    return given and yaml.safe_load(Path(given).read_text())


@functools.cache
def schemas():
    """A folder of the schemas, one a kind, as kubeconform reads them; None: there are none."""
    given = os.environ.get("VRAMTRACK_OPENAPI")
    if not given or not shutil.which("kubeconform"):
        return None
    folder = tempfile.TemporaryDirectory()
    for document in DOCUMENTS:
        text = (Path(given) / f"{document}_openapi.json").read_text()
        known = closed(json.loads(text.replace("#/components/schemas/", "#/definitions/"))["components"]["schemas"])
        for name, schema in known.items():
            for of in schema.get("x-kubernetes-group-version-kind", []):
                group = of["group"].split(".")[0] + "-" if of["group"] else ""
                file = Path(folder.name) / f"{of['kind']}-{group}{of['version']}.json".lower()
                file.write_text(json.dumps({"$ref": f"#/definitions/{name}", "definitions": known}))
    if defined := definition():
        (Path(folder.name) / "podmonitor-monitoring-v1.json").write_text(json.dumps(closed(defined["spec"]["versions"][0]["schema"]["openAPIV3Schema"])))
    return folder


def conforms(text):
    if folder := schemas():
        unknown = [] if definition() else ["-skip", "PodMonitor"]
        done = subprocess.run(["kubeconform", "-strict", "-summary", *unknown, "-schema-location", folder.name + "/{{.ResourceKind}}{{.KindSuffix}}.json"],
                              input=text, capture_output=True, text=True, timeout=60)  # fmt: skip
        assert done.returncode == 0 and "Valid: 0" not in done.stdout, done.stdout + done.stderr


def rendered(helm, *options, ok=True):
    done = subprocess.run([helm, "template", "gpus", CHART, "--namespace", "monitoring", *options], capture_output=True, text=True, timeout=60)
    assert (done.returncode == 0) == ok, done.stderr
    if not ok:
        return done.stderr
    import yaml
    conforms(done.stdout)
    documents = [d for d in yaml.safe_load_all(done.stdout) if d]
    named = {(d["kind"], d["metadata"]["name"]): d for d in documents}
    assert len(named) == len(documents), "two of one name"
    return {kind if name == "gpus" else f"{kind} {name}": d for (kind, name), d in named.items()}


def accepted(binary, container, folder):
    """Whether the program has the options that the container starts it with: it fails at what only a cluster has, not at them."""
    args = [arg.replace("/etc/", f"{folder}/").replace("/var/lib/", f"{folder}/") for arg in container["args"]]
    done = subprocess.run([binary, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "unknown" not in done.stderr and "expected" not in done.stderr, (args, done.stderr)
    return done.stderr


def main():
    helm = shutil.which("helm")
    try:
        import yaml  # noqa: F401
    except ImportError:
        helm = None
    if not helm:
        print("helm: SKIPPED: needs helm and PyYAML")
        return 77
    assert subprocess.run([helm, "lint", "--strict", CHART], capture_output=True, timeout=60).returncode == 0

    plain = rendered(helm)
    assert set(plain) == {"ServiceAccount", "DaemonSet"}, plain.keys()
    assert plain["ServiceAccount"]["automountServiceAccountToken"] is False
    pod = plain["DaemonSet"]["spec"]["template"]["spec"]
    agent, = pod["containers"]
    assert pod["automountServiceAccountToken"] is False and agent["args"] == ["agent"] and "ports" not in agent
    assert agent["image"] == "vramtrack:" + (CHART.parents[3] / "VERSION").read_text().strip()
    assert agent["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE", "KILL", "DAC_READ_SEARCH"]}

    tracing = rendered(helm, "--set", "telemetry.enabled=true")
    agent, = tracing["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert agent["args"] == ["agent", "--telemetry"]
    assert agent["securityContext"]["capabilities"]["add"] == ["SYS_PTRACE", "KILL", "DAC_READ_SEARCH", "BPF", "PERFMON"]

    acting = rendered(helm, "--set", "actions.enabled=true", "--set-string", "config=" + POLICY.replace(",", "\\,").replace("{", "\\{").replace("}", "\\}"))
    role = {f"{r} {v}" for rule in acting["ClusterRole"]["rules"] for r in rule["resources"] for v in rule["verbs"]}
    assert role == {"nodes get", "nodes patch", "nodes/status patch", "pods list", "pods/eviction create"}, role
    assert acting["ClusterRoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": "gpus", "namespace": "monitoring"}]
    config = Path("/dev/shm") / "vramtrack-helm-test.toml"
    config.write_text(acting["ConfigMap"]["data"]["config.toml"])
    checked = subprocess.run([sys.argv[1], "policy", "check", "--config", config], capture_output=True, text=True, timeout=60)
    config.unlink()
    assert checked.returncode == 0, checked.stdout + checked.stderr

    assert "needs metrics.tokenSecret" in rendered(helm, "--set", "metrics.enabled=true", ok=False)
    open_one = rendered(helm, "--set", "metrics.enabled=true", "--set", "metrics.tokenSecret=vt")
    agent, = open_one["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert agent["args"] == ["agent", "--listen", "0.0.0.0:9474", "--set", "agent.token-file=/etc/vramtrack-token/token"], agent["args"]
    assert "vt" in json.dumps(open_one["DaemonSet"]["spec"]["template"]["spec"]["volumes"])
    with_tls = rendered(helm, "--set", "metrics.enabled=true", "--set", "metrics.tokenSecret=vt", "--set", "metrics.tlsSecret=cert")
    pod = with_tls["DaemonSet"]["spec"]["template"]["spec"]
    agent, = pod["containers"]
    assert agent["args"][-3:] == ["agent.tls-certificate=/etc/vramtrack-tls/tls.crt", "--set", "agent.tls-key=/etc/vramtrack-tls/tls.key"], agent["args"]
    assert {"name": "tls", "secret": {"secretName": "cert", "defaultMode": 0o400}} in pod["volumes"], pod["volumes"]
    assert {"name": "tls", "mountPath": "/etc/vramtrack-tls", "readOnly": True} in agent["volumeMounts"]

    ready = rendered(helm, "--set", "runtimeClassName=nvidia", "--set", "kernelLog.enabled=true")["DaemonSet"]["spec"]["template"]["spec"]
    agent, = ready["containers"]
    assert ready["runtimeClassName"] == "nvidia" and agent["securityContext"]["privileged"] is True, ready
    assert {"name": "kmsg", "mountPath": "/dev/kmsg", "readOnly": True} in agent["volumeMounts"]
    agent, = pod["containers"]
    assert "privileged" not in agent["securityContext"] and agent["securityContext"]["runAsUser"] == 0

    assert "needs metrics.enabled" in rendered(helm, "--set", "metrics.podMonitor.enabled=true", ok=False)
    monitored = rendered(helm, "--set", "metrics.enabled=true", "--set", "metrics.tokenSecret=vt", "--set", "metrics.podMonitor.enabled=true",
                         "--set", "metrics.podMonitor.labels.release=prometheus")  # fmt: skip
    monitor = monitored["PodMonitor"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus" and monitor["spec"]["podMetricsEndpoints"][0]["honorLabels"] is True
    selected = monitor["spec"]["selector"]["matchLabels"].items()
    assert selected <= monitored["DaemonSet"]["spec"]["template"]["metadata"]["labels"].items()

    assert "needs fleet.url" in rendered(helm, "--set", "fleet.enabled=true", ok=False)
    assert "needs fleet.tokenSecret" in rendered(helm, "--set", "fleet.enabled=true", "--set", "fleet.url=http://p:9090", ok=False)
    assert "needs actuate.tokenSecret" in rendered(helm, "--set", "actuate.enabled=true", ok=False)
    assert "needs actuate.config" in rendered(helm, "--set", "actuate.enabled=true", "--set", "actuate.tokenSecret=vt", ok=False)
    toml = POLICY.replace("[act]", '[actuate]\nagent-hosts = ["*"]\n[act]').replace(",", "\\,").replace("{", "\\{").replace("}", "\\}")
    servers = rendered(helm, "--set", "fleet.enabled=true", "--set", "fleet.url=http://p:9090", "--set", "fleet.tokenSecret=ft",
                       "--set", "actuate.enabled=true", "--set", "actuate.tokenSecret=at", "--set", "actuate.agentTokenSecret=vt", "--set-string", "actuate.config=" + toml)  # fmt: skip
    assert servers["ClusterRoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": "gpus-actuate", "namespace": "monitoring"}]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "vramtrack").mkdir()
        (Path(folder) / "vramtrack" / "actuate.toml").write_text(servers["ConfigMap gpus-actuate"]["data"]["actuate.toml"])
        for name in ("fleet", "actuate"):
            deployment = servers[f"Deployment gpus-{name}"]["spec"]
            labels = deployment["template"]["metadata"]["labels"]
            assert deployment["selector"]["matchLabels"] == servers[f"Service gpus-{name}"]["spec"]["selector"] == labels
            assert not labels.items() <= plain["DaemonSet"]["spec"]["selector"]["matchLabels"].items()
            container, = deployment["template"]["spec"]["containers"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted == {volume["name"] for volume in deployment["template"]["spec"]["volumes"]}, mounted
            assert "vramtrack-token/token" in accepted(sys.argv[1], container, folder)
        assert servers["Deployment gpus-fleet"]["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    pushing = rendered(helm, "--set", "fleet.enabled=true", "--set", "fleet.url=http://p:9090", "--set", "fleet.tokenSecret=ft",
                       "--set", "otlp.endpoint=http://collector:4318")  # fmt: skip
    for name in ("DaemonSet", "Deployment gpus-fleet"):
        container, = pushing[name]["spec"]["template"]["spec"]["containers"]
        assert {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4318"} in container["env"], container["env"]
        assert all(isinstance(one.get("value", ""), str) for one in container["env"])
    assert "OTEL" not in str(plain)
    conforms((CHART.parents[1] / "vramtrack.yaml").read_text())
    print("ok   the chart" + (", by Kubernetes' schemas" if schemas() else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
