"""`vramtrack fleet scan` on real servers: Prometheus by remote-read and query_range, VictoriaMetrics by export, Thanos by
query_range over an HA pair."""
import csv
import datetime
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from cluster import cluster, figures, is_right
from scan_data import CAPACITY_MIB, END, END_MS, healthy, labels, leaking, loading, times, with_capacity
from servers import Prometheus, Proxy, Thanos, VictoriaMetrics, free_port, patience

BINARY = sys.argv.pop(1)
FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"


def installed(kind):
    how = "VRAMTRACK_THANOS names one; docs/prometheus.md" if kind is Thanos else "scripts/setup.sh test"
    return unittest.skipUnless(shutil.which(kind.program), f"not installed: {kind.program} ({how})")


def small_fleet():
    """Four machines of two GPUs of one job; node2's GPU 1 leaks."""
    return [(labels(f"node{n}", g, hpc_job="77"), leaking(9) if (n, g) == (2, 1) else healthy(10 * n + g))
            for n in range(4) for g in range(2)]


class Scan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.servers = []

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers:
            server.close()

    @classmethod
    def serve(cls, kind, series):
        server = kind()
        cls.servers.append(server)
        server.write(series)
        return server

    def scan(self, url, *options, code=None):
        result = subprocess.run([BINARY, "fleet", "scan", "--url", url, "--since", "4h", "--until", END, *options], capture_output=True, timeout=300)
        if code is not None:
            self.assertEqual(result.returncode, code, result.stdout.decode() + result.stderr.decode())
        return result

    def lines(self, url, *options, code=None):
        rows = [json.loads(line) for line in self.scan(url, "--format", "json", *options, code=code).stdout.splitlines()]
        by = {}
        for row in rows:
            by.setdefault(row["schema"].split(".")[1], []).append(row)
        return by

    def leaks(self, rows):
        """The GPUs that leak, by the lines of the analysis contract."""
        return {(r["series"]["host"], r["series"]["index"]) for r in rows["analysis"]
                if r["series"]["metric"] == "device_used" and any(a["leak"] for a in r["alerts"] + r["suspicions"])}


@installed(Prometheus)
class OnPrometheus(Scan):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.serve(Prometheus, with_capacity(small_fleet()))

    def test_every_way_of_reading_finds_the_leak(self):
        for path in ("remote-read", "query-range"):
            with self.subTest(path):
                rows = self.lines(self.server.url, "--read-by", path, code=1)
                self.assertEqual(self.leaks(rows), {("node2", 1)})
                self.assertEqual(len(rows["analysis"]), 8)
                self.assertEqual(rows["fleet_scan"][0]["read_by"], path)
                self.assertTrue(rows["fleet_scan"][0]["is_complete"])
                for row in rows["analysis"]:
                    self.assertEqual(row["capacity_bytes"], CAPACITY_MIB << 20)
        self.assertEqual(self.lines(self.server.url)["fleet_scan"][0]["read_by"], "remote-read")

    def test_the_table_names_the_job_the_gpu_and_the_end(self):
        text = self.scan(self.server.url, code=1).stdout.decode()
        self.assertIn("8 GPUs on 4 machines, the last 4.0 h of dcgm-exporter (", text)
        self.assertRegex(text, r"job 77 +node2 GPU 1 +1 of 8 +\d+\.\d/79\.6 GiB +\+\d+\.\d MiB/min +\d+h")
        self.assertIn("is healthy on node0, node1, node3", text)

    def test_the_verdict_is_that_of_analyze(self):
        text = io.StringIO()
        log = csv.writer(text)
        log.writerow(["timestamp", "index", "memory.used [MiB]", "memory.total [MiB]"])
        for ms, value in leaking(9):
            log.writerow([datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).strftime("%Y/%m/%d %H:%M:%S.000"), 0, f"{value} MiB",
                          f"{CAPACITY_MIB} MiB"])
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(text.getvalue())
            file.flush()
            done = subprocess.run([BINARY, "analyze", "--timezone", "UTC", "--format", "json", file.name], capture_output=True, timeout=120)
        analysed = json.loads(done.stdout.splitlines()[0])
        scanned = next(r for r in self.lines(self.server.url)["analysis"] if (r["series"]["host"], r["series"]["index"]) == ("node2", 1))
        for row in (scanned, analysed):
            for alert in row["alerts"]:
                self.assertRegex(alert.pop("incident"), "^[0-9a-f]{16}$")  # of this GPU, which the log does not name
        for key in ("verdict", "alerts", "samples", "interval_s"):
            self.assertEqual(scanned[key], analysed[key], key)

    def test_shards_judge_each_machine_once(self):
        hosts = []
        for shard in ("1/3", "2/3", "3/3"):
            hosts += sorted({r["series"]["host"] for r in self.lines(self.server.url, "--shard", shard).get("analysis", [])})
        self.assertEqual(sorted(hosts), ["node0", "node1", "node2", "node3"])
        self.assertIn(b"expected, for example, 2/8", self.scan(self.server.url, "--shard", "3/2", code=2).stderr)

    def test_only_takes_series_with_a_label(self):
        rows = self.lines(self.server.url, "--only", "Hostname=~node[01]", code=0)
        self.assertEqual({r["series"]["host"] for r in rows["analysis"]}, {"node0", "node1"})
        self.assertIn(b"expected LABEL=VALUE", self.scan(self.server.url, "--only", "Hostname", code=2).stderr)

    def test_a_server_without_gpus_is_an_error_that_says_what_to_do(self):
        result = self.scan(self.server.url, "--only", "Hostname=nobody", code=2)
        self.assertIn(b"has no GPU memory metric", result.stderr)
        self.assertIn(b"fleet exporters", result.stderr)

    def test_a_wrong_path_is_said_once(self):
        errors = self.scan(self.server.url + "/prom", code=2).stderr
        self.assertEqual(errors.count(b"404"), 2, errors)  # the status, and what the server says
        self.assertIn(b"check the path of the address", errors)

    def test_nobody_there(self):
        result = self.scan("http://127.0.0.1:9", code=2)
        self.assertIn(b"the connection failed", result.stderr)
        self.assertEqual(result.stdout, b"")

    def test_a_token_and_headers_are_sent(self):
        def decide(path, body, headers):
            right = headers.get("Authorization") == "Bearer geheim" and headers.get("X-Scope-OrgID") == "gpu"
            return None if right else (401, "who are you?")
        proxy = Proxy(self.server, decide)
        self.addCleanup(proxy.close)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("geheim\n")
            file.flush()
            self.scan(proxy.url, "--bearer-token-file", file.name, "--header", "X-Scope-OrgID: gpu", code=1)
        refused = self.scan(proxy.url, code=2)
        self.assertIn(b"401", refused.stderr)
        self.assertIn(b"--bearer-token-file", refused.stderr)

    def failing(self, decide):
        proxy = Proxy(self.server, decide)
        self.addCleanup(proxy.close)
        return proxy

    def once(self, path_part, action):
        """Does `action` at the second request of that path: the first asks whether the server knows it."""
        seen = []

        def decide(path, body, headers):
            if path_part in path:
                seen.append(path)
                return action if len(seen) == 2 else None
            return None
        return decide

    def test_answers_that_fail_in_passing_are_asked_again(self):
        for action in ((500, "broken"), (503, "starting"), "half", "close"):
            with self.subTest(action=action):
                rows = self.lines(self.failing(self.once("/api/v1/read", action)).url, code=1)
                self.assertEqual(self.leaks(rows), {("node2", 1)})
                self.assertEqual(len(rows["analysis"]), 8)
                self.assertEqual({r["samples"] for r in rows["analysis"]}, {480})
                self.assertEqual(rows["fleet_scan"][0]["retried_requests"], 1)

    def test_the_server_restarts_while_it_is_read(self):
        def decide(path, body, headers):
            if "/read" in path and not restarted and len(proxy.requests) > 1:
                restarted.append(path)
                self.server.stop()
                self.server.start()
                return (502, "it was away")
            return None
        restarted = []
        proxy = self.failing(decide)
        rows = self.lines(proxy.url, code=1)
        self.assertTrue(restarted)
        self.assertEqual(self.leaks(rows), {("node2", 1)})
        self.assertEqual({r["samples"] for r in rows["analysis"]}, {480})

    def test_what_cannot_be_read_is_said(self):
        def decide(path, body, headers):
            return (500, "broken\nfor ever") if "/read" in path and len(proxy.requests) > 1 else None
        proxy = self.failing(decide)
        result = self.scan(proxy.url, code=2)
        self.assertIn(b"Not read: 4 machines of node0, node1, node2 and 1 more", result.stdout)
        self.assertIn(b"status 500: broken", result.stderr)

    def test_a_limit_of_the_server_makes_requests_smaller(self):
        def decide(path, body, headers):
            if "/query_range" in path and len(re.findall(rb"node\d", body)) > 2:
                return (422, "query processing would load too many samples into memory in query execution")
            return None
        rows = self.lines(self.failing(decide).url, "--read-by", "query-range", code=1)
        self.assertEqual(self.leaks(rows), {("node2", 1)})
        self.assertEqual(len(rows["analysis"]), 8)


def renamed(series):
    """As dcgm-exporter 4.9 has them: in bytes, under other names, with other labels."""
    labels, samples = series
    labels = {{"Hostname": "hostname", "DCGM_FI_DRIVER_VERSION": "DCGM_FI_SYSTEM_DRIVER_VERSION"}.get(k, k): v for k, v in labels.items()}
    labels["__name__"] += "_BYTES"
    return labels, [(ms, value * 1048576.0) for ms, value in samples]


@installed(Prometheus)
class NamesOfDcgmExporter49(Scan):
    def test_old_and_new_names_beside_each_other(self):
        driver = {"DCGM_FI_DRIVER_VERSION": "595.1"}
        leak, calm = leaking(9), healthy(3)
        both, upgraded = (labels(host, 0, **driver) for host in ("both", "upgraded"))
        half = len(leak) // 2

        def capacity(host):
            total = labels(host, 0, metric="DCGM_FI_DEV_FB_CAPACITY", **driver)
            return renamed((total, [(ms, CAPACITY_MIB) for ms, _ in leak]))
        series = with_capacity([(labels("old", 0, **driver), leak)]) + [
            renamed((labels("new", 0, **driver), leak)), capacity("new"),
            renamed((labels("calm", 0, **driver), calm)), capacity("calm"),
            # A collector file with both, and an exporter that was upgraded in the middle of the leak.
            (both, leak), renamed((both, leak)), capacity("both"),
            (upgraded, leak[:half]), renamed((upgraded, leak[half:])), capacity("upgraded"),
        ]
        server = self.serve(Prometheus, series)
        for path in ("remote-read", "query-range"):
            with self.subTest(path):
                rows = self.lines(server.url, "--read-by", path, code=1)
                self.assertEqual(self.leaks(rows), {("old", 0), ("new", 0), ("both", 0), ("upgraded", 0)})
                by_host = {r["series"]["host"]: r for r in rows["analysis"]}
                self.assertEqual(set(by_host), {"old", "new", "calm", "both", "upgraded"})
                for host, row in by_host.items():
                    self.assertEqual(row["capacity_bytes"], CAPACITY_MIB << 20, host)
        # The very same verdict, whatever the name and the unit.
        rows = self.lines(server.url, code=1)
        verdicts = {r["series"]["host"]: (r["verdict"], r["alerts"], r["samples"]) for r in rows["analysis"]}
        for host in ("new", "both", "upgraded"):
            self.assertEqual(verdicts[host], verdicts["old"], host)


@installed(Prometheus)
class Facts(Scan):
    def test_what_a_gpu_does_and_receives_tells_a_load_from_a_leak(self):
        """Three GPUs fill at 20 MiB/s for 50 minutes. Of the second it is known that it does not work, and of the third that it receives as much."""
        def beside(host, metric, value):
            return labels(host, 0, metric), [(ms, value) for ms in times(4)]
        fleet = with_capacity([(labels(f"node{n}", 0), loading(n)) for n in range(3)])
        fleet += [beside("node1", "DCGM_FI_DEV_GPU_UTIL", 0), beside("node2", "DCGM_FI_PROF_PCIE_RX_BYTES", 20 << 20)]
        server = self.serve(Prometheus, fleet)
        for path in ("remote-read", "query-range"):
            with self.subTest(path):
                rows = self.lines(server.url, "--read-by", path, code=1)
                self.assertEqual(self.leaks(rows), {("node0", 0)})
                states = {r["series"]["host"]: r["verdict"]["state"] for r in rows["analysis"]}
                self.assertEqual((states["node1"], states["node2"]), ("loading", "loading"))


@installed(Prometheus)
@installed(VictoriaMetrics)
class SeveralServers(Scan):
    def test_they_are_read_as_one_and_one_that_is_away_hides_nothing(self):
        fleet = small_fleet()
        first = self.serve(Prometheus, with_capacity(fleet[:4]))
        second = self.serve(VictoriaMetrics, with_capacity(fleet[4:]))
        both = ("--url", second.url, "--tenant", "gpu")
        rows = self.lines(first.url, *both, code=1)
        self.assertEqual(self.leaks(rows), {("node2", 1)})
        self.assertEqual({r["series"]["host"] for r in rows["analysis"]}, {"node0", "node1", "node2", "node3"})
        self.assertEqual(rows["fleet_scan"][0]["read_by"], "remote-read, export")
        self.assertTrue(rows["fleet_scan"][0]["is_complete"])
        first.close()
        self.servers.remove(first)
        rows = self.lines(first.url, *both, code=2)
        self.assertEqual(self.leaks(rows), {("node2", 1)})
        self.assertEqual({r["series"]["host"] for r in rows["analysis"]}, {"node2", "node3"})
        self.assertEqual([u["server"] for u in rows["fleet_scan"][0]["unread"]], [first.url])

    def test_a_metric_that_is_not_read_is_named_with_the_lines_that_read_it(self):
        own = [({"__name__": "acme_gpu_memory_used_mib", "gpu": "1", "node": "node9"}, leaking(9))]
        server = self.serve(VictoriaMetrics, with_capacity(small_fleet()) + own)
        row = self.lines(server.url, code=1)["fleet_scan"][0]
        self.assertEqual([m["name"] for m in row["unknown_metrics"]], ["acme_gpu_memory_used_mib"])
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(row["unknown_metrics"][0]["exporter"])
            file.flush()
            rows = self.lines(server.url, "--exporters", file.name, code=1)
        self.assertEqual(self.leaks(rows), {("node2", 1), ("node9", 1)})
        self.assertEqual(rows["fleet_scan"][0]["unknown_metrics"], [])
        self.assertIn(b"Not read: acme_gpu_memory_used_mib looks like GPU memory", self.scan(server.url, code=1).stdout)


@installed(VictoriaMetrics)
class OnVictoriaMetrics(Scan):
    def test_its_export_is_read(self):
        server = self.serve(VictoriaMetrics, with_capacity(small_fleet()))
        rows = self.lines(server.url, code=1)
        self.assertEqual(rows["fleet_scan"][0]["read_by"], "export")
        self.assertEqual(self.leaks(rows), {("node2", 1)})
        self.assertEqual({r["samples"] for r in rows["analysis"]}, {480})

        half = self.half_once(server)
        again = self.lines(half.url, code=1)
        self.assertEqual([r["verdict"] for r in again["analysis"]], [r["verdict"] for r in rows["analysis"]])

    def half_once(self, server):
        seen = []

        def decide(path, body, headers):
            if "/export" in path:
                seen.append(path)
                return "half" if len(seen) == 2 else None
            return None
        proxy = Proxy(server, decide)
        self.addCleanup(proxy.close)
        return proxy


@installed(Prometheus)
@installed(Thanos)
class OnThanos(Scan):
    """Two Prometheus that scrape the same at different moments, each of which was away for a while."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        fleet = with_capacity(small_fleet())
        cls.alone, cls.thanos = cls.serve(Prometheus, fleet), cls.serve(Thanos, [])
        for replica, offset_ms, away in ((cls.thanos.replicas[0], 0, (3.0, 2.5)), (cls.thanos.replicas[1], 7_000, (1.5, 1.0))):
            begin, end = (END_MS - hours * 3_600_000 for hours in away)
            replica.write([(of, [(ms + offset_ms, value) for ms, value in samples if not begin <= ms < end]) for of, samples in fleet])

    def test_the_pair_is_read_as_one_prometheus_is(self):
        alone, pair = (self.lines(server.url, "--read-by", "query-range", code=1) for server in (self.alone, self.thanos))
        self.assertEqual(self.leaks(pair), {("node2", 1)})
        self.assertEqual(self.leaks(pair), self.leaks(alone))
        self.assertEqual(pair["fleet_scan"][0]["unread"], [])
        self.assertTrue(pair["fleet_scan"][0]["is_complete"])
        for rows in (alone, pair):
            for row in rows["analysis"]:
                self.assertEqual(row["capacity_bytes"], CAPACITY_MIB << 20)
        of = lambda rows: sorted((r["series"]["host"], r["series"]["index"], r["series"]["device"], r["samples"]) for r in rows["analysis"])  # noqa: E731
        self.assertEqual(of(pair), of(alone))
        findings = lambda rows: sorted((f["kind"], f["nodes"]) for f in rows.get("fleet_finding", []))  # noqa: E731
        self.assertEqual(findings(pair), findings(alone))
        jobs = lambda rows: [(j["job"], j["gpus"], j["leaking_nodes"], j["state"]) for j in rows["fleet_job"]]  # noqa: E731
        self.assertEqual(jobs(pair), jobs(alone))

    def test_the_way_to_read_it_is_found(self):
        rows = self.lines(self.thanos.url, code=1)
        self.assertEqual(rows["fleet_scan"][0]["read_by"], "query-range")
        self.assertEqual(self.leaks(rows), {("node2", 1)})

    def test_a_watch_sees_the_same(self):
        port = free_port()
        watch = subprocess.Popen([BINARY, "fleet", "watch", "--url", self.thanos.url, "--read-by", "query-range", "--listen", f"127.0.0.1:{port}",
                                  "--every", "1s", "--history", "5h"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        fleet = self.passed(port, 2)
        self.assertEqual((fleet["gpus"], fleet["machines"], fleet["leaking_gpus"], fleet["trouble"]), (8, 4, 1, None))
        self.assertEqual([job["leaking_nodes"] for job in fleet["jobs"]], [["node2"]])

    def passed(self, port, passes):
        deadline = time.monotonic() + patience(60)
        while time.monotonic() < deadline:
            try:
                fleet = json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/fleet", timeout=patience(10)).read())
                if fleet["passes"] >= passes:
                    return fleet
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError("the watch did not pass")

    def test_without_a_sidecar_it_answers_in_part_and_that_is_said(self):
        lost = self.thanos.sidecars[1]
        lost.stop()
        try:
            result = self.scan(self.thanos.url, "--format", "json", code=2)
        finally:
            lost.start()
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        scan = next(r for r in rows if r["schema"] == "vramtrack.fleet_scan.v1")
        self.assertFalse(scan["is_complete"])
        self.assertEqual([(u["hosts"], u["server"]) for u in scan["unread"]], [([], self.thanos.url)])
        self.assertEqual(scan["gpus"], 8, "the other of the pair has them all")
        self.assertIn(f"part of what the server {self.thanos.url} has could not be read: ".encode(), result.stderr)


@installed(Prometheus)
class Traps(Scan):
    """What exporters do to those who read them: fleet.md, section 7 of the notes of this field."""

    def test_all_of_them(self):
        blank = 9223372036854775794.0
        churned = leaking(1)
        half = len(churned) // 2
        hostile = "evil\x1b[31m\n\"}]‮"
        late = END_MS - 3_600_000
        server = self.serve(Prometheus, with_capacity([
            # One GPU, three pods after one another: a leak beneath them all.
            (labels("churn", 0, pod="a"), churned[:half]),
            (labels("churn", 0, pod="b"), churned[half:half + 100]),
            (labels("churn", 0, pod="c"), churned[half + 100:]),
            # The same GPU once for each job that shares it.
            (labels("copies", 0, hpc_job="1"), healthy(3)),
            (labels("copies", 0, hpc_job="2"), healthy(3)),
            # Blank values among others.
            (labels("blank", 0), [(ms, blank if i % 5 == 0 else v) for i, (ms, v) in enumerate(leaking(4))]),
            # A clock an hour behind, and a machine whose name is an attack.
            (labels("behind", 0), leaking(5, end_ms=late)),
            (labels(hostile, 0, modelName=hostile, hpc_job=hostile), leaking(6)),
        ]) + [
            # No capacity anywhere, and labels of another exporter that has bytes and an "exported_" name.
            ({"__name__": "all_smi_gpu_memory_used_bytes", "gpu_uuid": "GPU-x", "gpu_index": "0", "exported_instance": "smi",
              "instance": "proxy:1", "gpu": "H100"}, [(ms, v * 1048576.0) for ms, v in leaking(7)]),
            # No label of a host, and none of a GPU.
            ({"__name__": "nvidia_smi_memory_used_bytes", "uuid": "11111111-2222-3333-4444-555555555555"},
             [(ms, v * 1048576.0) for ms, v in healthy(8)]),
            ({"__name__": "DCGM_FI_DEV_FB_USED", "Hostname": "nameless"}, healthy(2)),
            # What is free and the capacity, in bytes, and no metric of what is used.
            (labels("free", 0, "DCGM_FI_DEV_FB_FREE_BYTES"), [(ms, (CAPACITY_MIB - 500 - v) * 1048576.0) for ms, v in leaking(9)]),
            (labels("free", 0, "DCGM_FI_DEV_FB_RESERVED_BYTES"), [(ms, 500 * 1048576.0) for ms, _ in leaking(9)]),
            (labels("free", 0, "DCGM_FI_DEV_FB_CAPACITY_BYTES"), [(ms, CAPACITY_MIB * 1048576.0) for ms, _ in leaking(9)]),
            (labels("free", 0, "DCGM_FI_DEV_GPU_UTIL_RATIO"), [(ms, 0.75) for ms, _ in leaking(9)]),
        ])
        result = self.scan(server.url, "--format", "json", code=1)
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        gpus = {r["series"].get("host", ""): r for r in rows if r["schema"] == "vramtrack.analysis.v1"}
        leaks = {host for host, r in gpus.items() if any(a["leak"] for a in r["alerts"] + r["suspicions"])}
        evil = next(host for host in gpus if host.startswith("evil"))
        self.assertEqual(leaks, {"churn", "blank", "behind", "smi", "free", evil})
        self.assertEqual(gpus["churn"]["samples"], 480)
        self.assertEqual(gpus["copies"]["samples"], 480)
        self.assertEqual(gpus["blank"]["samples"], 384)
        self.assertIsNone(gpus["smi"]["capacity_bytes"])
        self.assertEqual(gpus["free"]["capacity_bytes"], CAPACITY_MIB * 1048576)
        self.assertEqual(gpus["free"]["samples"], 480)
        self.assertEqual(gpus[""]["series"]["device"], "GPU-11111111-2222-3333-4444-555555555555")
        self.assertNotIn("nameless", gpus)
        end = next(r for r in rows if r["schema"] == "vramtrack.fleet_scan.v1")
        self.assertEqual((end["blank_values"], end["unnamed_series"]), (96, 1))
        text = self.scan(server.url, code=1).stdout.decode()
        self.assertNotIn("\x1b", text)
        self.assertNotIn("‮", text)
        self.assertIn("1 series skipped: no label names a GPU", text)
        self.assertIn("without a known capacity", text)

    def test_samples_out_of_order_and_twice(self):
        server = self.serve(Prometheus, [])
        samples = leaking(11)
        server.write([(labels("late", 0), samples[240:])])
        server.write([(labels("late", 0), samples[:240])])
        server.write([(labels("late", 0), samples[200:300])])
        row = self.lines(server.url, code=1)["analysis"][0]
        self.assertEqual(row["samples"], 480)
        self.assertTrue(row["alerts"])


def exposed(path):
    """The series of a file in Prometheus's text format: [(labels, [(ms, value), ...]), ...]."""
    series = {}
    for line in path.read_text().splitlines():
        if sample := re.fullmatch(r'(\w+)\{(.*)\} (\S+) (\S+)', line):
            name, its_labels, value, time_s = sample.groups()
            key = (("__name__", name), *re.findall(r'(\w+)="([^"]*)"', its_labels))
            series.setdefault(key, []).append((int(float(time_s) * 1000), float(value)))
    return [(dict(key), samples) for key, samples in series.items()]


@installed(Prometheus)
class Scrapes(Scan):
    """Scrapes of the shape of public ones, which tests/cli/log_cases.py reads as logs."""

    def scan_file(self, name):
        """What a scan of the file's metrics prints, as text and as JSON."""
        server = self.serve(Prometheus, exposed(FIXTURES / "log_cases" / name))
        span = ["--since", "2026-09-21T14:00:00Z", "--until", "2026-09-21T18:04:20Z"]
        done = [subprocess.run([BINARY, "fleet", "scan", "--url", server.url, *span, "--format", form], capture_output=True, text=True, timeout=300)
                for form in ("text", "json")]
        for one in done:
            self.assertEqual(one.returncode, 1, one.stdout + one.stderr)
        return [one.stdout for one in done]

    def leaking(self, output):
        rows = [row for row in map(json.loads, output.splitlines()) if "verdict" in row]
        return {(row["series"]["host"], row["series"]["index"]) for row in rows if row["verdict"]["leak"]}

    def test_the_pod_of_the_exporter_is_not_the_job_of_the_gpu(self):
        text, rows = self.scan_file("exporters_own_pod.om")
        self.assertEqual(self.leaking(rows), {("node-7", 1)}, rows)
        for output in (text, rows):
            self.assertNotIn("dcgm-exporter-abcde", output)
            self.assertNotIn("gpu-operator", output)

    def test_the_metrics_of_ray_are_read(self):
        _, rows = self.scan_file("ray_metrics.om")
        self.assertEqual(self.leaking(rows), {("10.0.4.4", 0)}, rows)


@installed(Prometheus)
class Cluster(Scan):
    """Names of machines that change, several exporters and servers for one GPU, labels of the scrape among those of the work."""

    def test_each_gpu_is_told_once_with_its_work(self):
        series, truths = cluster(20, leak_every=19)
        server = self.serve(Prometheus, series)
        for path in ("remote-read", "query-range"):
            with self.subTest(path):
                result = self.scan(server.url, "--format", "json", "--read-by", path, code=1)
                seen = figures([json.loads(line) for line in result.stdout.splitlines()], truths)
                self.assertTrue(is_right(seen), seen)

    def test_a_gpu_without_a_uuid_is_said(self):
        server = self.serve(Prometheus, with_capacity([(dict(labels("node1", 0), UUID=""), healthy(1))]))
        rows = self.lines(server.url, code=0)
        self.assertEqual(rows["fleet_scan"][0]["gpus_without_uuid"], 1)
        self.assertIn("1 GPU without a UUID: distinguished by machine and number.", self.scan(server.url, code=0).stdout.decode())


@installed(Prometheus)
class Findings(Scan):
    def test_a_version_a_node_and_a_signature(self):
        hours = 4
        half = END_MS - 2 * 3_600_000
        series, more = [], []
        for n in range(3):  # resnet is healthy in image :1 and leaks in :2, on every node
            # The exporter names the pod alone; its image is known from another one.
            for version, pod, samples in ((1, f"resnet-7c9d8b6f5-bbbb{'bcd'[n]}", healthy(n, 2, half)),
                                          (2, f"resnet-5d4f6c7b8-xxxx{'bcd'[n]}", leaking(20 + n, 2, 80))):
                series.append((labels(f"a{n}", 0, pod=pod, namespace="ml", container="train"), samples))
                more.append(({"__name__": "kube_pod_container_info", "namespace": "ml", "pod": pod, "container": "train",
                              "image": f"resnet:{version}", "exported_pod": "kube-state-metrics"}, [(ms, 1) for ms, _ in samples]))
        more.append(({"__name__": "vllm:kv_cache_usage_perc", "instance": "a1:8000"}, [(END_MS - 30_000, 0.875)]))
        for n in range(6):  # two runs of bert leak on b0 alone
            for run in range(2):
                pod = labels(f"b{n}", run, pod=f"bert-{run}", namespace="ml", image="bert:1", container="train", hpc_job=f"9{run}",
                             job_name="bert")
                series.append((pod, leaking(40 + run, hours) if n == 0 else healthy(50 + 2 * n + run, hours)))
        rows = self.lines(self.serve(Prometheus, with_capacity(series) + more).url, code=1)
        kinds = {f["kind"]: f for f in rows["fleet_finding"]}
        version = kinds["version"]
        self.assertEqual((version["program"], version["before"], version["since"]), ("ml/resnet/train", "resnet:1", "resnet:2"))
        self.assertEqual(sorted(version["nodes"]), ["a0", "a1", "a2"])
        signature = kinds["signature"]
        self.assertEqual((signature["program"], sorted(signature["nodes"])), ("resnet:2", ["a0", "a1", "a2"]))
        node = kinds["node"]
        self.assertEqual(node["nodes"], ["b0"])
        self.assertLess(node["p_value"], 0.05)
        jobs = {j["job"]: j for j in rows["fleet_job"]}
        self.assertEqual(jobs["ml/resnet"]["cache_ratio"], 0.875)
        self.assertIsNone(jobs["job 90"]["cache_ratio"])
        self.assertEqual(jobs["job 90"]["leaking_nodes"], ["b0"])
        self.assertEqual((jobs["job 90"]["gpus"], len(jobs["job 90"]["nodes"])), (6, 6))
        self.assertAlmostEqual(jobs["job 90"]["gpu_hours"], 24, delta=0.5)


if __name__ == "__main__":
    unittest.main()
