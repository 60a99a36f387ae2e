"""`vramtrack fleet watch` on a real Prometheus: passes, the API, metrics, a server that goes and comes, a restart."""
import json
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from scan_data import healthy, labels, leaking, with_capacity
from servers import Prometheus, free_port, patience

BINARY = sys.argv.pop(1)


def until(condition, seconds, what):
    deadline = time.monotonic() + patience(seconds)
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


class Watch:
    def __init__(self, url, *options):
        self.port = free_port()
        self.url = f"http{'s' if '--tls-key' in options else ''}://127.0.0.1:{self.port}"
        self.context = None
        self.process = subprocess.Popen([BINARY, "fleet", "watch", "--url", url, "--listen", f"127.0.0.1:{self.port}", "--every", "1s",
                                         "--history", "5h", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def get(self, path, headers=None):
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers or {}), timeout=30, context=self.context) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as e:
            return e.code, e.read()
        except OSError:
            return 0, b""

    def fleet(self):
        status, body = self.get("/api/v1/fleet")
        return json.loads(body) if status == 200 else None

    def after_pass(self, condition, what):
        return until(lambda: (lambda f: f if f and f["passes"] > 0 and condition(f) else None)(self.fleet()), 60, what)

    def close(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate(timeout=60)

    def stop(self):
        self.process.terminate()
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out.decode(), err.decode()


@unittest.skipUnless(shutil.which("prometheus"), "not installed: prometheus (scripts/setup.sh test)")
class FleetWatch(unittest.TestCase):
    def serve(self, series):
        server = Prometheus()
        self.addCleanup(server.close)
        server.write(with_capacity(series))
        return server

    def watch(self, server, *options):
        watch = Watch(server.url, *options)
        self.addCleanup(watch.close)
        return watch

    def test_a_leak_a_new_machine_and_a_server_that_goes_and_comes(self):
        server = self.serve([(labels("node0", 0, hpc_job="7"), leaking(1, 4, 200)), (labels("node1", 0, hpc_job="7"), healthy(2))])
        watch = self.watch(server)
        fleet = watch.after_pass(lambda f: True, "the first pass")
        self.assertEqual((fleet["schema"], fleet["gpus"], fleet["leaking_gpus"], fleet["read_by"]), ("vramtrack.fleet.v1", 2, 1, "remote-read"))
        self.assertEqual([(j["job"], j["state"], j["gpus"], j["leaking_nodes"]) for j in fleet["jobs"]], [("job 7", "leaks", 2, ["node0"])])

        server.write(with_capacity([(labels("node2", 0, hpc_job="8"), leaking(3, 4, 200))]))
        fleet = watch.after_pass(lambda f: f["gpus"] == 3, "the new machine")
        self.assertEqual({j["job"] for j in fleet["jobs"] if j["state"] == "leaks"}, {"job 7", "job 8"})

        metrics = watch.get("/metrics")[1].decode()
        self.assertIn('vramtrack_verdict{UUID="GPU-node0-0",gpu="0",Hostname="node0",user="",work="job 7",slurm_job_id="7",namespace="",pod="",container="",deployment="",image="",'
                      'detector="judge",pattern="gradual_leak"} 1', metrics)
        self.assertIn('slurm_job_id="8"', metrics)
        self.assertIn("\nvramtrack_fleet_leaking_gpus 2\n", metrics)
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=metrics.encode(), capture_output=True, timeout=30)
            self.assertEqual((checked.returncode, checked.stderr), (0, b""), checked.stdout)

        self.assertEqual(watch.get("/healthz"), (200, b"ok\n"))
        server.stop()
        until(lambda: watch.get("/healthz")[0] == 503, 60, "the failure is told")
        gone = watch.fleet()
        self.assertIn("the connection failed", gone["trouble"])
        self.assertEqual(gone["leaking_gpus"], 2)  # what was known stays
        server.start()
        until(lambda: watch.get("/healthz")[0] == 200, 60, "the recovery is told")
        self.assertIsNone(watch.fleet()["trouble"])

        code, out, err = watch.stop()
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"Z job 7 leaks: 1 of 2 GPUs, .*first on node0; out of memory in")
        self.assertEqual(err.count("the connection failed"), 1, err)

        again = self.watch(server)  # nothing was stored, and nothing is lost
        fleet = again.after_pass(lambda f: True, "the first pass after a restart")
        self.assertEqual({j["job"] for j in fleet["jobs"] if j["state"] == "leaks"}, {"job 7", "job 8"})
        self.assertEqual(again.stop()[0], 0)

    def test_a_server_that_is_not_there_yet(self):
        server = self.serve([(labels("node0", 0), healthy(2))])
        server.stop()
        watch = self.watch(server)
        until(lambda: watch.get("/healthz")[0] == 503, 60, "the failure is told")
        server.start()
        watch.after_pass(lambda f: f["gpus"] == 1, "the first pass")

    def test_beyond_loopback_a_token_is_needed(self):
        refused = subprocess.run([BINARY, "fleet", "watch", "--url", "http://127.0.0.1:9", "--listen", "0.0.0.0:0"], capture_output=True, timeout=60)
        self.assertEqual(refused.returncode, 2)
        self.assertIn(b"pass --token-file", refused.stderr)
        server = self.serve([(labels("node0", 0), healthy(2))])
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("0123456789abcdef0123\n")
            file.flush()
            watch = self.watch(server, "--token-file", file.name)
            until(lambda: watch.get("/healthz")[0] in (200, 503), 60, "the server answers")
            self.assertEqual(watch.get("/api/v1/fleet")[0], 401)
            self.assertEqual(watch.get("/metrics")[0], 401)
            right = {"Authorization": "Bearer 0123456789abcdef0123"}
            until(lambda: watch.get("/api/v1/fleet", right)[0] == 200, 60, "the token opens")
            self.assertEqual(watch.get("/api/v1/fleet", {**right, "Host": "evil.example"})[0], 421)
            self.assertEqual(watch.get("/nothing", right)[0], 404)

    @unittest.skipUnless(shutil.which("openssl"), "not installed: openssl")
    def test_it_serves_https(self):
        server = self.serve([(labels("node0", 0), healthy(2))])
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = f"{folder}/cert.pem", f"{folder}/key.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout", key,
                            "-out", certificate, "-subj", "/CN=fleet", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            begin = [BINARY, "fleet", "watch", "--url", server.url, "--listen", "127.0.0.1:0", "--tls-certificate", certificate]
            refused = subprocess.run(begin, capture_output=True, timeout=60)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(b"--tls-certificate is set and --tls-key is not", refused.stderr)
            pathlib.Path(key).chmod(0o644)
            refused = subprocess.run([*begin, "--tls-key", key], capture_output=True, timeout=60)
            self.assertIn(b"can be read by every user", refused.stderr)
            pathlib.Path(key).chmod(0o600)
            watch = self.watch(server, "--tls-certificate", certificate, "--tls-key", key)
            watch.context = ssl.create_default_context(cafile=certificate)
            watch.after_pass(lambda f: f["gpus"] == 1, "the first pass")
            self.assertIn(b"vramtrack_fleet_gpus 1", watch.get("/metrics")[1])
            with socket.create_connection(("127.0.0.1", watch.port), timeout=30) as plain:
                plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                try:
                    said = plain.recv(65536)
                except ConnectionResetError:
                    said = b""
                self.assertEqual(said, b"", "without TLS there is no answer")
            code, _, said = watch.stop()
            self.assertIn(f"the fleet is at https://127.0.0.1:{watch.port}/", said)


if __name__ == "__main__":
    unittest.main()
