"""The plugin of contrib/kubernetes/node-problem-detector under a real node-problem-detector, which VRAMTRACK_NPD names. npd.py BINARY

Build one from github.com/kubernetes/node-problem-detector: CGO_ENABLED=0 go build -tags disable_system_stats_monitor ./cmd/nodeproblemdetector"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "fleet"), str(HERE.parent / "cli")]
from patience import patience  # noqa: E402
from servers import free_port  # noqa: E402

PLUGIN = HERE.parents[1] / "contrib/kubernetes/node-problem-detector/vramtrack.json"
SYS = HERE.parents[1] / "tests/fixtures/sys"
FALLEN = "[  100.000000] NVRM: Xid (PCI:0000:65:00): 79, pid=4242, name=python3, GPU has fallen off the bus.\n"


def until(what, look, seconds=60):
    end = time.monotonic() + patience(seconds)
    while not look():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.1)


def main():
    binary, detector = pathlib.Path(sys.argv[1]).resolve(), os.environ.get("VRAMTRACK_NPD")
    if not detector:
        print("npd: SKIPPED: VRAMTRACK_NPD names no node-problem-detector")
        return 77
    folder = pathlib.Path(tempfile.mkdtemp(prefix="vramtrack-npd-"))
    (folder / "kernel.log").write_text("[    3.000000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\n")
    # What the plugin starts, on the fixtures of a machine instead of this one.
    (folder / "vramtrack").write_text(f'#!/bin/sh\nexec {binary} "$@" --kernel-log {folder}/kernel.log --set sources.enabled=drm --set sources.sys-root={SYS}\n')
    (folder / "vramtrack").chmod(0o755)
    plugin = json.loads(PLUGIN.read_text())
    plugin["pluginConfig"]["invoke_interval"] = "1s"
    for rule in plugin["rules"]:
        assert rule["path"] == "/usr/bin/vramtrack"
        rule["path"] = str(folder / "vramtrack")
    (folder / "plugin.json").write_text(json.dumps(plugin))
    port = free_port()
    log = open(folder / "log", "wb")
    process = subprocess.Popen([detector, "--logtostderr", "--enable-k8s-exporter=false", f"--prometheus-port={port}", "--prometheus-address=127.0.0.1",
                                "--port=0", f"--config.custom-plugin-monitor={folder}/plugin.json"],
                               stdout=log, stderr=log, env={**os.environ, "NODE_NAME": "gn1", "HOME": str(folder)})  # fmt: skip

    def problem():
        try:
            text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
        except OSError:
            return None
        found = re.search(r'^problem_gauge\{[^}]*reason="GPUIsUnhealthy"[^}]*type="GPUProblem"[^}]*\} (\d)', text, re.M)
        return found and found[1]

    try:
        until("a healthy node", lambda: problem() == "0")
        (folder / "kernel.log").write_text((folder / "kernel.log").read_text() + FALLEN)
        until("the condition", lambda: problem() == "1")
        assert "XID 79" in (folder / "log").read_text()
    except BaseException:
        print((folder / "log").read_text()[-3000:])
        raise
    finally:
        process.terminate()
        process.wait(30)
        log.close()
        shutil.rmtree(folder)
    print("ok   the plugin sets the condition")
    return 0


if __name__ == "__main__":
    sys.exit(main())
