#!/usr/bin/env python3
"""The dashboards and the recording rules on real servers that collect a real agent and a real `fleet watch`. dashboards.py BINARY

Every query is run as Grafana would: variables replaced by values that the server has. It must give series, the labels that its legend, columns
and links name must be there, and each metric in it must exist. On Prometheus, which evaluates the rules itself, and on VictoriaMetrics, where
vmagent scrapes and vmalert evaluates them.
"""
import http.server
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import yaml

if "CLOCK_AHEAD_S" in os.environ:  # make test-anywhere
    # The servers read the kernel's clock, which no preloaded library moves. Who asks them, and what they collect, must have the same.
    os.environ.pop("CLOCK_AHEAD_S")
    os.environ.pop("LD_PRELOAD", None)
    os.execv(sys.executable, sys.orig_argv)
BINARY = sys.argv.pop(1) if len(sys.argv) > 1 else None
from servers import CONTRIB, PATH, ROOT, Servers, fetch, free_port, needs, quick_alertmanager, quick_config, quick_rules, until, Webhook  # noqa: E402

sys.path.insert(0, str(ROOT / "tests" / "fleet"))
from running import Agent, Sandbox  # noqa: E402
from scan_data import labels as dcgm_labels, leaking, with_capacity  # noqa: E402

GRAFANA = ROOT / "contrib" / "grafana"
NAMES = sorted(path.stem for path in GRAFANA.glob("*.json"))

#: A Slurm job leaks on GPU 0, a pod on GPU 1, GPU 0 has reported an XID, and nobody who is visible holds the memory of GPU 2. Both leaks are confirmed after 24 minutes, and memory ends after
#: 5.7 hours: 14 s and 207 s at a speed of 100.
MACHINE = """
name = "machine"
seed = 3
period_s = 5
duration_s = "2d"
quantum_bytes = "2MiB"
[[device]]
name = "NVIDIA L40S"
capacity_bytes = "48GiB"
baseline_bytes = "500MiB"
reserved_bytes = "400MiB"
[[device]]
name = "NVIDIA L40S"
capacity_bytes = "48GiB"
baseline_bytes = "500MiB"
reserved_bytes = "400MiB"
[[device]]
name = "NVIDIA L40S"
capacity_bytes = "48GiB"
baseline_bytes = "500MiB"
reserved_bytes = "400MiB"
[[process]]
name = "hidden"
visible = false
devices = [2]
  [[process.shape]]
  kind = "constant"
  bytes = "4GiB"
[[process]]
name = "trainer"
command = "python train.py"
user = "ada"
framework = "PyTorch"
slurm_job = "4711.0"
devices = [0]
  [[process.shape]]
  kind = "constant"
  bytes = "8GiB"
  [[process.shape]]
  kind = "sawtooth"
  amplitude_bytes = "300MiB"
  period_s = 42
  period_spread = 0.2
  amplitude_spread = 0.2
  [[process.shape]]
  kind = "linear"
  rate_bytes_per_s = "120MiB/min"
  onset_s = "10min"
[[process]]
name = "server"
command = "python serve.py"
user = "web"
framework = "PyTorch"
pod = "00000000-0000-4000-8000-000000000007"
container = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
devices = [1]
  [[process.shape]]
  kind = "constant"
  bytes = "8GiB"
  [[process.shape]]
  kind = "sawtooth"
  amplitude_bytes = "300MiB"
  period_s = 42
  period_spread = 0.2
  amplitude_spread = 0.2
  [[process.shape]]
  kind = "linear"
  rate_bytes_per_s = "120MiB/min"
  onset_s = "10min"
[[fault]]
kind = "xid"
at_s = "1min"
device = 0
code = 43
"""


#: Queries that give no series on VictoriaMetrics, and why: (dashboard, problem's place).
EMPTY_WITH_VMALERT = {("job", "Its alerts, B"): "vmalert writes ALERTS_FOR_STATE only of alerts that have a `for`; leaks have none"}


def fleet_servers():
    """tests/fleet/servers.py, whose name is taken here."""
    spec = importlib.util.spec_from_file_location("fleet_servers", ROOT / "tests" / "fleet" / "servers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Relay:
    """The metrics of an agent, with the names of the pod, which only an API server knows. 503 before there is an agent."""

    def __init__(self):
        relay = self
        self.agent = None

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = fetch(f"http://{relay.agent}{self.path}") if relay.agent else (503, b"")
                named = re.sub(rb'namespace="",pod="",container="",deployment="",(pod_uid="[^"])',
                               rb'namespace="train",pod="serve-7",container="serve",deployment="serve",\1', body)
                named = re.sub(rb'work="pod [^"]+"', b'work="train/serve"', named)
                self.send_response(status or 503)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(named)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def panels_of(dashboard):
    return [p for p in dashboard["panels"] if p["type"] != "row"]


def queries_of(dashboard):
    """(panel, target) of each query; that of an annotation has a panel of its name."""
    out = [(panel, target) for panel in panels_of(dashboard) for target in panel["targets"]]
    for one in dashboard["annotations"]["list"]:
        out.append(({"title": f"annotation {one['name']}", "type": "annotation"}, one["target"]))
    return out


def metrics_in(expression):
    """The names of the metrics that it selects."""
    text = re.sub(r'"(\\.|[^"\\])*"', '""', expression)
    return set(re.findall(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*\{", text)) | set(re.findall(r"\bvramtrack[_:][a-z0-9_:]+", text))


def replaced(text, values):
    """Grafana's variables in `text`: each becomes an alternative of a regular expression."""
    text = text.replace("$__rate_interval", "30s")
    return re.sub(r"\$(\w+)", lambda name: values[name[1]], text)


def regex_of(words):
    return "(" + "|".join(re.escape(w).replace("\\-", "-").replace("\\", "\\\\") for w in words) + ")" if words else ".*"


class Dashboard:
    def __init__(self, text, store):
        self.json, self.store = json.loads(text), store

    def variables(self):
        """The values of each variable that is a query, by this server; a later one may use the earlier ones."""
        found = {}
        for variable in self.json["templating"]["list"]:
            if variable["type"] != "query":
                continue
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
            known = {name: regex_of(words) for name, words in found.items()}
            found[variable["name"]] = self.store.get(f"/api/v1/label/{label}/values", **{"match[]": replaced(selector, known)})
        return found

    def answer(self, target, values):
        expression = replaced(target["expr"], values)
        if target.get("instant"):
            return self.store.query(expression)
        now = time.time()
        return self.store.get("/api/v1/query_range", query=expression, start=now - 120, end=now, step=2)["result"]

    def problems(self, known, chosen=lambda target: True):
        """What is wrong with its queries; `known`: the names of all metrics of the server."""
        out = []
        values = self.variables()
        out += [f"variable {name}: the server has no value" for name, words in values.items() if not any(words)]
        everything = {name: ".*" for name in values}
        one_by_one = {name: regex_of([w for w in words if w]) for name, words in values.items()}
        fields = {}
        for panel, target in queries_of(self.json):
            if not chosen(target):
                continue
            place = f"{panel['title']}, {target['refId']}"
            out += [f"{place}: no series is named {name}" for name in sorted(metrics_in(target["expr"]) - known)]
            # A dashboard of jobs shows Slurm jobs or pods: one that has both exists on no machine.
            for how in (everything, one_by_one) if "job" not in values else (everything,):
                try:
                    series = self.answer(target, how)
                except AssertionError as refused:
                    out.append(f"{place}: {refused}")
                    continue
                if not series:
                    out.append(f"{place}: no series: {replaced(target['expr'], how)}")
                there = {label for one in series for label in one["metric"]}
                fields.setdefault(panel["title"], set()).update(there)
                out += [f"{place}: no series has the label {label} of the legend"
                        for label in re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")) if series and label not in there]
        for panel in panels_of(self.json):
            if panel["type"] != "table" or panel["title"] not in fields or not all(map(chosen, panel["targets"])):
                continue
            organize = panel["transformations"][-1]["options"]
            there = fields[panel["title"]] | set(organize["renameByName"].values())
            out += [f"{panel['title']}: there is no column {o['matcher']['options']}" for o in panel["fieldConfig"]["overrides"]
                    if o["matcher"]["options"] not in there]
        return sorted(set(out))


@needs("prometheus", "prometheus-alertmanager", "victoria-metrics", "vmagent", "vmalert")
@unittest.skipUnless(BINARY, "no binary was given")
class OnServers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="vramtrack-dashboards-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.relay = Relay()
        cls.addClassCleanup(cls.relay.close)
        cls.hook = Webhook()
        cls.addClassCleanup(cls.hook.close)
        cls.servers = Servers(cls.folder)
        cls.addClassCleanup(cls.servers.__exit__)
        quick_rules(cls.folder)
        quick_alertmanager(cls.folder, cls.hook)
        watch_port = free_port()
        # The target's name is that of the machine, as the files of discovery say it.
        config = quick_config(cls.folder, [cls.relay.address], labels={"cluster": "test", "Hostname": "node1"})
        config["scrape_configs"].append({"job_name": "fleet", "honor_labels": True,
                                         "static_configs": [{"targets": [f"127.0.0.1:{watch_port}"], "labels": {"cluster": "test"}}]})
        config["storage"] = {"tsdb": {"out_of_order_time_window": "7d"}}
        (cls.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        alertmanager = cls.servers.alertmanager("alertmanager.yml")
        cls.prometheus = cls.servers.prometheus("prometheus.yml", "--web.enable-remote-write-receiver")
        cls.victoria = cls.servers.victoria()
        cls.servers.vmagent(cls.victoria, "prometheus.yml")
        cls.servers.vmalert(cls.victoria, alertmanager, "vramtrack.recording.yml", "vramtrack.alerts.yml")
        cls.start_watch(watch_port)
        cls.start_agent()

    @classmethod
    def start_watch(cls, port):
        """A machine without an agent, whose series Prometheus has."""
        remote = fleet_servers()
        writer = remote.Server.__new__(remote.Server)  # one that is already running
        writer.url = cls.prometheus.url
        work = {"hpc_job": "4712", "exported_namespace": "train", "exported_pod": "serve-8"}
        writer.write(with_capacity([(dcgm_labels("dcgm1", 0, cluster="test", **work), leaking(1, 4, 200))]))
        with open(cls.folder / "watch.log", "wb") as log:
            watch = subprocess.Popen([BINARY, "fleet", "watch", "--url", cls.prometheus.url, "--listen", f"127.0.0.1:{port}", "--every", "1s", "--history",
                                      "5h", "--only", "job=dcgm"], stdout=subprocess.DEVNULL, stderr=log)
        cls.servers.running.append(watch)
        until(lambda: fetch(f"http://127.0.0.1:{port}/healthz")[0] == 200, 60, "the watch's first pass")

    @classmethod
    def start_agent(cls):
        box = Sandbox(BINARY).__enter__()
        cls.addClassCleanup(box.__exit__)
        box.write("machine.toml", MACHINE)
        agent = Agent(box, "--scenario", "machine.toml", "--speed", "100", env={"NODE_NAME": "node1"}, simulate=False).__enter__()
        cls.addClassCleanup(agent.__exit__)
        cls.relay.agent = f"{agent.host}:{agent.port}"

    def known(self, store):
        return set(store.get("/api/v1/label/__name__/values"))

    def check(self, store, empty=()):
        """`empty`: the queries that must give nothing."""
        def problems():
            known = self.known(store)
            found = {(name, p) for name in NAMES for p in Dashboard((GRAFANA / f"{name}.json").read_text(), store).problems(known)}
            expected = {(name, p) for name, p in found if any((name, p.split(": no series")[0]) == one for one in empty)}
            stale = {one for one in empty if not any((name, p.split(": no series")[0]) == one for name, p in expected)}
            return sorted(map(": ".join, found - expected)) + [f"{' '.join(one)} gives series" for one in stale]
        last = []

        def are_gone():
            last[:] = problems()
            return not last
        try:
            until(are_gone, 30, "every query gives series")
        except AssertionError:
            self.fail("\n".join(last) + self.servers.logs())

    def check_rules(self, store):
        for name in ("vramtrack.recording.yml", "vramtrack.alerts.yml"):
            for group in yaml.safe_load((CONTRIB / name).read_text())["groups"]:
                for rule in group["rules"]:
                    with self.subTest(rule.get("record") or rule["alert"]):
                        result = store.query(rule["expr"])
                        if "record" in rule:
                            self.assertTrue(result, "its expression gives nothing")
                            until(lambda r=rule: store.query(r["record"]), 20, "the rule is recorded")

    def test_on_prometheus(self):
        self.check(self.prometheus)
        self.check_rules(self.prometheus)

    def test_on_victoria_metrics_with_vmalert(self):
        self.check(self.victoria, EMPTY_WITH_VMALERT)
        self.check_rules(self.victoria)
        alert = until(lambda: [a for a in self.hook.alerts("GpuMemoryLeak") if a["labels"].get("pod") == "serve-7"], 60, "the alert at the webhook")[0]
        self.assertEqual((alert["labels"]["Hostname"], alert["labels"]["pod"], alert["labels"]["namespace"]), ("node1", "serve-7", "train"))
        self.assertIn("Suspect: train/serve, pid 2200 server, pod serve-7.", alert["annotations"]["description"])

    def test_a_machine_without_an_agent_is_on_them(self):
        hosts = until(lambda: (lambda found: found if {"node1", "dcgm1"} <= found else None)(
            {s["metric"]["Hostname"] for s in self.prometheus.query("vramtrack:leak_suspect")}), 60, "both machines leak")
        self.assertEqual(hosts, {"node1", "dcgm1"})
        fleet = Dashboard((GRAFANA / "fleet.json").read_text(), self.prometheus)
        target = next(t for panel, t in queries_of(fleet.json) if panel["title"] == "Leaks now")
        self.assertEqual({s["metric"]["Hostname"] for s in fleet.answer(target, {"cluster": ".*"})}, hosts)

    def test_a_metric_that_is_renamed_is_noticed(self):
        self.check(self.prometheus)
        known = self.known(self.prometheus)
        for name in NAMES:
            text = (GRAFANA / f"{name}.json").read_text()
            dashboard = Dashboard(text, self.prometheus)
            metrics = set().union(*(metrics_in(t["expr"]) for _, t in queries_of(dashboard.json)))
            self.assertGreater(len(metrics), 5)
            for metric in metrics:
                renamed = Dashboard(re.sub(rf"(?<![\w:]){metric}(?![\w:])", metric + "_new", text), self.prometheus)
                found = renamed.problems(known, chosen=lambda t, m=metric: m + "_new" in t["expr"])
                self.assertTrue(any(metric + "_new" in problem for problem in found), (name, metric))


#: The parts of Grafana's dashboard model (kinds/dashboard) that these files use.
PANELS = {"stat", "timeseries", "table", "row"}
UNITS = {"short", "none", "bytes", "Bps", "percentunit", "s", "celsius", "watt", "dateTimeFromNow"}
TRANSFORMATIONS = {"merge", "organize"}
COLORS = {"green", "yellow", "orange", "red", "text"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Model(unittest.TestCase):
    """Grafana is not run. What its model demands of a dashboard is checked as far as these files use it."""

    def of_each(self):
        for name in NAMES:
            with self.subTest(name):
                yield name, json.loads((GRAFANA / f"{name}.json").read_text())

    def test_the_files_are_those_that_the_script_writes(self):
        done = subprocess.run([sys.executable, ROOT / "scripts" / "dashboards.py", "--check"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_dashboard(self):
        for name, d in self.of_each():
            self.assertEqual(d["uid"], f"vramtrack-{name}")
            self.assertLessEqual(len(d["uid"]), 40)
            self.assertGreaterEqual(d["schemaVersion"], 36)
            self.assertIn(d["graphTooltip"], (0, 1, 2))
            self.assertNotIn("id", d, "an id of one Grafana makes an import overwrite another dashboard")
            self.assertTrue(d["title"] and d["description"] and set(d["time"]) == {"from", "to"})
            for link in d["links"]:
                self.assertIn(link["type"], ("link", "dashboards"))
                self.assertTrue({"title", "icon", "tooltip", "url", "tags"} <= set(link))
            for one in d["annotations"]["list"]:
                self.assertEqual(one["datasource"], SOURCE)
                self.assertTrue(one["name"] and one["iconColor"] and one["target"]["expr"])

    def test_its_variables(self):
        for _, d in self.of_each():
            variables = {v["name"]: v for v in d["templating"]["list"]}
            self.assertEqual(len(variables), len(d["templating"]["list"]))
            self.assertEqual((variables["datasource"]["type"], variables["datasource"]["query"]), ("datasource", "prometheus"))
            for v in variables.values():
                if v["name"] == "datasource":
                    continue
                self.assertEqual((v["type"], v["datasource"]), ("query", SOURCE))
                self.assertIn(v["refresh"], (1, 2))
            used = set(re.findall(r"\$(\w+)", " ".join(t["expr"] for _, t in queries_of(d)))) - {"__rate_interval"}
            self.assertEqual(used - set(variables), set(), "a variable that is not declared")

    def test_its_panels(self):
        for name, d in self.of_each():
            ids = [p["id"] for p in d["panels"]]
            self.assertEqual(len(ids), len(set(ids)))
            taken = set()
            for p in d["panels"]:
                with self.subTest(panel=p["title"]):
                    at = p["gridPos"]
                    self.assertTrue(0 <= at["x"] and at["w"] > 0 and at["h"] > 0 and at["x"] + at["w"] <= 24, at)
                    cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
                    self.assertFalse(cells & taken, "it overlaps another panel")
                    taken |= cells
                    self.assertIn(p["type"], PANELS)
                    if p["type"] == "row":
                        continue
                    self.assertEqual(p["datasource"], SOURCE)
                    refs = [t["refId"] for t in p["targets"]]
                    self.assertEqual(len(refs), len(set(refs)))
                    for t in p["targets"]:
                        self.assertEqual((t["datasource"], t["instant"]), (SOURCE, not t["range"]))
                        self.assertEqual(t["format"], "table" if p["type"] == "table" else "time_series")
                    self.check_field(p["fieldConfig"]["defaults"])
                    for override in p["fieldConfig"]["overrides"]:
                        self.assertEqual(override["matcher"]["id"], "byName")
                        self.check_field({q["id"]: q["value"] for q in override["properties"]})
                    self.assertLessEqual({t["id"] for t in p.get("transformations", [])}, TRANSFORMATIONS)

    def check_field(self, field):
        self.assertLessEqual(set(field), {"unit", "thresholds", "min", "max", "mappings", "noValue", "links"})
        self.assertIn(field.get("unit", "none"), UNITS)
        if "thresholds" in field:
            steps = field["thresholds"]["steps"]
            self.assertEqual(field["thresholds"]["mode"], "absolute")
            self.assertIsNone(steps[0]["value"], "the first step is minus infinity")
            later = [s["value"] for s in steps[1:]]
            self.assertEqual(later, sorted(later))
            self.assertLessEqual({s["color"] for s in steps}, COLORS)
        for mapping in field.get("mappings", []):
            self.assertEqual(mapping["type"], "value")
            for result in mapping["options"].values():
                self.assertLessEqual(set(result), {"text", "color", "index"})

    def test_its_links_open_dashboards_and_set_variables_that_they_have(self):
        variables = {name: {v["name"] for v in json.loads((GRAFANA / f"{name}.json").read_text())["templating"]["list"]} for name in NAMES}
        for _, d in self.of_each():
            urls = [link["url"] for link in d["links"]] + re.findall(r'"url": "([^"]*)"', json.dumps(d["panels"]))
            self.assertTrue(urls)
            for url in urls:
                to = re.match(r"/d/vramtrack-(\w+)\?", url)[1]
                self.assertLessEqual(set(re.findall(r"&var-(\w+)=", url)) | set(re.findall(r"\$\{(\w+):queryparam\}", url)), variables[to], url)


if __name__ == "__main__":
    unittest.main(verbosity=1)
