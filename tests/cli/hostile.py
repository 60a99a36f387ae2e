"""Every output of vramtrack, driven with hostile names: what comes out is valid UTF-8 without control characters.

    python3 tests/cli/hostile.py build/release/vramtrack

A command or a form of output that this file does not drive fails test_every_output_is_driven.
"""
import contextlib
import gzip
import http.server
import json
import os
import pathlib
import pickle
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "agent"))
from recorder import leaking  # noqa: E402
from running import Agent, until  # noqa: E402
from sandbox import FIXTURES, TESTS, Sandbox  # noqa: E402
from trace_writer import leaking_trace  # noqa: E402

BINARY = sys.argv.pop(1)

# ESC and BEL, DEL, C1 (as UTF-8), controls that reverse the direction, line separators, and bytes that are not UTF-8.
HOSTILE_TEXT = "py\x1b[31m\x07\x7f\u009b2J\u0085\u202egpj.exe\u2066x\u2069\u200f\u061c\u2028y"
HOSTILE = HOSTILE_TEXT.encode() + b"\xff\xfe\xc0\xaf\xed\xa0\x80z"
BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def strings_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for k, v in value.items():
            yield k
            yield from strings_of(v)
    elif isinstance(value, list):
        for v in value:
            yield from strings_of(v)


class Hostile(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        self.driven = set()

    def clean(self, command, output, data, is_json=False):
        """`output` of `command` is clean; counts as driven."""
        self.driven.add((command, output))
        with self.subTest(command=command, output=output):
            text = data.decode()  # raises if it is not UTF-8
            self.assertNotRegex(text, BAD)
            self.assertTrue(text.strip(), "the output is empty")
            if is_json:
                documents = [json.loads(text)] if text.count("\n") <= 1 else [json.loads(line) for line in text.splitlines() if line]
                for one in strings_of(documents):
                    self.assertNotRegex(one, BAD)

    def run_clean(self, output, *args, is_json=False, code=(0, 1), file=None):
        result = self.box.run(*args)
        command = " ".join(args[:2]) if args[0] in ("fleet", "snapshot", "trace", "oom", "policy") else args[0]
        self.assertIn(result.returncode, code, result.stderr)
        if result.stderr:
            self.clean(command, "stderr", result.stderr)
        self.clean(command, output, (self.box.work / file).read_bytes() if file else result.stdout, is_json)

    def logs(self):
        """A leak that ends in a crash; device, process, unit and file have hostile names."""
        gpu = [b"timestamp, index, uuid, name, memory.used [MiB], memory.total [MiB]"]
        apps = [b"timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]"]
        for n in range(360):
            stamp = f"2026/01/05 {8 + n // 360:02}:{n // 6 % 60:02}:{n % 6 * 10:02}.000".encode()
            used = 4000 + n * 50
            gpu.append(stamp + b", 0, GPU-" + HOSTILE + b", " + HOSTILE + b", %d MiB, 24576 MiB" % (used + 420))
            apps.append(stamp + b", GPU-" + HOSTILE + b", 4242, " + HOSTILE + b", %d MiB" % used)
        folder = os.fsencode(self.box.work)
        names = [b"gpu" + HOSTILE_TEXT.encode() + b".csv", b"apps" + HOSTILE_TEXT.encode() + b".csv"]
        for name, rows in zip(names, (gpu, apps)):
            with open(os.path.join(folder, name), "wb") as f:
                f.write(b"\n".join(rows) + b"\n")
        return [os.fsdecode(n) for n in names]

    def machine(self):
        """Options for a machine whose processes have hostile names, and hang in a function of the kernel with one."""
        proc = self.box.path / "proc"
        shutil.copytree(FIXTURES / "proc", proc, symlinks=True)
        for process in proc.iterdir():
            if (process / "cmdline").exists():
                (process / "cmdline").write_bytes(HOSTILE + b"\0--arg=" + HOSTILE + b"\0")
                stat = (process / "stat").read_bytes()
                (process / "stat").write_bytes(re.sub(rb"\(.*\) \w", lambda _: b"(" + HOSTILE[:15] + b") D", stat))
                (process / "wchan").write_bytes(HOSTILE)
        return ["--source", "drm", "--set", f"sources.sys-root={FIXTURES}/sys", "--set", f"sources.proc-root={proc}"]

    def scenario(self):
        text = self.box.run("simulate", "--list").stdout
        self.clean("simulate", "list", text)
        escaped = HOSTILE_TEXT.encode("unicode_escape").decode().replace("\\x", "\\u00")
        (self.box.work / "hostile.toml").write_text(
            f'name = "hostile"\nperiod_s = 5\nduration_s = "60min"\nstart = 2026-01-05T08:00:00Z\n'
            f'[[device]]\nname = "{escaped}"\ncapacity_bytes = "8GiB"\n[[process]]\nname = "{escaped}"\ncommand = "{escaped}"\nuser = "ada"\nbusy = 0.9\nlifetime_s = "50min"\n'
            f'[[process.shape]]\nkind = "linear"\nrate_bytes_per_s = "140MiB/min"\n')
        return "hostile.toml"

    def drive_recordings(self):
        logs = self.logs()
        self.run_clean("text", "analyze", *logs)
        self.run_clean("text", "analyze", "--explain", *logs)
        self.run_clean("text", "analyze", *[word for log in logs for word in ("--history", log)], *logs)
        self.run_clean("json", "analyze", "--format", "json", *logs, is_json=True)
        self.run_clean("text", "replay", *logs)
        self.run_clean("text", "top", "--once", "--replay", *logs)
        self.run_clean("json", "replay", "--json", *logs, is_json=True)
        for form in ("text", "md", "json", "html"):
            self.run_clean(form, "report", "--format", form, *logs, is_json=form == "json")
        # The errors of every reader name the file and show its contents.
        (self.box.work / "bad.csv").write_bytes(b"timestamp, name, memory.used [MiB]\n" + HOSTILE + b", x, y\n" * 40)
        for command in ("analyze", "replay", "report"):
            self.clean(command, "stderr", self.box.run(command, "bad.csv").stderr)
            self.clean(command, "stderr", self.box.run(command, "no" + HOSTILE_TEXT).stderr)

    def drive_snapshots(self):
        stack = [{"filename": HOSTILE_TEXT + ".py", "line": 7, "name": HOSTILE_TEXT}]
        recorder = leaking(20, oom=10**9)
        snapshot = pickle.loads(pickle.dumps(recorder.snapshot()))
        for one in snapshot["segments"]:
            for block in one["blocks"]:
                if block.get("frames"):
                    block["frames"] = stack
        for trace in snapshot["device_traces"]:
            for event in trace:
                if event.get("frames"):
                    event["frames"] = stack
                event.update(user_metadata=HOSTILE_TEXT, compile_context=HOSTILE_TEXT, internal_metadata=HOSTILE_TEXT)
            allocated = next(event for event in trace if event["action"] == "alloc")
            trace.append(dict(allocated, action="annotate"))
            trace.append(dict(allocated, action=HOSTILE_TEXT))
        snapshot["host_segments"] = [dict(one, device=-1) for one in pickle.loads(pickle.dumps(snapshot["segments"]))]
        snapshot["host_traces"] = [dict(event) for event in snapshot["device_traces"][0] if event["action"] != "oom"]
        name = "snap" + HOSTILE_TEXT + ".pickle"
        (self.box.work / name).write_bytes(pickle.dumps(snapshot, protocol=4))
        for command in ("summary", "leaks", "timeline", "oom"):
            files = [name, name] if command == "leaks" else [name]
            self.run_clean("text", "snapshot", command, *files)
            self.run_clean("json", "snapshot", command, *files, "--json", is_json=True)
            self.run_clean("text", "snapshot", command, "--host", *files)
        self.run_clean("html", "snapshot", "flamegraph", "--output", "f.html", name, file="f.html")
        self.run_clean("html", "snapshot", "page", "--output", "f.html", name, file="f.html")
        for form in ("speedscope", "folded", "chrome", "csv"):
            self.run_clean(form, "snapshot", "export", "--format", form, "--output", "out", name, file="out")
        self.box.run("snapshot", "export", "--format", "pprof", "--output", "out.pb.gz", name)
        packed = gzip.decompress((self.box.work / "out.pb.gz").read_bytes())
        self.driven.add(("snapshot export", "pprof"))

    def drive_traces(self):
        trace = leaking_trace(HOSTILE_TEXT + ".py", HOSTILE_TEXT)
        trace.mark(HOSTILE_TEXT)
        trace.put("device", trace.text(HOSTILE_TEXT), address=1 << 34, size=trace.text(HOSTILE_TEXT))
        name = "trace" + HOSTILE_TEXT
        (self.box.work / name).write_bytes(trace.bytes(ended=False))
        moments = ("--from", "epoch#2", "--to", "epoch#5")
        for command, extra in (("report", ()), ("diff", moments)):
            self.run_clean("text", "trace", command, *extra, name)
            self.run_clean("json", "trace", command, *extra, "--format", "json", name, is_json=True)
        self.run_clean("text", "trace", "top", name)
        live = self.box.run("trace", "live", "--output", "l.trace", "--pid", HOSTILE_TEXT)  # its report is the same as that of "trace report"
        self.clean("trace live", "stderr", live.stderr)
        self.driven.add(("trace live", "text"))
        self.run_clean("html", "trace", "flamegraph", *moments, "--output", "f.html", name, file="f.html")
        self.run_clean("html", "trace", "page", "--output", "f.html", name, file="f.html")
        for form in ("speedscope", "folded", "chrome", "csv"):
            self.run_clean(form, "trace", "export", "--format", form, "--output", "out", name, file="out")
        self.box.run("trace", "export", "--format", "pprof", "--output", "out.pb.gz", name)
        packed = gzip.decompress((self.box.work / "out.pb.gz").read_bytes())
        self.driven.add(("trace export", "pprof"))
        for part in (HOSTILE_TEXT.encode(), b"\x1b[31m", b"\xc2\x9b", b"\xe2\x80\xae"):
            self.assertNotIn(part, packed, "pprof")
        trace.put("failed", trace.stack((HOSTILE_TEXT + ".py", 7, HOSTILE_TEXT)), a=trace.now_us, size=1 << 30, call=1)
        trace.holder(HOSTILE_TEXT, 77, 1 << 33, HOSTILE_TEXT)
        (self.box.work / name).write_bytes(trace.bytes(ended=False))
        with open(os.path.join(os.fsencode(self.box.work), b"crash.log"), "wb") as f:
            f.write(b"CUDA out of memory. Tried to allocate " + HOSTILE + b"\nOut of memory: Killed process 7 (" + HOSTILE + b")\n")
        self.run_clean("text", "explain", "crash.log")
        self.run_clean("json", "explain", "--format", "json", "crash.log", is_json=True)
        program = f"check{HOSTILE_TEXT}.py"
        (self.box.work / program).write_text(f"import torch\nseen = []\nfor batch in loader:\n    torch.nn.functional.l1_loss(model(batch)).backward()\n    seen.append((model(batch), '{HOSTILE_TEXT}'))\n")
        for names in ([program], [program, "none" + program]):
            self.run_clean("text", "check", *names, code=(1, 2))
            self.run_clean("json", "check", "--format", "json", *names, is_json=True, code=(1, 2))
        self.run_clean("text", "oom", "show", name)
        self.run_clean("json", "oom", "show", "--format", "json", name, is_json=True)

    def drive_run(self):
        program = self.box.work / ("python" + HOSTILE_TEXT)
        program.symlink_to(sys.executable)
        mark = "import ctypes; ctypes.CDLL(None).vramtrack_probe_mark(b'begun')"
        result = self.box.run("run", "--", f"./{program.name}", "-c", mark, HOSTILE_TEXT)
        self.assertIn(b"recorded into vramtrack.python", result.stderr)
        self.clean("run", "text", result.stderr)
        self.clean("control", "text", self.box.run("control", HOSTILE_TEXT).stderr)

    def drive_attach(self):
        runtime = tempfile.mkdtemp(prefix="va-")  # keeps the path of the socket short
        self.addCleanup(shutil.rmtree, runtime, True)
        environment = self.box.environment({"XDG_RUNTIME_DIR": runtime, "PYTHONDONTWRITEBYTECODE": "1", "HOSTILE": HOSTILE_TEXT})
        modules = TESTS.parent / "python/vramtrack"
        with subprocess.Popen([sys.executable, TESTS / "cli/attached.py", modules, "hostile"], env=environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as program:  # fmt: skip
            self.assertEqual(program.stdout.readline(), b"ready\n")
            result = self.box.run("attach", str(program.pid), "--duration", "0.1s", "--kept", env={"XDG_RUNTIME_DIR": runtime})
        self.assertIn(b"of caches (dict, 1 items) in", result.stdout, result.stderr)
        self.clean("attach", "text", result.stdout + result.stderr)

    def drive_gate(self):
        program = [sys.executable, "-c", "import sys; sys.stderr.write('')", HOSTILE_TEXT]
        result = self.box.run("test", "--junit", "out.xml", "--", *program)
        self.clean("test", "stderr", result.stderr + b"\n")
        self.driven.add(("test", "text"))
        self.clean("test", "junit", (self.box.work / "out.xml").read_bytes())

    # A process stalls after three seconds without progress. A busy machine may miss a poll, which starts the count again.
    STALL = ["--set", "watch.interval-seconds=0.5", "--set", "stall.minutes=0.05", "--set", "stall.min-memory-mb=0"]

    def drive_stalls(self, machine):
        for form in ("text", "json"):
            args = ["watch", "--no-record", "--duration", "8s", "--every", "1s", *self.STALL, *machine, *(["--json"] if form == "json" else [])]
            said = next((r for r in (self.box.run(*args) for _ in range(4)) if b"STALLED" in r.stdout or b'"stall"' in r.stdout), None)
            self.assertIsNotNone(said, "no process stalls")
            self.assertIn(b"sleeps uninterruptibly", said.stdout)
            self.clean("watch", form, said.stdout, is_json=form == "json")

    def drive_live(self):
        machine = self.machine()
        self.drive_stalls(machine)
        self.run_clean("text", "watch", "--once", "--no-record", *machine)
        self.run_clean("json", "watch", "--once", "--no-record", "--json", *machine, is_json=True)
        self.run_clean("text", "holders", *machine)
        self.run_clean("json", "holders", "--format", "json", *machine, is_json=True)
        self.run_clean("text", "reclaim", "--dry-run", *machine)
        self.run_clean("text", "wait", "--empty", "--timeout", "1ms", *machine)
        self.run_clean("json", "wait", "--empty", "--timeout", "1ms", "--json", *machine, is_json=True)
        self.box.write("model/config.json", json.dumps({"_name_or_path": HOSTILE_TEXT, "model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64,
                                                         "num_attention_heads": 1, "vocab_size": 9}))
        self.run_clean("text", "fit", "model", "--memory", "1GiB")
        self.run_clean("json", "fit", "model", "--memory", "1GiB", "--json", is_json=True)
        self.run_clean("text", "doctor", *machine[2:])
        self.drive_health(machine)
        self.run_clean("text", "config", "show", *machine[2:])
        self.drive_terminal("watch", "--no-record", "--duration", "3s", *machine)
        self.drive_terminal("top", "--no-record", *machine, keys=b"q")
        with Agent(self.box, "--no-record", "--set", "metrics.per-process=true", *self.STALL, *machine, simulate=False) as agent:
            self.drive_silences(agent)
            until(lambda: b"sleeps uninterruptibly" in agent.ask("GET", "/api/v1/alerts", unix=True)[2], 60, "a stalled process")
            for path in ("/api/v1/version", "/api/v1/status", "/api/v1/view", "/api/v1/series", "/api/v1/alerts", "/api/v1/config",
                         "/api/v1/silences"):
                self.clean("agent", path, agent.ask("GET", path, unix=True)[2], is_json=True)
            with self.hostile_run(agent.runtime):
                status, _, body = agent.ask("GET", f"/api/v1/sites?pid={os.getpid()}", unix=True)
                self.assertEqual(status, 200, body)
                self.clean("agent", "/api/v1/sites", body, is_json=True)
            metrics = agent.ask("GET", "/metrics", unix=True)[2]
            self.assertIn(b"vramtrack_process_memory_used_bytes", metrics)
            self.assertIn(b"vramtrack_process_stalled_seconds", metrics)
            self.clean("agent", "/metrics", metrics)
            if shutil.which("promtool"):
                checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True, timeout=30)
                self.assertEqual((checked.returncode, checked.stderr), (0, b""), checked.stdout)
            if shutil.which("prometheus"):
                self.scrape(agent)
            self.clean("agent", "404", agent.ask("GET", "/x" + "%1b%5b31m", unix=True)[2], is_json=True)
        self.clean("agent", "stderr", agent.log().encode())

    def drive_health(self, machine):
        """A kernel log in which a process has a hostile name, and processes that are left over with such names."""
        name = "log" + HOSTILE_TEXT
        with open(os.path.join(os.fsencode(self.box.work), name.encode()), "wb") as f:
            for code in (31, 79, 154):
                f.write(b"NVRM: Xid (PCI:0000:65:00): %d, pid=7, name=" % code + HOSTILE.replace(b"\n", b"") + b", (" + HOSTILE + b")\n")
        for form in ("text", "json", "npd"):
            self.run_clean(form, "doctor", "--health", "--expect-empty", "--format", form, "--kernel-log", name, *machine[2:],
                           is_json=form == "json", code=(1,))
            self.run_clean(form, "doctor", "--health", "--format", form, "--kernel-log", "no" + HOSTILE_TEXT, *machine[2:],
                           is_json=form == "json", code=(2,))

    @contextlib.contextmanager
    def hostile_run(self, runtime):
        """A run of this process's that answers one request with a report in which each name is hostile."""
        frame = {"function": HOSTILE_TEXT, "file": HOSTILE_TEXT, "line": 1, "python": True}
        report = {"schema": "vramtrack.trace_report.v1", "program": HOSTILE_TEXT, "verdict": {"because": HOSTILE_TEXT, "notes": [HOSTILE_TEXT]},
                  "sites": [{"leak": True, "site": HOSTILE_TEXT, "call": HOSTILE_TEXT, "live_bytes": 1, "frames": [frame]}]}
        folder = runtime / "vramtrack-runs" / str(os.getpid())
        for made in (folder.parent, folder):
            made.mkdir(mode=0o700, exist_ok=True)
        (folder / f"ring.{os.getpid()}").touch()
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(folder / "control"))
            listening.listen(1)

            def answer():
                connection, _ = listening.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(b"ok " + json.dumps(report, ensure_ascii=False).encode() + b"\n")
            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            yield
            thread.join(30)
        shutil.rmtree(folder)

    def drive_programs(self):
        """For a process whose names are hostile, and whose user is what a log says."""
        scenario = self.scenario()
        store = str(self.box.work / "programs.db")
        with Agent(self.box, "--scenario", scenario, "--speed", "3600", "--set", f"store.path={store}", simulate=False):
            until(lambda: os.path.exists(store) and b"program.v1" in self.box.run("programs", "--store", store, "--json").stdout,
                  60, "a remembered run")
        self.run_clean("text", "programs", "--store", store)
        self.run_clean("json", "programs", "--store", store, "--json", is_json=True)
        self.clean("programs", "stderr", self.box.run("programs", "--store", store, "--forget", HOSTILE_TEXT).stderr)

    def drive_policies(self):
        """A policy whose every text is hostile, and one process of hostile names that leaks."""
        scenario = self.scenario()
        quoted = json.dumps(HOSTILE_TEXT)
        self.box.write("policy.toml", f"[act]\nenabled = true\n[[policy]]\nname = {quoted}\nwhen.user = [\"*\", {quoted}]\n"
                                      f"steps = [{{ do = \"notify\", text = {quoted} }}, {{ do = \"run\", program = [{quoted}] }}]\n")
        store = str(self.box.work / "policies.db")
        with Agent(self.box, "--config", str(self.box.work / "policy.toml"), "--scenario", scenario, "--speed", "3600", "--set",
                   f"store.path={store}", simulate=False) as agent:
            until(lambda: agent.get("/api/v1/acts")["acts"], 60, "an act")
            self.clean("agent", "/api/v1/acts", agent.ask("GET", "/api/v1/acts", unix=True)[2], is_json=True)
            self.clean("agent", "stderr", agent.log().encode())
        self.run_clean("text", "policy", "check", "--config", "policy.toml")
        self.run_clean("text", "policy", "explain", "--config", "policy.toml")
        self.run_clean("text", "policy", "test", "--config", "policy.toml", store)
        self.run_clean("json", "policy", "test", "--json", "--config", "policy.toml", store, is_json=True)

    def drive_silences(self, agent):
        def run(*args):
            return subprocess.run([self.box.binary, "silence", *args], env=agent.env, capture_output=True, timeout=30)

        words = ("add", "--user", HOSTILE_TEXT, "--for", "1h", "--comment", HOSTILE_TEXT, "--by", HOSTILE_TEXT)
        self.clean("silence add", "text", run(*words).stdout)
        self.clean("silence add", "json", run(*words, "--json").stdout, is_json=True)
        self.clean("silence list", "text", run("list").stdout)
        self.clean("silence list", "json", run("list", "--json").stdout, is_json=True)
        self.clean("silence end", "text", run("end", HOSTILE_TEXT).stderr + b"\n")
        marked = subprocess.run([self.box.binary, "mark", "--pid", "1", HOSTILE_TEXT[:40]], env=agent.env, capture_output=True, timeout=30)
        self.clean("mark", "text", marked.stderr + b"\n")

    def scrape(self, agent):
        """A real Prometheus takes the whole scrape."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.box.write("prometheus.yml", "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: hostile\n    static_configs:\n"
                                         f"      - targets: ['{agent.host}:{agent.port}']\n")
        with open(self.box.work / "prometheus.log", "wb") as log:
            prometheus = subprocess.Popen(["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                                           f"--web.listen-address=127.0.0.1:{port}"], cwd=self.box.work, stdout=log, stderr=log)
        try:
            def known():
                try:
                    query = f"http://127.0.0.1:{port}/api/v1/query?query="
                    with urllib.request.urlopen(query + "vramtrack_process_memory_used_bytes", timeout=10) as answer:
                        return json.load(answer)["data"]["result"]
                except OSError:
                    return None
            self.assertIn("py?[31m", until(known, 60, "a scrape")[0]["metric"]["comm"])
        finally:
            prometheus.terminate()
            prometheus.wait(10)

    def drive_fleet(self):
        """A server with hostile labels and texts."""
        def labels(gpu, image):
            return {"__name__": "DCGM_FI_DEV_FB_USED", "Hostname": HOSTILE_TEXT + str(gpu), "UUID": HOSTILE_TEXT + str(gpu), "gpu": str(gpu),
                    "modelName": HOSTILE_TEXT, "pod": HOSTILE_TEXT + "-" + str(gpu), "namespace": HOSTILE_TEXT, "image": image,
                    "container": HOSTILE_TEXT, "hpc_job": HOSTILE_TEXT + str(gpu)}

        matrix = []
        begin = int(time.time()) - 5 * 3600
        for gpu in range(3):
            matrix.append({"metric": labels(gpu, HOSTILE_TEXT + str(gpu)),
                           "values": [[begin + 30 * i, str(4000 + (100 * i if gpu else 0))] for i in range(590)]})

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                names = ["DCGM_FI_DEV_FB_USED"] if "__name__" in self.path.split("?")[0] else [HOSTILE_TEXT + str(g) for g in range(3)]
                self.answer(200, {"status": "success", "data": names})

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                if "series" in self.path:
                    return self.answer(200, {"status": "success", "data": [one["metric"] for one in matrix]})
                if "query_range" not in self.path:
                    return self.answer(400, {"status": "error", "error": HOSTILE_TEXT})
                self.answer(200, {"status": "success", "data": {"resultType": "matrix", "result": matrix}})

            def answer(self, status, document):
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        scan = ["fleet", "scan", "--url", url, "--since", "6h"]
        for form in ("text", "json"):
            result = self.box.run(*scan, "--format", form)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.clean("fleet scan", form, result.stdout, is_json=form == "json")
        self.clean("fleet scan", "stderr", self.box.run(*scan, "--read-by", "remote-read").stderr)
        self.run_clean("text", "fleet", "exporters", code=(0,))

        watch = self.box.start("fleet", "watch", "--url", url, "--listen", "127.0.0.1:0", "--every", "1s", "--history", "6h")
        address = re.search(rb"http://([^/]+)/", watch.stderr.readline())[1].decode()
        line = watch.stdout.readline()  # when the first pass has ended
        for path in ("/api/v1/fleet", "/metrics"):
            with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
                self.clean("fleet watch", path, answer.read(), is_json=path != "/metrics")
        watch.terminate()
        out, err = watch.communicate(timeout=60)
        self.clean("fleet watch", "text", line + out)

    def drive_actuate(self):
        """Alerts whose labels are hostile: in the log, the record, the pages, and what `status` prints."""
        (self.box.work / "actuate.toml").write_text('[[policy]]\nname = "a"\nsteps = [{ do = "drain" }]\n')
        common = ["--policy", "actuate.toml", "--state", str(self.box.work / "s"), "--set", "actuate.agent-hosts=[\"localhost\"]"]
        actuator = self.box.start("actuate", *common, "--listen", "127.0.0.1:0")
        address = re.search(rb"http://([^/]+)/", actuator.stderr.readline())[1].decode()
        labels = {"alertname": HOSTILE_TEXT, "Hostname": HOSTILE_TEXT, "instance": HOSTILE_TEXT, HOSTILE_TEXT: HOSTILE_TEXT}
        alert = {"status": "firing", "fingerprint": "ab", "startsAt": "2026-01-02T03:04:05Z", "labels": labels}

        def post(alerts):
            request = urllib.request.Request(f"http://{address}/api/v1/alerts", json.dumps({"version": "4", "alerts": alerts}).encode(),
                                             {"Content-Type": "application/json"})
            try:
                return urllib.request.urlopen(request, timeout=30).read()
            except urllib.error.HTTPError as error:
                return error.read()
        self.clean("actuate", "webhook", post([{**alert, "status": HOSTILE_TEXT}]))
        self.clean("actuate", "webhook", post([alert]))
        line = actuator.stderr.readline()  # the reason for the refusal
        for path in ("/api/v1/status", "/api/v1/acts", "/metrics"):
            with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
                self.clean("actuate", path, answer.read(), is_json=path != "/metrics")
        self.run_clean("text", "actuate", "status", *common, code=(0,))
        self.run_clean("json", "actuate", "status", "--json", *common, is_json=True, code=(0,))
        actuator.terminate()
        _, err = actuator.communicate(timeout=60)
        self.clean("actuate", "stderr", line + err)
        self.clean("actuate", "record", (self.box.work / "s/actuate.acts.jsonl").read_bytes(), is_json=True)

    def drive_terminal(self, command, *args, keys=b""):
        """On a terminal vramtrack steers it, and no name does."""
        said = self.box.on_terminal(command, *args, size=(200, 50), keys=keys, once_shown=b"gpj")
        self.assertIn(b"gpj", said, f"{command} shows no hostile name")
        said.decode()
        for part in (b"\x1b[31m\x07", "\u009b", "\u0085", "\u202e", "\u2066", "\u200f", "\u2028"):
            self.assertNotIn(part if isinstance(part, bytes) else part.encode(), said, command)
        self.driven.add((command, "text"))

    def drive_simulation(self):
        scenario = self.scenario()
        self.run_clean("text", "simulate", scenario)
        self.run_clean("json", "simulate", scenario, "--json", is_json=True)
        self.run_clean("csv", "simulate", scenario, "--csv", "sim.csv", file="sim.csv")
        script = self.box.work / "receiver.sh"
        script.write_text("#!/bin/sh\ncat >> \"$(dirname \"$0\")/told\"\n")
        script.chmod(0o755)
        result = self.box.run("simulate", scenario, "--notify", "--set", f'notify.exec=["{script}"]')
        self.assertEqual(result.returncode, 0, result.stderr)
        told = (self.box.work / "told").read_bytes()
        self.clean("notify", "exec", told.replace(b"}{", b"}\n{"), is_json=True)

    def help(self, *command):
        return self.box.run(*command, "--help").stdout.decode()

    def promised(self):
        """(command, output) of all that --help knows."""
        out = set()
        names = re.findall(r"^  ([a-z]+) {2,}", self.help().split("Commands:")[-1], re.M)
        groups = ("snapshot", "silence", "policy", "trace", "oom", "fleet")
        commands = [[n] for n in names if n not in groups]
        commands += [[g, n] for g in groups for n in re.findall(r"^  ([a-z]+) {2,}", self.help(g).split("Subcommands:")[-1], re.M)]
        for command in commands:
            text = self.help(*command)
            name = " ".join(command)
            if re.search(r"^  --json", text, re.M):
                out.add((name, "json"))
            formats = re.search(r"--format NAME.*?as: (.*)", text)
            if formats:
                out |= {(name, f) for f in re.sub(r"\(.*?\)", "", formats[1]).replace(" ", "").split(",")}
            elif command != ["agent"]:
                out.add((name, "html" if "flamegraph" in name or " page" in name else "text"))
            if "--junit" in text:
                out.add((name, "junit"))
            if re.search(r"^  --csv", text, re.M):
                out.add((name, "csv"))
        openapi = (FIXTURES.parent.parent / "docs" / "openapi.yaml").read_text()
        for path, methods in re.findall(r"^  (/[^:\n]*):\n((?:    .*\n|\n)*)", openapi, re.M):
            if "    get:" in methods and path not in ("/api/v1/events", "/api/v1/history", "/api/v1/gauges", "/healthz"):
                out.add(("agent", path))
        return out

    def test_every_output_is_clean_and_driven(self):
        self.drive_recordings()
        self.drive_snapshots()
        self.drive_traces()
        self.drive_run()
        self.drive_attach()
        self.drive_gate()
        self.drive_live()
        self.drive_actuate()
        self.drive_programs()
        self.drive_policies()
        self.drive_fleet()
        self.drive_simulation()
        promised = self.promised()
        self.assertGreater(len(promised), 25, promised)
        self.assertEqual(promised - self.driven, set(), "add these outputs to this test")


if __name__ == "__main__":
    unittest.main()
