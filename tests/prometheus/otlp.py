"""Metrics pushed over OTLP/HTTP by the real agent and the real `fleet watch`: to a receiver of this test, and to a real OpenTelemetry
collector (tests/prometheus/otelcol) where VRAMTRACK_OTELCOL names one or `otelcol` is installed."""
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("agent", "fleet", "cli")]
BINARY = sys.argv.pop(1)
from running import Agent, Sandbox, until  # noqa: E402
from scan_data import healthy, labels, leaking, with_capacity  # noqa: E402
from servers import Prometheus, free_port  # noqa: E402

COLLECTOR = os.environ.get("VRAMTRACK_OTELCOL") or shutil.which("otelcol")
CONFIG = """
receivers:
  otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}
exporters:
  debug: {{verbosity: detailed}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    metrics: {{receivers: [otlp], exporters: [debug]}}
"""


def environment(port, **more):
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_METRIC_EXPORT_INTERVAL": "200", **more}


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps the requests, with their headers; answers with the server's `answer`."""

    @staticmethod
    def serve(port=0):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver)
        server.taken, server.answer = [], 200
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(self.server.answer)
        self.end_headers()

    def log_message(self, *_):
        pass


def metrics_of(request):
    return {m["name"]: m for m in request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]}


def attributes_of(of):
    return {a["key"]: a["value"]["stringValue"] for a in of["attributes"]}


class Pushed(unittest.TestCase):
    def receiver(self, port=0):
        server = Receiver.serve(port)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def test_an_agent_pushes_what_a_scrape_of_it_gives_and_the_semantic_conventions(self):
        server = self.receiver()
        more = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20s3cret", "OTEL_RESOURCE_ATTRIBUTES": "k8s.cluster.name=a"}
        with Sandbox(BINARY) as box, Agent(box, env=environment(server.server_port, **more)) as agent:
            until(lambda: any("hw.gpu.memory.usage" in metrics_of(r) for _, _, r in server.taken), 30, "a push with a GPU")
            scraped = set(re.findall(r"^(vramtrack_\w+)", agent.ask("GET", "/metrics")[2].decode(), re.M))
            path, headers, request = server.taken[-1]
            self.assertEqual((path, headers["Content-Type"], headers["authorization"]), ("/v1/metrics", "application/json", "Bearer s3cret"))
            metrics = metrics_of(request)
            self.assertLessEqual({"vramtrack_device_memory_used_bytes", "vramtrack_device_info"}, set(metrics) & scraped)
            usage = metrics["hw.gpu.memory.usage"]
            self.assertEqual((usage["unit"], usage["sum"]["isMonotonic"]), ("By", False))
            point = usage["sum"]["dataPoints"][0]
            self.assertTrue(attributes_of(point)["hw.id"].startswith("GPU-"))
            self.assertGreater(point["asDouble"], 1e6)
            self.assertTrue(0 < metrics["hw.gpu.memory.utilization"]["gauge"]["dataPoints"][0]["asDouble"] <= 1)
            resource = attributes_of(request["resourceMetrics"][0]["resource"])
            self.assertEqual((resource["service.name"], resource["k8s.cluster.name"]), ("vramtrack-agent", "a"))

    def test_a_collector_that_refuses_is_told_of_once_and_its_return_too(self):
        server = self.receiver()
        server.answer = 503
        with Sandbox(BINARY) as box, Agent(box, env=environment(server.server_port)) as agent:
            until(lambda: len(server.taken) > 3, 30, "attempts")
            self.assertEqual(agent.log().count("metrics are not exported"), 1, agent.log())
            self.assertIn("answered with status 503", agent.log())
            server.answer = 200
            until(lambda: "metrics are exported to" in agent.log(), 20, "the return")

    def test_a_protocol_that_is_not_spoken_is_an_error_at_the_start(self):
        with Sandbox(BINARY) as box:
            env = {**os.environ, **environment(1, OTEL_EXPORTER_OTLP_PROTOCOL="grpc"), "XDG_RUNTIME_DIR": str(box.path)}
            done = subprocess.run([BINARY, "agent", "--scenario", "leaking_training", "--listen", "127.0.0.1:0"], capture_output=True, text=True,
                                  timeout=60, env=env)  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn("OTEL_EXPORTER_OTLP_PROTOCOL=grpc", done.stderr)

    @unittest.skipUnless(shutil.which("prometheus"), "not installed: prometheus (scripts/setup.sh test)")
    def test_a_watch_pushes_its_leaks_with_the_names_of_their_jobs(self):
        server = self.receiver()
        with fleet_watch(environment(server.server_port)):
            until(lambda: any("vramtrack_device_leak_paged" in metrics_of(r) for _, _, r in server.taken), 60, "the leak")
            request = next(r for _, _, r in reversed(server.taken) if "vramtrack_device_leak_paged" in metrics_of(r))
            metrics = metrics_of(request)
            self.assertEqual(attributes_of(metrics["vramtrack_device_leak_paged"]["gauge"]["dataPoints"][0])["slurm_job_id"], "7")
            self.assertIn("hw.gpu.memory.usage", metrics)
            self.assertTrue(metrics["vramtrack_fleet_passes_total"]["sum"]["isMonotonic"])
            self.assertEqual(attributes_of(request["resourceMetrics"][0]["resource"])["service.name"], "vramtrack-fleet")

    @unittest.skipUnless(COLLECTOR, "no collector: build tests/prometheus/otelcol and set VRAMTRACK_OTELCOL")
    def test_a_real_collector_takes_both(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="vramtrack-otel-"))
        self.addCleanup(shutil.rmtree, folder)
        port = free_port()
        (folder / "config.yaml").write_text(CONFIG.format(port=port))
        log = open(folder / "log", "wb")
        collector = subprocess.Popen([COLLECTOR, "--config", f"file:{folder}/config.yaml"], stdout=log, stderr=log)
        self.addCleanup(collector.wait)
        self.addCleanup(collector.kill)
        self.addCleanup(log.close)
        seen = lambda: (folder / "log").read_text(errors="replace")  # noqa: E731
        until(lambda: "Everything is ready" in seen() or collector.poll() is not None, 30, "the collector")
        self.assertIsNone(collector.poll(), seen())
        with Sandbox(BINARY) as box, Agent(box, env=environment(port)) as agent:
            until(lambda: "Name: hw.gpu.memory.usage" in seen(), 30, "the agent's metrics")
            self.assertNotIn("not exported", agent.log())
        for part in ("service.name: Str(vramtrack-agent)", "Name: hw.gpu.memory.limit", "Unit: By", "hw.id: Str(GPU-", "DataType: Sum",
                     "AggregationTemporality: Cumulative", "Name: vramtrack_device_memory_used_bytes", "DataType: Gauge"):
            self.assertIn(part, seen())
        if not shutil.which("prometheus"):
            return
        with fleet_watch(environment(port)):
            until(lambda: "Name: vramtrack_device_leak_paged" in seen(), 60, "the watch's metrics")
        self.assertIn("slurm_job_id: Str(7)", seen())


class fleet_watch:
    """A watch of one leaking job."""

    def __init__(self, env):
        self.env = env

    def __enter__(self):
        self.server = Prometheus()
        self.server.write(with_capacity([(labels("node0", 0, hpc_job="7"), leaking(1, 4, 200)), (labels("node1", 0, hpc_job="8"), healthy(2))]))
        self.process = subprocess.Popen([BINARY, "fleet", "watch", "--url", self.server.url, "--listen", f"127.0.0.1:{free_port()}", "--every", "1s",
                                         "--history", "5h"], env={**os.environ, **self.env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.server.close()


if __name__ == "__main__":
    unittest.main(verbosity=1)
