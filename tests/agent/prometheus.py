"""A real Prometheus scrapes the simulated leak with the rules of contrib/prometheus, and a real Alertmanager brings the alert to a webhook."""
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import unittest
import urllib.request

from running import Agent, Sandbox, patience, until
import side_by_side

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")
CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib" / "prometheus"


def needs(*programs):
    missing = [p for p in programs if not shutil.which(p)]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)} (scripts/setup.sh test)")


def run(*command):
    return subprocess.run(command, cwd=CONTRIB, capture_output=True, timeout=patience(60))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Contrib(unittest.TestCase):
    @needs("promtool")
    def test_rules_are_well_formed_and_do_what_they_say(self):
        for command in (["check", "rules", "vramtrack.recording.yml", "vramtrack.alerts.yml"], ["check", "config", "prometheus.yml"],
                        ["test", "rules", "vramtrack.tests.yml", "vramtrack.days.tests.yml"]):
            result = run("promtool", *command)
            self.assertEqual(result.returncode, 0, (result.stdout + result.stderr).decode())

    @needs("promtool")
    def test_metrics_are_well_named(self):
        with Sandbox(BINARY) as box, Agent(box, "--set", "metrics.per-process=true", speed=1200) as agent:
            until(lambda: agent.get("/api/v1/status")["severity"] != "ok", 60, "the verdict")
            text = agent.ask("GET", "/metrics")[2]
            result = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=30)
            self.assertEqual((result.returncode, result.stderr), (0, b""), result.stdout)

    @needs("promtool")
    @unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
    def test_metrics_of_health_are_well_named(self):
        with Sandbox(BINARY) as box:
            box.write("nvml.txt", "gpu 0 total=80G used=1G temp=61 throttle=0x4 ecc=1 corrected=3 uncorrected=0 corrected_total=9 "
                                  "uncorrected_total=0 remapped=1\nxid gpu=0 code=79 at=0\n")
            with Agent(box, "--source", "nvml", "--set", "sources.nvml-library=" + FAKE, simulate=False,
                       env={"VRAMTRACK_FAKE_NVML": str(box.work / "nvml.txt")}) as agent:
                text = until(lambda: (a := agent.ask("GET", "/metrics"))[0] == 200 and a[2], 20, "a sample")
        names = set(re.findall(rb"^(vramtrack_gpu_\w+)", text, re.M))
        self.assertEqual(len(names), 11, names)
        result = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=30)
        self.assertEqual((result.returncode, result.stderr), (0, b""), result.stdout)

    @unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
    def test_ranks_of_one_launcher_are_one_work_and_two_launchers_two(self):
        # Each launcher starts two ranks, in sessions of their own, as torchrun does.
        launcher = ("import subprocess, sys, time\n"
                    "ranks = [subprocess.Popen(['sleep', '1000'], start_new_session=True) for _ in range(2)]\n"
                    "print(*(r.pid for r in ranks), flush=True)\nsys.stdin.read()\n[r.kill() for r in ranks]")
        with Sandbox(BINARY) as box:
            launchers = [subprocess.Popen(["sh", "-c", 'setsid "$0" -c "$1"; :', sys.executable, launcher], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                         for _ in "ab"]
            try:
                ranks = [tuple(map(int, one.stdout.readline().split())) for one in launchers]
                box.write("nvml.txt", "gpu 0 total=80G used=1G\n" + "".join(f"process gpu=0 pid={pid} used=2G\n" for pair in ranks for pid in pair))
                with Agent(box, "--source", "nvml", "--set", "sources.nvml-library=" + FAKE, "--set", "metrics.per-process=true", simulate=False,
                           env={"VRAMTRACK_FAKE_NVML": str(box.work / "nvml.txt"), "NODE_NAME": "node7"}) as agent:
                    text = until(lambda: (a := agent.ask("GET", "/metrics"))[0] == 200 and b"vramtrack_process_memory_used_bytes{" in a[2] and a[2], 20,
                                 "a sample").decode()
            finally:
                for one in launchers:
                    one.communicate()
        work = {int(pid): name for pid, name in re.findall(r'^vramtrack_process_memory_used_bytes\{.*,pid="(\d+)".*,work="([^"]*)"', text, re.M)}
        (a, b), (c, d) = ranks
        self.assertEqual(work[a], work[b])
        self.assertEqual(work[c], work[d])
        self.assertNotEqual(work[a], work[c])
        self.assertRegex(work[a], r"^node7 \S+ pid \d+$")

    def test_the_dashboards_ask_for_metrics_there_are(self):
        known = (CONTRIB.parents[1] / "docs" / "METRICS.md").read_text() + (CONTRIB / "vramtrack.recording.yml").read_text()
        for dashboard in ("fleet", "job", "node", "gpu"):
            text = (CONTRIB.parent / "grafana" / f"{dashboard}.json").read_text()
            json.loads(text)
            names = set(re.findall(r"\b(vramtrack[_:][a-z_:]+)", text))
            self.assertTrue(names)
            for name in names:
                self.assertIn(name, known, dashboard)


class Hook(http.server.BaseHTTPRequestHandler):
    heard = []

    def do_POST(self):
        Hook.heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@needs("prometheus", "prometheus-alertmanager")
class EndToEnd(unittest.TestCase):
    def start(self, *command):
        with open(self.box.work / "log", "ab") as log:
            process = subprocess.Popen(command, cwd=self.box.work, stdout=subprocess.DEVNULL, stderr=log)

        def stop():
            process.terminate()
            process.wait(10)
        self.addCleanup(stop)

    def test_the_leak_alert_arrives(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        self.addCleanup(hook.server_close)
        self.addCleanup(hook.shutdown)
        agent = Agent(self.box, speed=240).__enter__()
        self.addCleanup(agent.__exit__)
        prometheus, alertmanager = free_port(), free_port()
        config = (CONTRIB / "prometheus.yml").read_text()
        config = (config.replace("127.0.0.1:9474", f"{agent.host}:{agent.port}").replace("127.0.0.1:9093", f"127.0.0.1:{alertmanager}")
                  .replace("15s", "1s"))
        self.box.write("prometheus.yml", config)
        for rules in ("vramtrack.recording.yml", "vramtrack.alerts.yml"):
            self.box.write(rules, (CONTRIB / rules).read_text())
        self.box.write("alertmanager.yml", f"""
route: {{receiver: hook, group_by: [alertname], group_wait: 1s, group_interval: 1s, repeat_interval: 1h}}
receivers:
  - name: hook
    webhook_configs: [{{url: 'http://127.0.0.1:{hook.server_address[1]}/'}}]
""")
        self.start("prometheus-alertmanager", "--config.file=alertmanager.yml", "--storage.path=am", "--cluster.listen-address=",
                   f"--web.listen-address=127.0.0.1:{alertmanager}")
        self.start("prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", f"--web.listen-address=127.0.0.1:{prometheus}")

        def leak():
            return [a for h in Hook.heard for a in h["alerts"] if a["labels"]["alertname"] == "GpuMemoryLeak"
                    and a["status"] == "firing" and a["labels"].get("pid")]
        try:
            alert = until(leak, 120, "the webhook being called")[0]
        except AssertionError:
            print((self.box.work / "log").read_text()[-4000:])
            raise
        self.assertEqual((alert["labels"]["pid"], alert["labels"]["pattern"]), ("4242", "gradual_leak"))
        self.assertIn("leaks memory", alert["annotations"]["summary"])
        query = f"http://127.0.0.1:{prometheus}/api/v1/query?query=vramtrack:device_memory_used:ratio"
        with urllib.request.urlopen(query, timeout=10) as answer:
            result = json.load(answer)["data"]["result"]
        self.assertTrue(0 < float(result[0]["value"][1]) < 1, result)


@needs("prometheus", "openssl")
class OverTls(unittest.TestCase):
    def test_a_prometheus_scrapes_over_https(self):
        with Sandbox(BINARY) as box:
            certificate, key, token = (box.work / name for name in ("cert.pem", "key.pem", "token"))
            # Prometheus reads the machine's clock, also where the tests' clock is moved (`make test-anywhere`).
            clock = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout", key,
                            "-out", certificate, "-subj", "/CN=node7", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True, env=clock)
            token.write_text("0123456789abcdef0123456789abcdef\n")
            for secret in (key, token):
                secret.chmod(0o600)
            settings = (f"agent.tls-certificate={certificate}", f"agent.tls-key={key}", f"agent.token-file={token}")
            with Agent(box, *[a for s in settings for a in ("--set", s)]) as agent:
                port = free_port()
                box.write("prometheus.yml", f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: vramtrack
    scheme: https
    authorization: {{credentials_file: {token}}}
    tls_config: {{ca_file: {certificate}}}
    static_configs: [{{targets: ["127.0.0.1:{agent.port}"]}}]
""")
                with open(box.work / "log", "ab") as log:
                    process = subprocess.Popen(["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                                                f"--web.listen-address=127.0.0.1:{port}"], cwd=box.work, stdout=subprocess.DEVNULL, stderr=log)
                try:
                    def scraped():
                        try:
                            query = f"http://127.0.0.1:{port}/api/v1/query?query=vramtrack_device_memory_used_bytes"
                            with urllib.request.urlopen(query, timeout=10) as answer:
                                return json.load(answer)["data"]["result"]
                        except OSError:  # it has not started yet
                            return []
                    result = until(scraped, 60, "a scrape")
                    self.assertGreater(float(result[0]["value"][1]), 0)
                finally:
                    process.terminate()
                    process.wait(10)


if __name__ == "__main__":
    side_by_side.main()
