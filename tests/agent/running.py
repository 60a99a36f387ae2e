"""Runs the real agent on loopback in a sandbox, and asks it."""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from patience import patience  # noqa: E402
from sandbox import Sandbox, drm_machine  # noqa: E402, F401

DEVICE = "device_used/GPU-51e00000-0000-4000-8000-000000000000"
PROCESS_NAME = "python"


def until(condition, within_s=20.0, what="it"):
    """Waits for a condition that is true at once or soon, and returns what it gave."""
    within_s = patience(within_s)
    end = time.monotonic() + within_s
    while True:
        try:
            value = condition()
        except ConnectionRefusedError:  # its socket has a name already, and nobody listens yet
            value = None
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {within_s} s")
        time.sleep(0.02)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=patience(10))
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(patience(10))
        self.sock.connect(str(self._path))


class Agent:
    """One agent: simulated, on a free port, with runtime folder and store in the sandbox. Use it with `with`."""

    def __init__(self, box, *args, env=None, simulate=True, speed=600, listen="127.0.0.1:0"):
        self.box = box
        self.runtime = box.path / "run"
        self.runtime.mkdir(exist_ok=True)
        self.socket = self.runtime / "vramtrack" / "agent.sock"
        options = ["--scenario", "leaking_training", "--speed", str(speed)] if simulate else []
        if listen and "--listen" not in args:
            options += ["--listen", listen]
        self.command = [box.binary, "agent", *options, *args]
        self.env = {**box.environment(), "XDG_RUNTIME_DIR": str(self.runtime), **(env or {})}

    def __enter__(self):
        self.process = subprocess.Popen(self.command, cwd=self.box.work, env=self.env, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE)
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        answers = until(lambda: self.find(r"answers on") or self.process.poll() is not None, 30, "starting")
        if answers is True:
            self._reader.join()
            raise AssertionError("the agent ended: " + self.log())
        match = self.find(r"https?://([^ ;]+):(\d+)")
        self.host, self.port = (match[1].strip("[]"), int(match[2])) if match else (None, None)
        until(lambda: self.status("/healthz", unix="https://" in match[0] if match else False) == 200, 10, "the first sample")
        return self

    def __exit__(self, *_):
        self.stop()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.decode(errors="replace"))

    def log(self):
        return "".join(self.lines)

    def find(self, pattern):
        return re.search(pattern, self.log())

    def stop(self, sign=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(sign)
        code = self.process.wait(15)
        self._reader.join(5)
        self.process.stderr.close()
        return code

    def connection(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=patience(10)) if self.port else UnixConnection(self.socket)

    def ask(self, method, path, body=None, headers=None, unix=False):
        """(status, headers, body bytes)"""
        connection = UnixConnection(self.socket) if unix else self.connection()
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def status(self, path, **kwargs):
        return self.ask("GET", path, **kwargs)[0]

    def get(self, path, **kwargs):
        status, _, body = self.ask("GET", path, **kwargs)
        assert status == 200, (status, body)
        return json.loads(body)

    def raw(self, data, timeout=10):
        """What comes back for these bytes until the agent closes."""
        with socket.create_connection((self.host, self.port), timeout) as s:
            s.sendall(data)
            out = b""
            try:
                while chunk := s.recv(65536):
                    out += chunk
            except ConnectionResetError:
                pass
            return out

    def events(self, headers=None):
        """Yields (event, data) of the live stream; closes when the generator does."""
        connection = self.connection()
        try:
            connection.request("GET", "/api/v1/events", headers=headers or {})
            answer = connection.getresponse()
            assert answer.status == 200, answer.status
            event = None
            while line := answer.readline():
                if line.startswith(b"event: "):
                    event = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    yield event, json.loads(line[6:])
        finally:
            connection.close()
