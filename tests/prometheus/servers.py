"""Starts real servers on loopback for a test: Prometheus, Alertmanager, VictoriaMetrics, vmagent, vmalert, and a webhook that remembers."""
import http.server
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTRIB = ROOT / "contrib" / "prometheus"
sys.path.insert(0, str(ROOT / "tests" / "agent"))
from running import until  # noqa: E402

# Debian puts daemons where the PATH of a user does not look.
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def needs(*programs, group="test"):
    missing = [p for p in programs if not shutil.which(p, path=PATH)]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)} (scripts/setup.sh {group})")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(url, data=None):
    """(status, body); (0, b"") while nobody listens."""
    request = urllib.request.Request(url, data=json.dumps(data).encode() if data is not None else None, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()
    except OSError:
        return 0, b""


class Webhook:
    """Remembers what Alertmanager posts."""

    def __init__(self):
        heard = self.heard = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                heard.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def alerts(self, name, status="firing"):
        return [a for _, message in list(self.heard) for a in message["alerts"] if a["labels"]["alertname"] == name and a["status"] == status]


class Servers:
    """Everything that it starts runs in `folder` and ends with it. Use it with `with`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.running):
            process.terminate()
        for process in reversed(self.running):
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, ready, *command):
        log = self.folder / f"{pathlib.Path(command[0]).name}.log"
        with open(log, "ab") as out:
            process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=out, env={**os.environ, "PATH": PATH})
        self.running.append(process)
        until(lambda: fetch(ready)[0] == 200 or process.poll() is not None, 60, f"{command[0]} answers")
        if process.poll() is not None:
            raise AssertionError(f"{command[0]} ended: {log.read_text()[-3000:]}")

    def logs(self):
        return "\n".join(f"== {p.name}\n{p.read_text(errors='replace')[-2500:]}" for p in sorted(self.folder.glob("*.log")))

    def prometheus(self, config, *options):
        port = free_port()
        self.start(f"http://127.0.0.1:{port}/-/ready", "prometheus", f"--config.file={config}", f"--storage.tsdb.path=tsdb{port}",
                   f"--web.listen-address=127.0.0.1:{port}", *options)
        return Store(f"http://127.0.0.1:{port}")

    def alertmanager(self, config):
        port = free_port()
        self.start(f"http://127.0.0.1:{port}/-/ready", "prometheus-alertmanager", f"--config.file={config}", f"--storage.path=am{port}",
                   f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=")
        return port

    def victoria(self):
        port = free_port()
        # By default the newest 30 s are hidden from queries.
        self.start(f"http://127.0.0.1:{port}/health", "victoria-metrics", f"-httpListenAddr=127.0.0.1:{port}", f"-storageDataPath=vm{port}",
                   "-search.latencyOffset=0s")
        return Store(f"http://127.0.0.1:{port}")

    def vmagent(self, store, config):
        port = free_port()
        self.start(f"http://127.0.0.1:{port}/health", "vmagent", f"-promscrape.config={config}", "-promscrape.config.strictParse=false",
                   f"-remoteWrite.url={store.url}/api/v1/write", f"-remoteWrite.tmpDataPath=vmagent{port}", "-remoteWrite.flushInterval=500ms",
                   f"-httpListenAddr=127.0.0.1:{port}")

    def vmalert(self, store, alertmanager_port, *rules):
        port = free_port()
        self.start(f"http://127.0.0.1:{port}/health", "vmalert", *[f"-rule={r}" for r in rules], f"-datasource.url={store.url}",
                   f"-remoteWrite.url={store.url}", f"-remoteWrite.flushInterval=500ms", f"-notifier.url=http://127.0.0.1:{alertmanager_port}",
                   f"-httpListenAddr=127.0.0.1:{port}", "-evaluationInterval=1s")
        return Store(f"http://127.0.0.1:{port}")


class Store:
    """What speaks Prometheus' query API."""

    def __init__(self, url):
        self.url = url

    def get(self, path, **parameters):
        status, body = fetch(f"{self.url}{path}?{urllib.parse.urlencode(parameters)}")
        answer = json.loads(body) if body else {}
        if status != 200 or answer.get("status") != "success":
            raise AssertionError(f"{path} {parameters}: status {status}: {body[:500]!r}")
        return answer["data"]

    def query(self, expression):
        return self.get("/api/v1/query", query=expression)["result"]

    def value(self, expression):
        result = self.query(expression)
        return float(result[0]["value"][1]) if result else None


def quick_rules(folder):
    """The rules of contrib/prometheus without their patience, so that a test need not wait for minutes."""
    import re
    for name in ("vramtrack.recording.yml", "vramtrack.alerts.yml"):
        text = (CONTRIB / name).read_text()
        (folder / name).write_text(re.sub(r"for: \d+m", "for: 1s", text))


def quick_config(folder, targets, alertmanager_port=None, labels=None):
    """contrib/prometheus/prometheus.yml for these targets, once a second."""
    import yaml
    config = yaml.safe_load((CONTRIB / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    job, = config["scrape_configs"]
    job["static_configs"] = [{"targets": targets, "labels": labels or {}}]
    if alertmanager_port:
        config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager_port}"]}]}]
    else:
        del config["alerting"]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    return config


def quick_alertmanager(folder, webhook):
    """contrib/prometheus/alertmanager.yml with this webhook in place of `vramtrack actuate`."""
    import yaml
    config = yaml.safe_load((CONTRIB / "alertmanager.yml").read_text())
    config["route"].update(group_wait="1s", group_interval="1s")
    actuate, = config["receivers"][0]["webhook_configs"]
    assert actuate["url"] == "http://127.0.0.1:9836/api/v1/alerts"
    actuate["url"] = f"http://127.0.0.1:{webhook.port}/api/v1/alerts"
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(config))
