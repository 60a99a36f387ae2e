"""The agent from outside: what it answers, whom it refuses, how it starts, reloads and ends."""
import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

from running import DEVICE, Agent, Sandbox, drm_machine, patience, until
import side_by_side

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")
OPENAPI = pathlib.Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
JSON = {"Content-Type": "application/json"}
RESERVED_CONNECTIONS, RESERVED_STREAMS = 8, 4  # for root and the agent's user, who runs these tests
TOKEN = "0123456789abcdef0123456789abcdef"


class AgentTest(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def agent(self, *args, **kwargs):
        agent = Agent(self.box, *args, **kwargs).__enter__()
        self.addCleanup(agent.__exit__)
        return agent

    def token_file(self, mode=0o600, text=TOKEN + "\n"):
        path = self.box.work / "token"
        path.write_text(text)
        path.chmod(mode)
        return f"agent.token-file={path}"

    def refused(self, *args, env=None):
        result = subprocess.run([self.box.binary, "agent", "--scenario", "leaking_training", *args], cwd=self.box.work, timeout=30,
                                env={**self.box.environment(), "XDG_RUNTIME_DIR": str(self.box.path), **(env or {})}, capture_output=True)
        self.assertEqual(result.returncode, 2, result.stderr)
        return result.stderr.decode()

    def alert(self, agent):
        return until(lambda: agent.get("/api/v1/alerts")["alerts"], 60, "an alert")[0]


class Answers(AgentTest):
    def test_policies_are_switched_off_and_on(self):
        self.box.write("policy.toml", '[act]\nenabled = true\n[[policy]]\nname = "leaks"\nsteps = [{ do = "notify" }]\n')
        agent = self.agent("--config", str(self.box.work / "policy.toml"))
        for method, is_off in (("POST", True), ("DELETE", False)):
            self.assertIs(agent.get("/api/v1/acts")["off"], not is_off)
            status, _, body = agent.ask(method, "/api/v1/acts/off", *(("{}", JSON) if is_off else ()))
            self.assertEqual(status, 200, body)
            self.assertIs(agent.get("/api/v1/acts")["off"], is_off)

    def test_every_documented_path_answers(self):
        agent = self.agent()
        until(lambda: agent.get("/api/v1/series")["series"], 20, "a flush of the store")
        paths = re.findall(r"^  (/\S*):$", OPENAPI.read_text(), re.M)
        self.assertGreater(len(paths), 8)
        for path in re.findall(r"^  (/\S*):\n    get:$", OPENAPI.read_text(), re.M):
            if path == "/api/v1/events" or "{id}" in path:  # asked in tests of their own
                continue
            query = {"history": "?series=" + urllib.parse.quote(DEVICE), "gauges": "?device=GPU-0"}.get(path.rpartition("/")[2], "")
            self.assertEqual(agent.status(path + query), 200, path)
        for wrong in ("/api/v1", "/api/v1/gpus"):
            status, _, body = agent.ask("GET", wrong)
            self.assertEqual(status, 404)
            message = json.loads(body)["error"]["message"]
            self.assertEqual([path for path in paths if path not in message], [], "an error lists what there is")

    def test_view_status_and_metrics_agree(self):
        agent = self.agent()
        view = agent.get("/api/v1/view")
        device = view["series"][0]
        self.assertEqual(device["key"], DEVICE)
        self.assertEqual(view["schema"], "vramtrack.view.v1")
        status = agent.get("/api/v1/status")
        self.assertEqual(status["simulated"], "leaking_training")
        self.assertEqual(status["devices"][0]["key"], DEVICE)
        self.assertGreater(status["own"]["resident_bytes"], 1 << 20)
        text = agent.ask("GET", "/metrics")[2].decode()
        self.assertIn('vramtrack_device_memory_total_bytes{UUID="GPU-51e00000', text)
        self.assertNotIn("train.py", text)

    @unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
    def test_health_is_in_the_view_the_status_and_the_metrics(self):
        self.box.write("nvml.txt", "gpu 0 uuid=GPU-well total=80G used=1G temp=61 throttle=0x4 ecc=1 corrected=3 uncorrected=0 remapped=0\n"
                                   "gpu 1 uuid=GPU-ill total=80G used=1G temp=93 throttle=0x48 ecc=1 corrected=3 uncorrected=2\n"
                                   "gpu 2 uuid=GPU-silent total=80G used=1G\n"
                                   "xid gpu=1 code=79 at=0\n")
        agent = self.agent("--source", "nvml", "--interval", "0.2s", "--set", "sources.nvml-library=" + FAKE, simulate=False,
                           env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        view = until(lambda: agent.get("/api/v1/view"), 20, "a view")
        well, ill, silent = (next(s for s in view["series"] if s["key"] == "device_used/" + name) for name in ("GPU-well", "GPU-ill", "GPU-silent"))
        self.assertEqual(well["health"]["temperature_celsius"], 61)
        self.assertEqual(well["health"]["throttle"], ["power_cap"])
        self.assertEqual(well["condition"]["level"], "healthy")
        self.assertIsNone(well["last_xid"])
        self.assertEqual(ill["condition"]["level"], "failing")
        self.assertEqual(ill["last_xid"]["code"], 79)
        self.assertEqual([p["level"] for p in ill["condition"]["problems"]], ["failing", "failing", "degraded"])
        self.assertIsNone(silent["health"]["temperature_celsius"])
        self.assertIsNone(silent["health"]["ecc_enabled"])
        self.assertEqual([d["health"] for d in agent.get("/api/v1/status")["devices"]], ["healthy", "failing", "unknown"])
        text = agent.ask("GET", "/metrics")[2].decode()
        self.assertRegex(text, r'vramtrack_gpu_temperature_celsius\{UUID="GPU-ill",.*\} 93\n')
        self.assertRegex(text, r'vramtrack_gpu_throttled\{UUID="GPU-ill",.*reason="thermal_hardware"\} 1\n')
        self.assertRegex(text, r'vramtrack_gpu_xid_last\{UUID="GPU-ill",.*\} 79\n')
        self.assertNotIn('temperature_celsius{UUID="GPU-silent"', text)

    def test_a_leak_appears_in_a_stream_that_was_open_before(self):
        agent = self.agent(speed=1200)
        seen = []
        for event, data in agent.events():
            seen.append(event)
            if event == "alerts" and data["alerts"]:
                break
            self.assertLess(len(seen), 3000)
        self.assertEqual(seen[:2], ["view", "alerts"])
        self.assertIn("tick", seen)
        for event, data in agent.events():
            if event == "alerts":
                self.assertTrue(data["alerts"])
                break

    def test_history_has_what_was_sampled(self):
        agent = self.agent(speed=1200)
        until(lambda: agent.get("/api/v1/view")["series"][0]["samples"] > 300, 30, "300 samples")
        query = "/api/v1/history?series=" + urllib.parse.quote(DEVICE)
        # The simulated process starts over after its end: fixed bounds for both requests.
        to = urllib.parse.quote(agent.get("/api/v1/view")["time"])
        raw = until(lambda: (h := agent.get(query + f"&points=500&resolution=raw&from=-1200&to={to}"))["series"][0]["t"] and h, 20, "a flush")
        column = raw["series"][0]
        self.assertEqual(raw["resolution"], "raw")
        self.assertEqual({len(column[k]) for k in ("t", "min", "mean", "max")}, {len(column["t"])})
        self.assertEqual(column["t"], sorted(column["t"]))
        self.assertTrue(all(lo <= m <= hi for lo, m, hi in zip(column["min"], column["mean"], column["max"])))
        minute = agent.get(query + f"&resolution=minute&from=-1200&to={to}")["series"][0]
        self.assertGreater(len(minute["t"]), 5)
        few = agent.get(query + f"&points=3&from=-1200&to={to}")["series"][0]
        self.assertLessEqual(len(few["t"]), 3)
        for wrong in ("", "?series=x", query[15:] + "&points=1", query[15:] + "&from=tomorrow", query[15:] + "&from=5",
                      query[15:] + "&resolution=second", query[15:] + "&resolution=raw&from=-90000"):
            status, _, body = agent.ask("GET", "/api/v1/history" + wrong)
            self.assertEqual(status, 400, (wrong, body))
            self.assertTrue(json.loads(body)["error"]["message"])

    def test_one_leak_is_acknowledged_once(self):
        agent = self.agent(speed=1200)

        def pair():
            listed = {a["id"]: a for a in agent.get("/api/v1/alerts?limit=1000")["alerts"]}
            return next(((listed[a["told_with"]], a) for a in listed.values() if a["told_with"]), None)

        device, process = until(pair, 60, "an alert of the process beside that of its device")
        self.assertIsNone(device["pid"])
        self.assertIsNotNone(process["pid"])
        status, _, body = agent.ask("POST", f"/api/v1/alerts/{device['id']}/acknowledge", json.dumps({"by": "ada"}), JSON)
        self.assertEqual(status, 200, body)
        listed = {a["id"]: a for a in agent.get("/api/v1/alerts?limit=1000")["alerts"]}
        self.assertEqual(listed[process["id"]]["acknowledged"]["by"], "ada")

    def test_an_acknowledgement_outlives_the_agent(self):
        store = ["--set", f"store.path={self.box.work}/kept.db"]
        agent = self.agent(*store, speed=1200)
        alert = self.alert(agent)
        path = f"/api/v1/alerts/{alert['id']}/acknowledge"
        status, _, body = agent.ask("POST", path, json.dumps({"by": "ada", "note": "known"}), JSON)
        self.assertEqual(status, 200, body)
        agent.stop()
        agent = self.agent(*store)
        again = {a["id"]: a for a in agent.get("/api/v1/alerts?limit=1000")["alerts"]}[alert["id"]]
        self.assertEqual((again["acknowledged"]["by"], again["acknowledged"]["note"]), ("ada", "known"))
        self.assertEqual(agent.ask("DELETE", path)[0], 204)
        self.assertIsNone({a["id"]: a for a in agent.get("/api/v1/alerts?limit=1000")["alerts"]}[alert["id"]]["acknowledged"])
        for bad, expected in (("[]", 400), ('{"by": 5}', 400), (json.dumps({"note": "x" * 600}), 400)):
            self.assertEqual(agent.ask("POST", path, bad, JSON)[0], expected)
        self.assertEqual(agent.ask("POST", path.replace(alert["id"], "0" * 16), "{}", JSON)[0], 404)
        self.assertEqual(agent.ask("DELETE", path.replace(alert["id"], "0" * 16))[0], 404)

    def test_settings_are_shown_and_secrets_are_not(self):
        secrets = {"notify.webhook": "http://127.0.0.1:9/hunter2", "notify.slack": "http://127.0.0.1:9/hunter2", "notify.exec": '["true", "hunter2"]'}
        agent = self.agent("--set", self.token_file(), *[a for k, v in secrets.items() for a in ("--set", f"{k}={v}")])
        self.assertNotIn("hunter2", json.dumps(agent.get("/api/v1/config", unix=True)))
        settings = {s["name"]: s for s in agent.get("/api/v1/config", unix=True)["settings"]}
        self.assertEqual(settings["watch.interval-seconds"]["value"], 1.0)
        self.assertEqual((settings["agent.token-file"]["value"], settings["agent.token-file"]["hidden"]), (None, True))
        self.assertEqual(settings["agent.listen"]["origin"], "command line")


class Marks(AgentTest):
    def mark(self, agent, *words, shell=False):
        command = [self.box.binary, "mark", *words]
        if shell:  # which does not become the command itself
            command = ["sh", "-c", '"$@"; exit $?', "sh", *command]
        return subprocess.run(command, cwd=self.box.work, env=agent.env, capture_output=True, timeout=patience(30))

    def test_a_simulation_takes_them(self):
        agent = self.agent()
        pid = until(lambda: [s["pid"] for s in agent.get("/api/v1/view")["series"] if s["pid"] and not s["ended"]], 20, "a process")[0]
        result = self.mark(agent, "--pid", str(pid), "step=1200")
        self.assertEqual((result.returncode, result.stderr), (0, b""))

    @unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
    def test_without_a_pid_it_is_the_nearest_program_that_holds_memory(self):
        def agent_of(*pids):
            lines = [f"process gpu=0 pid={pid} list=C used=1G" for pid in pids]
            self.box.write("nvml.txt", "\n".join(["gpu 0 uuid=GPU-0 name=Fake total=80G used=1G", *lines, ""]))
            return Agent(self.box, "--source", "nvml", "--interval", "0.2s", "--set", "sources.nvml-library=" + FAKE,
                         "--set", f"store.path={self.box.work}/{'-'.join(map(str, pids))}.db", simulate=False,
                         env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})

        def marked(agent, *pids):
            return until(lambda: {s["pid"] for s in agent.get("/api/v1/view")["series"] if s["pid"]} >= set(pids), 20, "the processes")

        beside = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
        for process in beside:
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
        with agent_of(os.getpid(), beside[0].pid) as agent:
            marked(agent, os.getpid())
            for shell in (False, True):
                result = self.mark(agent, "step=1200", shell=shell)
                self.assertEqual((result.returncode, result.stderr), (0, b""))
        with agent_of(beside[0].pid) as agent:
            marked(agent, beside[0].pid)
            self.assertEqual(self.mark(agent, "step=1200").returncode, 0, "the only one of the session")
        with agent_of(*(process.pid for process in beside)) as agent:
            marked(agent, *(process.pid for process in beside))
            result = self.mark(agent, "step=1200")
            self.assertEqual(result.returncode, 2)
            self.assertIn(b"several programs here hold memory on a GPU", result.stderr)
            self.assertIn(b"--pid", result.stderr)
            stranger = self.mark(agent, "--pid", "1", "step=1200")
            self.assertIn(b"you have no process with that pid", stranger.stderr)


class Silences(AgentTest):
    def run_command(self, agent, *args):
        return subprocess.run([self.box.binary, "silence", *args], env=agent.env, cwd=self.box.work, capture_output=True, timeout=30)

    def heard(self):
        path = self.box.work / "heard"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def test_a_silenced_alert_is_shown_and_notified_when_the_silence_ends(self):
        store = ["--set", f"store.path={self.box.work}/kept.db",
                 "--set", f'notify.exec=["sh", "-c", "cat >>{self.box.work}/heard"]']
        agent = self.agent(*store, speed=240)
        made = self.run_command(agent, "add", "--gpu", "0", "--for", "200h", "--comment", "driver update", "--json")
        self.assertEqual(made.returncode, 0, made.stderr)
        silence = json.loads(made.stdout)
        self.assertEqual((silence["gpu"], silence["comment"]), ("0", "driver update"))
        self.assertTrue(silence["by"])
        silenced = lambda: [a for a in agent.get("/api/v1/alerts")["alerts"] if a["ended"] == "standing" and a["silenced"]]  # noqa: E731
        self.assertEqual(until(silenced, 60, "a silenced alert")[0]["silenced"]["id"], silence["id"])
        status = agent.get("/api/v1/status")
        self.assertEqual(status["alerts_silenced"], status["alerts_standing"])
        self.assertRegex(agent.ask("GET", "/metrics")[2].decode(), r"(?m)^vramtrack_alerts_silenced\{.*\} 1$")
        listed = self.run_command(agent, "list").stdout.decode()
        self.assertIn(silence["id"], listed)
        self.assertIn("driver update", listed)
        self.assertEqual(self.heard(), [])

        agent.stop()  # it outlives the agent
        agent = self.agent(*store, speed=240)
        until(lambda: [a for a in agent.get("/api/v1/alerts")["alerts"] if a["ended"] == "standing" and a["silenced"]], 60, "a silenced alert")
        self.assertEqual(self.heard(), [])
        ended = self.run_command(agent, "end", silence["id"])
        self.assertEqual(ended.returncode, 0, ended.stderr)
        message = until(self.heard, 30, "the notification")[0]
        self.assertEqual(message["event"], "raised")
        self.assertEqual(agent.get("/api/v1/silences")["silences"], [])
        again = self.run_command(agent, "end", silence["id"])
        self.assertEqual(again.returncode, 2)
        self.assertIn(b"no silence has the id", again.stderr)
        self.assertEqual(self.run_command(agent, "list").stdout, b"no silence\n")

    def test_what_the_api_refuses(self):
        agent = self.agent("--set", 'notify.silenced-gpus=["7"]')
        (fixed,) = agent.get("/api/v1/silences")["silences"]
        self.assertEqual((fixed["gpu"], fixed["ends"], fixed["state"]), ("7", None, "active"))
        path = "/api/v1/silences"
        for body, expected in (("[]", 400), ("{}", 400), ('{"gpu": "0"}', 400), ('{"gpu": "0", "ends": "2001-01-01T00:00:00Z"}', 400),
                               ('{"command": "(", "ends": "2100-01-01T00:00:00Z"}', 400)):
            self.assertEqual(agent.ask("POST", path, body, JSON)[0], expected, body)
        self.assertEqual(agent.ask("DELETE", path)[0], 405)
        self.assertEqual(agent.status(path + "/0123abcd"), 405)
        self.assertEqual(agent.ask("DELETE", path + "/0123abcd")[0], 404)
        self.assertEqual(agent.ask("DELETE", path + "/notify.silenced-gpus")[0], 400)
        self.assertEqual(self.run_command(agent, "add", "--for", "1h").returncode, 2)
        self.assertIn(b"required", self.run_command(agent, "add", "--gpu", "0").stderr)
        agent.stop()
        self.assertIn(b"none is running on this machine", self.run_command(agent, "list").stderr)


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class Tls(AgentTest):
    def pair(self, name="node"):
        certificate, key = self.box.work / f"{name}.pem", self.box.work / f"{name}.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout", key,
                        "-out", certificate, "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        key.chmod(0o600)
        return certificate, key

    def settings(self, certificate, key):
        return ["--set", f"agent.tls-certificate={certificate}", "--set", f"agent.tls-key={key}"]

    def https(self, agent, certificate, path, headers=None):
        context = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", agent.port, timeout=10, context=context)
        try:
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def test_it_is_scraped_over_tls(self):
        certificate, key = self.pair()
        agent = self.agent(*self.settings(certificate, key), "--set", self.token_file())
        self.assertTrue(agent.find(r"answers on https://"))
        status, text = self.https(agent, certificate, "/metrics", {"Authorization": "Bearer " + TOKEN})
        self.assertEqual(status, 200)
        self.assertIn(b"vramtrack_device_memory_used_bytes", text)
        self.assertEqual(self.https(agent, certificate, "/metrics")[0], 401, "the token is still asked for")
        self.assertEqual(self.https(agent, certificate, "/")[0], 200)
        self.assertFalse(agent.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 200"), "no plain HTTP")
        with self.assertRaises(ssl.SSLError):
            self.https(agent, self.pair("other")[0], "/healthz")
        # Somebody who never ends the handshake keeps one place, for five seconds.
        with socket.create_connection((agent.host, agent.port), 20) as slow:
            slow.sendall(b"\x16\x03\x01")
            self.assertEqual(self.https(agent, certificate, "/healthz")[0], 200)
            self.assertEqual(slow.recv(1), b"")

    def test_a_reload_takes_the_renewed_certificate(self):
        certificate, key = self.pair()
        agent = self.agent(*self.settings(certificate, key))
        old = certificate.read_text()
        self.pair()
        self.assertNotEqual(certificate.read_text(), old)
        agent.process.send_signal(signal.SIGHUP)

        def renewed():
            try:
                return self.https(agent, certificate, "/healthz")[0] == 200
            except ssl.SSLError:
                return False
        until(renewed, 10, "the new certificate")
        certificate.write_text("broken")
        agent.process.send_signal(signal.SIGHUP)
        until(lambda: agent.find(r"not reloaded; the old settings stay in force: .*tls-certificate.*no certificate in PEM"), 10, "the refusal")

    def test_a_bad_pair_is_refused_with_what_to_do(self):
        certificate, key = self.pair()
        other = self.pair("other")[1]
        encrypted = self.box.work / "encrypted.key"
        subprocess.run(["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", encrypted], check=True, capture_output=True)
        encrypted.chmod(0o600)
        text = self.box.work / "text.pem"
        text.write_text("hello\n")
        text.chmod(0o600)
        fifo = self.box.work / "fifo"
        os.mkfifo(fifo)
        readable = self.box.work / "readable.key"
        readable.write_text(key.read_text())
        readable.chmod(0o644)
        for certificate_, key_, expected in ((certificate, other, "is not the key of the certificate"), (certificate, "/none", "no such file"),
                                             ("/none", key, "no such file"), (text, key, "no certificate in PEM"),
                                             (certificate, text, "no private key in PEM"), (certificate, encrypted, "is encrypted"),
                                             (certificate, readable, "chmod 600"), (fifo, key, "not a regular file"),
                                             (certificate, "", "agent.tls-key is not; set both")):
            error = self.refused(*self.settings(certificate_, key_))
            self.assertIn(expected, error)
            self.assertIn("agent.tls-", error)

    def test_beyond_loopback_it_still_needs_a_token(self):
        self.assertIn("agent.token-file", self.refused("--listen", "0.0.0.0:0", *self.settings(*self.pair())))


class Refuses(AgentTest):
    def test_other_hosts_and_origins(self):
        agent = self.agent("--set", "agent.allowed-hosts=gpu.example")
        for host, expected in (("evil.example", 421), ("127.0.0.1.evil.example", 421), ("gpu.example:80", 200), ("localhost:1", 200),
                               ("[::1]:9474", 200), ("", 421)):
            self.assertEqual(agent.status("/api/v1/view", headers={"Host": host}), expected, host)
        own = f"127.0.0.1:{agent.port}"
        for origin, expected in ((f"http://{own}", 200), ("http://evil.example", 403), ("null", 403), (f"http://{own}.evil.example", 403)):
            self.assertEqual(agent.status("/api/v1/view", headers={"Origin": origin, "Host": own}), expected, origin)
        headers = agent.ask("GET", "/api/v1/view")[1]
        self.assertFalse([h for h in headers if h.lower().startswith("access-control")])

    def test_what_is_no_request_of_ours(self):
        agent = self.agent()
        path = "/api/v1/alerts/0123456789abcdef/acknowledge"
        for method, target, body, headers, expected in (
                ("POST", path, "{}", {"Content-Type": "text/plain"}, 415),
                ("POST", path, "{}", {"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415),
                ("POST", "/api/v1/view", "{}", JSON, 405),
                ("POST", "/", "{}", JSON, 404),
                ("PUT", path, "{}", JSON, 405),
                ("OPTIONS", "/api/v1/view", None, {"Origin": f"http://127.0.0.1:{agent.port}"}, 405),
                ("GET", "/api/v1/view", "body", {}, 400),
                ("GET", "/" + "x" * 300, None, {}, 414)):
            self.assertEqual(agent.ask(method, target, body, headers)[0], expected, (method, target))
        self.assertIn(b" 411 ", agent.raw(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode()))
        self.assertIn(b" 400 ", agent.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n"))
        self.assertIn(b" 400 ", agent.raw(b"nonsense\r\n\r\n"))
        self.assertEqual(agent.status("/healthz"), 200)

    def test_too_much(self):
        agent = self.agent()
        head = b"POST /api/v1/alerts/0123456789abcdef/acknowledge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self.assertIn(b" 413 ", agent.raw(head + b"Content-Length: 10000000\r\n\r\n" + b"x" * 200000))
        self.assertIn(b" 400 ", agent.raw(head + b"Content-Length: 99999999999999999999\r\n\r\n"))
        self.assertIn(b" 431 ", agent.raw(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000))
        self.assertIn(b" 431 ", agent.raw(b"GET / HTTP/1.1\r\nX: " + b"y" * 100000))
        ranges = b"Range: bytes=" + b",".join(b"0-1" for _ in range(2000)) + b"\r\n"
        self.assertIn(b" 200 ", agent.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + ranges + b"\r\n"))
        self.assertEqual(agent.status("/healthz"), 200)

    def test_no_path_of_the_disk(self):
        agent = self.agent()
        for path in ("/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/assets/../../etc/passwd",
                     "/etc/passwd", "/%00", "/api/v1/../../etc/passwd", "/assets/%2e%2e/%2e%2e/VERSION"):
            answer = agent.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            self.assertRegex(answer, rb"^HTTP/1.1 40[04] ", path)
            self.assertNotIn(b"root:", answer)

    def test_the_token(self):
        agent = self.agent("--set", self.token_file())
        bearer = {"Authorization": "Bearer " + TOKEN}
        for path in ("/api/v1/view", "/api/v1/status", "/api/v1/alerts", "/api/v1/config", "/api/v1/events", "/metrics", "/no/such"):
            for headers in ({}, {"Authorization": "Bearer " + TOKEN[:-1] + "x"}, {"Authorization": "Bearer " + TOKEN + "x"},
                            {"Authorization": "Bearer "}, {"Authorization": TOKEN}, {"Authorization": "Basic " + TOKEN}):
                self.assertEqual(agent.status(path, headers=headers), 401, (path, headers))
        self.assertEqual(agent.status("/api/v1/view", headers=bearer), 200)
        self.assertEqual(agent.status("/metrics", headers=bearer), 200)
        self.assertEqual(agent.status("/"), 200, "the page asks for the token")
        self.assertEqual(agent.status("/healthz"), 200)
        self.assertEqual(agent.status("/api/v1/view", unix=True), 200, "the socket needs none")

    def test_to_start_where_others_could_listen_in(self):
        error = self.refused("--listen", "0.0.0.0:0")
        self.assertIn("agent.token-file", error)
        self.refused("--listen", "[::]:0")
        self.assertIn("chmod 600", self.refused("--listen", "0.0.0.0:0", "--set", self.token_file(mode=0o644)))
        self.assertIn("16 to 512", self.refused("--set", self.token_file(text="short\n")))
        self.assertIn("cannot read", self.refused("--set", "agent.token-file=none"))
        self.assertIn("is not an address", self.refused("--listen", "everywhere"))
        agent = self.agent("--listen", "0.0.0.0:0", "--set", self.token_file())
        self.assertEqual(agent.status("/api/v1/view"), 401)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to ask as somebody else")
    def test_command_lines_are_for_their_owners(self):
        agent = self.agent("--set", f"agent.socket={self.box.path}/sock")
        self.box.path.chmod(0o755)
        self.assertIn("train.py", json.dumps(agent.get("/api/v1/view")))
        ask = ("import http.client,sys; c=http.client.HTTPConnection('127.0.0.1',int(sys.argv[1])); c.request(sys.argv[2],sys.argv[3],"
               "sys.argv[4] or None,{'Content-Type':'application/json'} if sys.argv[4] else {}); r=c.getresponse(); print(r.status, r.read().decode())")

        def as_nobody(method, path, body=""):
            return subprocess.run(["/usr/bin/env", "python3", "-c", ask, str(agent.port), method, path, body], user=65534, group=65534,
                                  extra_groups=[], capture_output=True, timeout=20, cwd="/").stdout.decode()

        seen = as_nobody("GET", "/api/v1/view")
        if not seen:
            self.skipTest("python3 cannot run as another user here")
        self.assertTrue(seen.startswith("200"), seen)
        self.assertNotIn("train.py", seen)
        self.assertIn('"command_hidden":true', seen)
        self.assertNotIn("train.py", as_nobody("GET", "/api/v1/status"))
        self.assertTrue(as_nobody("POST", "/api/v1/alerts/0123456789abcdef/acknowledge", "{}").startswith("403"))

    def test_a_slow_loris_holds_nobody_up(self):
        agent = self.agent()
        began = time.monotonic()
        slow = [socket.create_connection((agent.host, agent.port)) for _ in range(60)]
        try:
            for s in slow:
                s.sendall(b"GET / HTTP/1.1\r\n")
            held = list(slow)
            while held:
                self.assertLess(time.monotonic() - began, patience(15), f"{len(held)} of {len(slow)} still held")
                asked = time.monotonic()
                self.assertEqual(agent.status("/healthz"), 200)
                self.assertLess(time.monotonic() - asked, patience(2))
                for s in held:
                    with contextlib.suppress(OSError):
                        s.sendall(b"X: y\r\n")  # a little more, for ever
                for s in select.select(held, [], [], 0.2)[0]:
                    with contextlib.suppress(ConnectionResetError):
                        if s.recv(4096):
                            continue
                    held.remove(s)
        finally:
            for s in slow:
                s.close()

    def test_more_connections_than_it_takes(self):
        agent = self.agent("--set", "agent.max-streams=2")
        idle = [socket.create_connection((agent.host, agent.port)) for _ in range(66 + RESERVED_CONNECTIONS)]
        try:
            for s in idle:
                s.sendall(b"GET / HTTP/1.1\r\n")
            ask = b"GET /api/v1/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            answer = until(lambda: (a := agent.raw(ask)).startswith(b"HTTP/1.1 503 ") and a, 10, "an answer at once")
            head, body = answer.split(b"\r\n\r\n")
            self.assertIn(b"Content-Length: %d\r\n" % len(body), head + b"\r\n")
            self.assertIn(b"Retry-After: 1", head)
            json.loads(body)
            self.assertEqual(agent.status("/healthz"), 200, "it needs no place")
            self.assertEqual(agent.status("/metrics"), 200, "it has places of its own")
            self.assertEqual(agent.status("/api/v1/version", unix=True), 200, "the Unix socket has places of its own")
        finally:
            for s in idle:
                s.close()
        until(lambda: agent.raw(ask).startswith(b"HTTP/1.1 200"), 15)

    def test_streams_are_counted(self):
        agent = self.agent("--set", "agent.max-streams=2")
        open_streams = [agent.events() for _ in range(2 + RESERVED_STREAMS)]
        for stream in open_streams:
            next(stream)
        status, headers, _ = agent.ask("GET", "/api/v1/events")
        self.assertEqual((status, headers["Retry-After"]), (503, "1"))
        open_streams.pop().close()
        until(lambda: agent.get("/api/v1/status")["own"]["clients"] == 1 + RESERVED_STREAMS, 10, "the place being given back")
        again = agent.events()
        self.assertEqual(next(again)[0], "view")
        again.close()

    def test_a_stream_that_is_not_read_is_dropped_and_costs_nobody_anything(self):
        agent = self.agent("--set", "agent.max-streams=2", speed=3000)
        deaf = socket.socket(socket.AF_UNIX)
        deaf.connect(str(agent.socket))
        try:
            deaf.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            clients = lambda: agent.get("/api/v1/status")["own"]["clients"]
            until(lambda: clients() == 1, 10, "the stream")
            listener = agent.events()
            first = next(listener)[1]["time"]
            # It reads as fast as it is sent to, whatever else goes on here: one that falls behind would be dropped instead.
            reader = threading.Thread(target=lambda: [None for _ in listener], daemon=True)
            reader.start()
            # What it was sent fills the socket, and then the agent waits for it no longer than for any other answer.
            # The end of the connection is seen without a read: a count of clients may be from before the second one came.
            ended = select.poll()
            ended.register(deaf, 0)
            self.assertTrue(ended.poll(60_000), "it was not dropped")
            self.assertTrue(reader.is_alive(), "the one that listens was dropped")
            deaf.settimeout(30)
            end = time.monotonic() + 60
            while deaf.recv(1 << 16):  # to the end: it is the one that was dropped
                self.assertLess(time.monotonic(), end, "it is sent to still")
            self.assertGreater(agent.get("/api/v1/view")["time"], first, "sampling went on")
        finally:
            deaf.close()


class Lives(AgentTest):
    def test_the_supervisor_is_told(self):
        path = str(self.box.path / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.bind(path)
            supervisor.settimeout(20)
            agent = self.agent(env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"})
            told = []

            def hear(state):
                while state not in told:
                    told.extend(supervisor.recv(4096).decode().splitlines())

            hear("READY=1")
            hear("WATCHDOG=1")
            agent.process.send_signal(signal.SIGHUP)
            hear("RELOADING=1")
            self.assertTrue([t for t in told if t.startswith("MONOTONIC_USEC=")] or supervisor.recv(4096))
            hear("READY=1")
            self.assertEqual(agent.stop(), 0, agent.log())
            hear("STOPPING=1")

    def test_reload(self):
        config = self.box.work / "config.toml"
        config.write_text("[metrics]\nenabled = true\n")
        agent = self.agent("--config", str(config))
        self.assertEqual(agent.status("/metrics"), 200)
        config.write_text("[metrics]\nenabled = false\n[detection]\nleak-prior = 0.2\n")
        agent.process.send_signal(signal.SIGHUP)
        until(lambda: agent.status("/metrics") == 404, 10, "the reload")
        until(lambda: agent.find(r"after a restart: detection.leak-prior"), 5, "the note")
        config.write_text("[metrics]\nenabled = maybe\n")
        agent.process.send_signal(signal.SIGHUP)
        until(lambda: agent.find(r"not reloaded; the old settings stay in force: .*config.toml:2"), 10, "the refusal")
        self.assertEqual(agent.status("/healthz"), 200)

    def test_without_a_place_for_its_socket_it_says_so(self):
        agent = Agent(self.box, env={"XDG_RUNTIME_DIR": ""})
        if os.geteuid() == 0:
            self.skipTest("root has a place of its own")
        with agent:
            until(lambda: agent.find(r"no Unix socket: .*agent.socket"), 5, "the notice")

    def test_a_reload_never_opens_what_a_token_guards(self):
        config, token = self.box.work / "config.toml", self.token_file().removeprefix("agent.token-file=")
        config.write_text(f'[agent]\nlisten = "0.0.0.0:0"\ntoken-file = "{token}"\n')
        agent = self.agent("--config", str(config), listen=None)
        self.assertEqual(agent.status("/api/v1/view"), 401)
        for text in ('[agent]\nlisten = "127.0.0.1:0"\n', "[agent]\n"):
            config.write_text(text)
            before = agent.log().count("not reloaded")
            agent.process.send_signal(signal.SIGHUP)
            until(lambda: agent.log().count("not reloaded") > before, 10, "the refusal")
            self.assertEqual(agent.status("/api/v1/view"), 401)

    def test_a_new_token_ends_the_streams_of_the_old(self):
        agent = self.agent("--set", self.token_file())
        stream = agent.events({"Authorization": f"Bearer {TOKEN}"})
        next(stream)
        self.token_file(text="another-token-of-many-letters\n")
        agent.process.send_signal(signal.SIGHUP)
        for _ in stream:  # until the agent closes it
            pass
        self.assertEqual(agent.status("/api/v1/view", headers={"Authorization": f"Bearer {TOKEN}"}), 401)

    def test_a_log_that_nobody_reads_does_not_stop_the_sampling(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        agent = Agent(self.box)
        process = subprocess.Popen(agent.command, cwd=self.box.work, env=agent.env, stdout=subprocess.DEVNULL, stderr=writer)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(writer)
        polls = lambda: agent.get("/api/v1/status", unix=True)["own"]["polls"]
        until(lambda: agent.socket.exists() and agent.status("/healthz", unix=True) == 200, 30, "the first sample")
        for n in range(400):  # each reload is a line: more than the pipe holds
            process.send_signal(signal.SIGHUP)
            seen = polls()
            until(lambda: polls() > seen, 10, f"a poll after {n} reloads")

    def test_ends_in_order_with_streams_open(self):
        agent = self.agent()
        stream = agent.events()
        next(stream)
        began = time.monotonic()
        self.assertEqual(agent.stop(), 0)
        self.assertLess(time.monotonic() - began, patience(5))
        self.assertFalse(agent.socket.exists())
        stream.close()

    def test_one_agent_a_socket_and_a_killed_one_leaves_none_in_the_way(self):
        agent = self.agent()
        self.assertIn("answers on", self.refused("--listen", "", "--set", f"agent.socket={agent.socket}"))
        self.assertEqual(agent.stop(signal.SIGKILL), -signal.SIGKILL)
        self.assertTrue(agent.socket.exists())
        self.assertEqual(self.agent().status("/healthz", unix=True), 200)

    def test_a_port_that_is_taken(self):
        agent = self.agent()
        self.assertIn("cannot listen on", self.refused("--listen", f"127.0.0.1:{agent.port}", "--set", "agent.socket=none"))

    def test_without_a_gpu(self):
        result = self.box.run("agent", "--source", "drm", "--set", "sources.sys-root=no-sys")
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"--or-simulate", result.stderr)

    def test_watch_says_that_an_agent_runs(self):
        agent = self.agent()
        result = subprocess.run([self.box.binary, "watch", "--once", *drm_machine()], cwd=self.box.work, env=agent.env, capture_output=True, timeout=30)
        self.assertIn(f"pid {agent.process.pid}", result.stderr.decode())
        self.assertEqual(result.returncode, 0)

    def test_alerts_are_notified(self):
        told = self.box.work / "told"
        program = self.box.work / "tell.sh"
        program.write_text(f"#!/bin/sh\ncat >>{told}\necho >>{told}\n")
        program.chmod(0o755)
        agent = self.agent("--set", f'notify.exec=["{program}"]', speed=1200)
        self.alert(agent)
        until(lambda: told.exists() and "gradual leak" in told.read_text(), 20, "the program being run")
        self.assertIn("leaking_training", told.read_text(), "that it is simulated is said")

    def test_only_the_socket(self):
        agent = self.agent("--listen", "")
        self.assertIsNone(agent.port)
        self.assertEqual(agent.status("/api/v1/view", unix=True), 200)

    def test_without_a_store_there_is_no_past(self):
        agent = self.agent("--no-record")
        status, _, body = agent.ask("GET", "/api/v1/history?series=" + urllib.parse.quote(DEVICE))
        self.assertEqual((status, json.loads(body)["error"]["code"]), (404, "no_store"))
        self.assertFalse(agent.get("/api/v1/status")["recording"])


if __name__ == "__main__":
    side_by_side.main()
