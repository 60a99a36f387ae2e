"""HTTPS between act_once and what answers it, which writes down each request with its answer.

What answers is a function (method, path, headers, body) -> (status, headers, body): the double, or a real API server. OSError of it ends
the connection without an answer, as that of a server that is down. Hooks let something happen just before a request arrives, or after an
answer was given and before it is sent.
"""
import http.client
import json
import re
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Of an answer's headers, those that a client could go by.
HEADERS = ("Content-Type", "Retry-After", "Transfer-Encoding", "Warning")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_one(self):
        recorder = self.server.recorder
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with recorder.lock:
            recorder.fire(lambda hook: hook[0] == self.command and self.path.endswith(hook[1]))
            try:
                status, headers, answer = recorder.backend(self.command, self.path, self.headers, body)
            except (OSError, http.client.HTTPException):
                self.close_connection = True
                return
            recorder.exchanges.append({
                "request": {"method": self.command, "path": self.path, "type": self.headers.get("Content-Type"), "body": json.loads(body or "null")},
                "answer": {"status": status, "headers": {n: headers[n] for n in HEADERS if headers.get(n)}, "body": json.loads(answer)}})
            recorder.fire(lambda hook: hook[0] == status)
        is_chunked = headers.get("Transfer-Encoding") == "chunked"
        self.send_response(status)
        for name in HEADERS:
            if headers.get(name):
                self.send_header(name, headers[name])
        if is_chunked:
            answer = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (answer[i:i + 1000] for i in range(0, len(answer), 1000))) + b"0\r\n\r\n"
        else:
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PATCH = handle_one


class Recorder:
    def __init__(self, folder, backend):
        self.backend, self.exchanges, self.hooks, self.lock = backend, [], [], threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.recorder = self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.crt", folder / "server.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def before(self, method, end_of_path, do, times=1):
        self.hooks += [(method, end_of_path, do)] * times

    def after(self, status, do):
        self.hooks.append((status, None, do))

    def fire(self, concerns):
        hook = next((h for h in self.hooks if concerns(h)), None)
        if hook:
            self.hooks.remove(hook)
            hook[2]()


def forward_to(port, context):
    """The backend that is the API server on this port."""
    def ask(method, path, headers, body):
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
        try:
            connection.request(method, path, body or None, {n: v for n, v in headers.items() if n not in ("Host", "Connection", "Content-Length")})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, dict(answer.getheaders()), text
        finally:
            connection.close()
    return ask


def pruned(exchanges, replacements):
    """Without what differs from run to run: UIDs, versions, times, who manages which field, and the given words. No exchange holds a token.
    Containers are left out, too: a kubelet would report them, and there is none."""
    seen = {}

    def number(kind, value, form):
        return seen.setdefault((kind, value), form.format(1 + sum(k == kind for k, _ in seen)))

    def walk(value, key=None):
        if isinstance(value, dict):
            return {k: walk(v, k) for k, v in value.items() if k not in ("managedFields", "containerStatuses")}
        if isinstance(value, list):
            return [walk(v) for v in value]
        if not isinstance(value, str):
            return value
        if key == "resourceVersion":
            return number("version", value, "{}")
        for old, new in replacements.items():
            value = value.replace(old, new)
        value = UID.sub(lambda found: number("uid", found[0], "00000000-0000-4000-8000-{:012}"), value)
        return TIME.sub("2026-01-01T00:00:00Z", value)
    return walk(exchanges)


def shape(value):
    """What it is made of: names and kinds, not values. Elements of a list of one form count once."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in sorted(value.items())}
    if isinstance(value, list):
        forms = []
        for form in map(shape, value):
            if form not in forms:
                forms.append(form)
        return forms
    return type(value).__name__


def outline(exchange):
    """What must agree of two exchanges: the form of the request and of the answer, and every word of a Status except UIDs. Not whether the
    body was chunked, which depends on its length."""
    request, answer = exchange["request"], exchange["answer"]
    body = answer["body"]
    return {"request": f"{request['method']} {request['path']} {request['type']}", "sent": shape(request["body"]), "status": answer["status"],
            "headers": {n: v for n, v in answer["headers"].items() if n != "Transfer-Encoding"}, "answered": json.loads(UID.sub("UID", json.dumps(body))) if body.get("kind") == "Status" else shape(body)}


def difference(ours, theirs):
    """What the exchanges of one side have that the other's lack; empty: nothing. Order and repetitions do not count: how often something is
    asked again depends on time."""
    for exchanges, others, words in ((ours, theirs, "not among those recorded"), (theirs, ours, "recorded, but no longer seen")):
        known = list(map(outline, others))
        for exchange in exchanges:
            if outline(exchange) not in known:
                near = next((k for k in known if (k["request"], k["status"]) == (outline(exchange)["request"], exchange["answer"]["status"])), {})
                differing = {k: (v, near[k]) for k, v in outline(exchange).items() if near and v != near[k]} or outline(exchange)
                return f"{outline(exchange)['request']} -> {exchange['answer']['status']} is {words}: {json.dumps(differing)}"
    return ""
