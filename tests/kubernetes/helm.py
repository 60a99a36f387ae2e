#!/usr/bin/env python3
"""The Helm chart, as helm renders it: what it grants and what it mounts. helm.py BINARY"""
import json
import shutil
import subprocess
import sys
from pathlib import Path

CHART = Path(__file__).resolve().parents[2] / "contrib/kubernetes/helm/vramtrack"
POLICY = '[act]\nenabled = true\n[[policy]]\nname = "p"\nsteps = [{ do = "evict" }]\n'


def rendered(helm, *options, ok=True):
    done = subprocess.run([helm, "template", "gpus", CHART, "--namespace", "monitoring", *options], capture_output=True, text=True, timeout=60)
    assert (done.returncode == 0) == ok, done.stderr
    if not ok:
        return done.stderr
    import yaml
    return {d["kind"]: d for d in yaml.safe_load_all(done.stdout) if d}


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
    assert agent["image"] == "vramtrack:0.1.0"
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
    print("ok   the chart")
    return 0


if __name__ == "__main__":
    sys.exit(main())
