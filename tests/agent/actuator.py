"""Runs the real `vramtrack actuate` in a sandbox, with a double of the agent whose evidence it reads, and asks it."""
import http.client
import http.server
import json
import re
import signal
import subprocess
import threading
import time

from running import Agent, Sandbox, UnixConnection, patience, until


def view_of_a_leak(binary):
    """The View of a simulated agent with an active alert, as a fixture for the double."""
    with Sandbox(binary) as box, Agent(box, speed=1200) as agent:
        def whole():
            view = agent.get("/api/v1/view")
            return view if any(s.get("alerts") and s["key"].startswith("process_used") for s in view["series"]) else None
        return until(whole, 60, "an alert of the process")


def exact(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e9):09d}Z"


class AgentDouble(http.server.BaseHTTPRequestHandler):
    """An agent: its host, its View and the View's age are the server's attributes, as is the scenario that it simulates."""

    @staticmethod
    def serve(host, view):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), AgentDouble)
        server.host, server.asked, server.tokens, server.age_s, server.simulated = host, 0, [], 0, None
        server.view = json.loads(json.dumps(view))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def view(self):
        """That of a machine which is watched now, or was `age_s` ago."""
        last = exact(time.time() - self.server.age_s)
        return {**self.server.view, "time": last, "series": [{**s, "last": last} for s in self.server.view["series"]]}

    def do_GET(self):
        self.server.asked += 1
        self.server.tokens.append(self.headers.get("Authorization"))
        body = {"/api/v1/version": {"version": "0", "host": self.server.host, "pid": 1, "started": "2026-01-01T00:00:00Z",
                                     "simulated": self.server.simulated},
                "/api/v1/view": self.view()}.get(self.path)
        self.send_response(200 if body else 404)
        self.end_headers()
        try:
            self.wfile.write(json.dumps(body or {}).encode())
        except OSError:  # who asked was killed
            pass

    def log_message(self, *_):
        pass


class RunningActuator:
    """An actuator of one machine, `host`, whose process leaks. Use it with `with`."""
    host = "gn1"
    view = None

    def __init__(self, binary, policy, *args):
        RunningActuator.view = RunningActuator.view or view_of_a_leak(binary)
        self.binary, self.policy, self.args = binary, policy, args
        self.sandbox = Sandbox(binary)

    def __enter__(self):
        self.box = self.sandbox.__enter__()
        self.agent = AgentDouble.serve(self.host, RunningActuator.view)
        self.process_key = next(s["key"] for s in self.agent.view["series"] if s["key"].startswith("process_used") and s.get("alerts"))
        self.pid = self.process_key.split("/")[2]
        self.hosts = [f"127.0.0.1:{self.agent.server_port}", "127.0.0.1:1"]
        self.state = self.box.work / "state"
        self.env = self.box.environment()
        self.box.write("fleet.toml", self.policy)
        self.prepare()
        self.start()
        return self

    def prepare(self):
        """What the scheduler needs, before the actuator is started."""

    def series(self):
        """That of the process, in the View of the agent."""
        return next(s for s in self.agent.view["series"] if s["key"] == self.process_key)

    def end_of_the_process(self, is_memory_back):
        view = json.loads(json.dumps(self.agent.view))
        view["series"] = [s for s in view["series"] if s["key"] != self.process_key]
        if is_memory_back:
            for s in view["series"]:
                if s["key"].startswith("device_used"):
                    s["used_bytes"] = 1
        self.agent.view = view

    def start(self, *more):
        self.begun = len(self.log())
        log = open(self.box.work / "log", "ab")
        self.process = subprocess.Popen([self.binary, "actuate", "--policy", "fleet.toml", "--listen", "127.0.0.1:0", "--state", self.state, "--node",
                                         "{Hostname}", "--agents", "http://{instance}", "--set", f"actuate.agent-hosts={json.dumps(self.hosts)}",
                                         "--set", "actuate.poll-seconds=0.1", *self.args, *more],
                                        cwd=self.box.work, env=self.env, stdout=subprocess.DEVNULL, stderr=log, restore_signals=False)  # fmt: skip
        log.close()
        def listens():
            return re.search(r"listening for alerts at http://127.0.0.1:(\d+)", self.log()[self.begun:])

        until(lambda: listens() or self.process.poll() is not None, 20, "starting")
        match = listens()  # again: it may have listened and ended since the log was read
        assert match, self.log()
        self.port = int(match[1])

    def __exit__(self, *failure):
        self.end()
        if failure[0]:
            print(self.log()[-3000:], *self.record(), *self.told(), sep="\n")
        self.agent.shutdown()
        self.agent.server_close()
        self.sandbox.__exit__(*failure)

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(patience(4))

    def log(self):
        path = self.box.work / "log"
        return path.read_text() if path.exists() else ""

    def ask(self, method, path, body=None, unix=False, **headers):
        connection = UnixConnection(self.state / "actuate.sock") if unix else http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            if body is not None and not isinstance(body, (str, bytes)):
                body = json.dumps(body)
            connection.request(method, path, body, {"Content-Type": "application/json", **headers} if body is not None else headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def alert(self, status="firing", fingerprint="abcdef0123456789", **labels):
        return {"status": status, "fingerprint": fingerprint, "startsAt": "2026-01-02T03:04:05.678Z", "endsAt": "0001-01-01T00:00:00Z",
                "labels": {"alertname": "GpuMemoryLeak", "instance": f"127.0.0.1:{self.agent.server_port}", "Hostname": self.host, "pid": self.pid,
                           **labels},
                "annotations": {"summary": "GPU 0 leaks"}}  # fmt: skip

    def post(self, *alerts, **headers):
        return self.ask("POST", "/api/v1/alerts", {"version": "4", "receiver": "vramtrack", "groupKey": "{}", "truncatedAlerts": 0,
                                                   "alerts": list(alerts)}, **headers)  # fmt: skip

    def told(self):
        """What the scheduler was told, a line each."""
        raise NotImplementedError

    def record(self):
        path = self.state / "actuate.acts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def status(self):
        return json.loads(self.ask("GET", "/api/v1/status")[1])

    def run(self, *args):
        return subprocess.run([self.binary, "actuate", *args, "--state", self.state], cwd=self.box.work, env=self.env, capture_output=True, text=True,
                              timeout=30)  # fmt: skip
