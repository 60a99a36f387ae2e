"""Real servers with synthetic fleets, for tests: Prometheus, VictoriaMetrics and Thanos, and a proxy between them and their readers."""
import bisect
import http.server
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from patience import patience  # noqa: E402


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([0x80 | n & 0x7F])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def snappy(data):
    """A valid snappy block of literals alone: nothing is compressed."""
    out = [varint(len(data))]
    for at in range(0, len(data), 65536):
        piece = data[at:at + 65536]
        out.append(bytes([61 << 2]) + struct.pack("<H", len(piece) - 1) + piece)
    return b"".join(out)


def series_message(labels, samples):
    message = b"".join(field(1, field(1, k.encode()) + field(2, v.encode())) for k, v in sorted(labels.items()))
    return message + b"".join(field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varint(ms)) for ms, value in samples)


class Server:
    """Started on a free port of the loopback, with data in its own folder."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vramtrack-fleet-"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + patience(30)
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(self.url + self.ready, timeout=patience(5)).read()
                return
            except (OSError, urllib.error.URLError):
                if self.process.poll() is not None:
                    raise RuntimeError(f"{self.command()[0]} ended with {self.process.returncode}")
                time.sleep(0.05)
        raise RuntimeError("the server did not become ready")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def post(self, path, body, headers):
        urllib.request.urlopen(urllib.request.Request(self.url + path, body, headers), timeout=60).read()

    def write(self, series):
        """[(labels, [(ms, value), ...]), ...] by remote-write; an hour at a time, as Prometheus takes them in order."""
        if not series:
            return
        series = [s for s in series if s[1]]
        first = min(samples[0][0] for _, samples in series)
        last = max(samples[-1][0] for _, samples in series)
        for begin in range(first, last + 1, 1_800_000):
            body = b""
            for labels, samples in series:
                part = samples[bisect.bisect_left(samples, (begin,)):bisect.bisect_left(samples, (begin + 1_800_000,))]
                if part:
                    body += field(1, series_message(labels, part))
            if body:
                self.post("/api/v1/write", snappy(body), {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf",
                                                          "X-Prometheus-Remote-Write-Version": "0.1.0"})
        self.flush()

    def flush(self):
        pass


class Prometheus(Server):
    program = "prometheus"
    ready = "/-/ready"

    def __init__(self, **external_labels):
        self.external_labels = external_labels
        super().__init__()

    def command(self):
        config = self.folder / "prometheus.yml"
        # Samples out of order are what agents that were cut off send later.
        config.write_text(f"global: {{external_labels: {json.dumps(self.external_labels)}}}\nstorage: {{tsdb: {{out_of_order_time_window: 7d}}}}\n")
        return ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}", "--web.enable-remote-write-receiver"]


class VictoriaMetrics(Server):
    program = "victoria-metrics"
    ready = "/health"

    def command(self):
        return ["victoria-metrics", f"-httpListenAddr=127.0.0.1:{self.port}", f"-storageDataPath={self.folder / 'data'}",
                "-retentionPeriod=12", "-search.latencyOffset=1s"]

    def flush(self):
        urllib.request.urlopen(self.url + "/internal/force_flush", timeout=30).read()


class Sidecar(Server):
    """Thanos with one Prometheus, without an object store."""
    ready = "/-/ready"

    def __init__(self, prometheus):
        self.prometheus, self.grpc_port = prometheus, free_port()
        super().__init__()

    def command(self):
        return [Thanos.program, "sidecar", f"--prometheus.url={self.prometheus.url}", f"--tsdb.path={self.prometheus.folder / 'data'}",
                f"--grpc-address=127.0.0.1:{self.grpc_port}", f"--http-address=127.0.0.1:{self.port}"]


class Thanos(Server):
    """A querier over two Prometheus that scrape the same and differ by the label `replica`."""
    #: Not in Debian 12: VRAMTRACK_THANOS names one.
    program = os.environ.get("VRAMTRACK_THANOS") or "thanos"
    ready = "/-/ready"

    def __init__(self):
        self.replicas = [Prometheus(cluster="test", replica=name) for name in "ab"]
        self.sidecars = [Sidecar(replica) for replica in self.replicas]
        super().__init__()

    def command(self):
        return [self.program, "query", *[f"--endpoint=127.0.0.1:{s.grpc_port}" for s in self.sidecars], "--query.replica-label=replica",
                f"--grpc-address=127.0.0.1:{free_port()}", f"--http-address=127.0.0.1:{self.port}"]

    def start(self):
        super().start()
        deadline = time.monotonic() + patience(30)
        while len(self.stores()) < len(self.sidecars):  # it looks for them every few seconds
            if time.monotonic() > deadline:
                raise RuntimeError("the querier did not find its sidecars")
            time.sleep(0.1)

    def stores(self):
        """The sidecars that it reaches."""
        kinds = json.loads(urllib.request.urlopen(self.url + "/api/v1/stores", timeout=patience(10)).read())["data"]
        return [store for stores in kinds.values() for store in stores if not store["lastError"]]

    def close(self):
        super().close()
        for server in [*self.sidecars, *self.replicas]:
            server.close()


class Proxy:
    """Passes requests on. `decide(path, body, headers)` may return (status, text) to answer itself, "half" for half of the
    answer, "close" to close the connection, or None."""

    def __init__(self, target, decide):
        self.requests = []
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                proxy.requests.append((self.path, body))
                action = decide(self.path, body, self.headers)
                if action == "close":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if isinstance(action, tuple):
                    return self.answer(action[0], "text/plain", action[1].encode())
                request = urllib.request.Request(target.url + self.path, body or None, dict(self.headers))
                try:
                    with urllib.request.urlopen(request, timeout=60) as answer:
                        status, kind, data = answer.status, answer.headers.get("Content-Type", ""), answer.read()
                except urllib.error.HTTPError as e:
                    status, kind, data = e.code, e.headers.get("Content-Type", ""), e.read()
                except OSError:
                    return self.answer(502, "text/plain", b"the server is away")
                if action == "half":
                    self.answer(status, kind, data[:len(data) // 2], promised=len(data))
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.answer(status, kind, data)

            def answer(self, status, kind, data, promised=None):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data) if promised is None else promised))
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()

            do_GET = do_POST = handle_one

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
