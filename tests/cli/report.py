"""vramtrack report from outside: from logs and from a store, every format, the period, the money, its errors."""
import json
import os
import pathlib
import re
import sqlite3
import sys
import time
import unittest
from html.parser import HTMLParser

from sandbox import Sandbox, drm_machine, leak_log, steady_log

BINARY = sys.argv.pop(1)
TREND = ["--detector", "linear_trend"]
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []
        self.links = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href", "action", "data")]


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        self.box.write("leak.csv", leak_log())
        self.box.write("steady.csv", steady_log())

    def report(self, *args, exit_code=0, env=None):
        result = self.box.run("report", *args, env=env)
        self.assertEqual(result.returncode, exit_code, result.stderr.decode())
        return result.stdout.decode()

    def json(self, *args, exit_code=0):
        return json.loads(self.report(*args, "--format", "json", exit_code=exit_code))

    def fails(self, *args):
        result = self.box.run("report", *args)
        self.assertEqual((result.returncode, result.stdout), (2, b""))
        err = result.stderr.decode()
        self.assertEqual(err.count("\n"), 1, err)
        return err


class Logs(ReportTest):
    def test_exit_codes_are_analyzes(self):
        for file, code in (("leak.csv", 1), ("steady.csv", 0)):
            self.assertEqual(self.box.run("analyze", *TREND, file).returncode, code)
            self.report(*TREND, file, exit_code=code)
        self.assertIn("missing.csv", self.fails("missing.csv"))

    def test_what_the_end_of_the_recording_decides_is_reported_too(self):
        rows = "".join(f"2026/11/20 {9 + i // 360:02}:{i // 6 % 60:02}:{i % 6 * 10:02}.000, 0, {30000 + max(0, i - 90) * 25}, 81559\n" for i in range(200))
        self.box.write("young.csv", "timestamp, index, memory.used [MiB], memory.total [MiB]\n" + rows)
        analyzed = self.box.run("analyze", "young.csv")
        self.assertIn("when the recording ended", analyzed.stdout.decode())
        self.assertEqual(analyzed.returncode, 1)
        self.assertIn("GPU memory: GPU 0 leaks", self.report("young.csv", exit_code=1))

    def test_every_format_says_the_same_end(self):
        row = json.loads(self.box.run("analyze", *TREND, "--format", "json", "leak.csv").stdout)
        report = self.json(*TREND, "leak.csv", exit_code=1)
        self.assertEqual(report["schema"], "vramtrack.report.v1")
        self.assertEqual(report["series"][0]["verdict"], row["verdict"])
        end = re.search(r"out of memory in (\S+ \S+)", self.box.run("analyze", *TREND, "leak.csv").stdout.decode())[1].strip(",\n ")
        for form in ("text", "md", "html"):
            self.assertIn(end, self.report(*TREND, "--format", form, "leak.csv", exit_code=1), form)

    def test_the_same_recording_gives_the_same_bytes(self):
        for form in ("text", "md", "json", "html"):
            one, again = (self.report(*TREND, "--format", form, "leak.csv", exit_code=1) for _ in range(2))
            self.assertEqual(one, again)

    def test_a_period_is_cut_out_of_the_recording(self):
        whole = self.json(*TREND, "--timezone", "UTC", "leak.csv", exit_code=1)
        part = self.json(*TREND, "--timezone", "UTC", "--since", "2026-01-02T03:20", "--until", "2026-01-02T03:30", "leak.csv", exit_code=1)
        self.assertEqual(part["start"], "2026-01-02T03:20:00Z")
        self.assertEqual(part["samples"], 120)
        self.assertEqual(part["duration_s"], 595)
        self.assertLess(part["samples"], whole["samples"])
        # Data from before the period is judged, too: the leak is known from its first minute on.
        self.assertTrue(part["series"][0]["verdict"]["leak"])
        before = self.json(*TREND, "--timezone", "UTC", "--until", "2026-01-02T03:06", "leak.csv")
        self.assertEqual(before["series"][0]["alerts"], [])
        self.assertNotIn("duration", self.fails("--since", "2027-01-01", "leak.csv"))
        old = self.fails("--timezone", "UTC", "--since", "1h", "leak.csv")
        self.assertIn("leak.csv is from 2026-01-02T03:", old)
        self.assertNotIn("--input-format", old)
        self.assertIn("and later", self.fails("--timezone", "UTC", "--until", "2025-01-01", "leak.csv"))
        self.assertIn("--since must be before --until", self.fails("--since", "2027-01-02", "--until", "2027-01-01", "leak.csv"))

    def test_a_file_has_the_form_that_its_name_ends_in(self):
        self.box.write("leak.csv", leak_log())
        begins = {"r.html": "<!doctype html>", "r.md": "# GPU memory", "r.json": '{"schema"', "r.txt": "GPU memory", "r": "GPU memory"}
        for name, begin in begins.items():
            result = self.box.run("report", *TREND, "--output", name, "leak.csv")
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertRegex(result.stderr.decode(), f"wrote .* to {name}\n$")
            self.assertTrue((self.box.work / name).read_text().lower().startswith(begin.lower()), name)
        self.box.run("report", *TREND, "--format", "json", "--output", "r.html", "leak.csv")
        self.assertTrue((self.box.work / "r.html").read_text().startswith('{"schema"'), "what was asked for wins")
        unknown = self.box.run("report", *TREND, "--output", "r.pdf", "leak.csv")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn(b"--output r.pdf: ", unknown.stderr)
        self.assertFalse((self.box.work / "r.pdf").exists())

    def test_processes_and_money(self):
        self.box.run("simulate", *TREND, "--csv", "gpu.csv", "--process-csv", "apps.csv")
        # Up to the point where it still runs.
        lines = (self.box.work / "gpu.csv").read_text().splitlines()
        last = lines[400].split(",")[0]
        (self.box.work / "gpu.csv").write_text("\n".join(lines[:401]) + "\n")
        apps = (self.box.work / "apps.csv").read_text().splitlines()
        (self.box.work / "apps.csv").write_text("\n".join(a for i, a in enumerate(apps) if i == 0 or a.split(",")[0] <= last) + "\n")
        args = ["--timezone", "UTC", "--set", "min-r-squared=0.1", *TREND, "gpu.csv", "apps.csv"]
        plain = self.json(*args, exit_code=1)["money"]
        self.assertIsNone(plain["usd_per_gpu_hour"])
        self.assertEqual([j["id"] for j in plain["jobs"]], ["4242"])
        self.assertIsNone(plain["lost_usd"])
        self.assertGreater(plain["lost_gpu_hours"]["mid"], 0)
        money = self.json(*args, "--set", "cost.usd-per-gpu-hour=4", "--checkpoint-every", "30min", exit_code=1)["money"]
        self.assertEqual(money["jobs"][0]["basis"], "checkpoint_every")
        self.assertEqual(money["lost_usd"], {"low": 0.2, "mid": 1.0, "high": 1.8})
        self.assertEqual(money["jobs"][0]["lost_gpu_hours"]["mid"], 0.25)
        known = self.json(*args, "--last-checkpoint", f"4242={last.replace('/', '-').replace(' ', 'T')}", exit_code=1)["money"]["jobs"][0]
        self.assertEqual(known["basis"], "last_checkpoint")
        self.assertAlmostEqual(known["lost_gpu_hours"]["mid"], known["oom_in_s"]["mid"] / 3600, places=3)
        self.assertIn("--last-checkpoint", self.fails(*args, "--last-checkpoint", "4242=soon"))

    def test_who_has_died_loses_nothing_any_more(self):
        self.box.run("simulate", *TREND, "--csv", "gpu.csv", "--process-csv", "apps.csv")
        gpu = (self.box.work / "gpu.csv").read_text().splitlines()
        apps = (self.box.work / "apps.csv").read_text().splitlines()
        last = gpu[300].split(",")[0]  # the process log ends here, but the device's continues
        (self.box.work / "gpu.csv").write_text("\n".join(gpu[:401]) + "\n")
        (self.box.work / "apps.csv").write_text("\n".join(a for i, a in enumerate(apps) if i == 0 or a.split(",")[0] <= last) + "\n")
        report = self.json("--timezone", "UTC", *TREND, "--set", "min-r-squared=0.1", "gpu.csv", "apps.csv", exit_code=1)
        died = [s for s in report["series"] if s["series"]["pid"] == 4242]
        self.assertEqual([s["gone"] or s["ended"] for s in died], [True])
        self.assertEqual(report["money"]["jobs"], [])

    def test_gpus_are_chosen(self):
        self.report(*TREND, "--gpu", "0", "leak.csv", exit_code=1)
        self.assertIn("--gpu 7: ", self.fails("--gpu", "7", "leak.csv"))

    def test_the_page_is_one_file_without_scripts(self):
        command = "<script>alert(1)</script><img src=http://evil.example/x>"
        self.box.write("apps.csv", "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n" + "".join(
            f"2026/01/02 03:{4 + n // 12:02}:{n * 5 % 60 + 5 if n * 5 % 60 + 5 < 60 else 59:02}.000, GPU-0, 7, {command}, {3000 + 10 * n} MiB\n" for n in range(100)))
        page = self.report("--format", "html", "apps.csv", exit_code=self.box.run("analyze", "apps.csv").returncode)
        self.assertIn("&lt;script&gt;", page)
        tags = Tags()
        tags.feed(page)
        self.assertFalse(set(tags.tags) & {"script", "img", "iframe", "object", "link", "form"})
        for link in tags.links:
            self.assertTrue(link.startswith("data:"), link[:80])

    def test_output_goes_into_a_file_whole_or_not_at_all(self):
        self.assertEqual(self.report(*TREND, "--format", "html", "--output", "r.html", "leak.csv", exit_code=1), "")
        before = (self.box.work / "r.html").read_text()
        self.assertTrue(before.endswith("</html>\n"))
        self.assertIn("No such file", self.fails(*TREND, "--output", "no/such/r.html", "leak.csv"))
        self.fails(*TREND, "--format", "html", "--output", "r.html", "missing.csv")
        self.assertEqual((self.box.work / "r.html").read_text(), before)
        self.assertEqual([p.name for p in self.box.work.glob("r.html*")], ["r.html"])

    def test_recordings_that_do_not_belong_together(self):
        self.assertIn("name one", self.fails("leak.csv", "steady.csv"))

    def test_a_format_that_is_not(self):
        self.assertIn("pdf", self.fails("--format", "pdf", "leak.csv"))


class Stores(ReportTest):
    def test_no_store_yet(self):
        self.assertIn("vramtrack.db", self.fails())

    def test_what_was_watched_is_reported(self):
        self.box.run("watch", "--interval", "0.1s", "--duration", "1s", *drm_machine())
        report = self.json("--since", "1h")
        self.assertEqual(report["files"], [str(self.box.path / "home/.local/state/vramtrack/vramtrack.db")])
        self.assertGreater(report["samples"], 0)
        self.assertIn("AMD Radeon PRO W7900", [s["series"]["name"] for s in report["series"]])
        self.assertIn("its samples are from 20", self.fails("--since", "2020-01-01", "--until", "2020-01-02"))

    @unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
    def test_memory_held_while_no_kernel_runs_is_idle(self):
        for busy, idle in ((40, False), (0, True)):
            self.box.write("nvml.txt", f"gpu 0 uuid=GPU-{busy} name=Fake pci=00000000:1D:00.0 total=80G used=1G util={busy}\n"
                                       "process gpu=0 pid=self list=C used=8G\n")
            self.box.run("watch", "--interval", "0.1s", "--duration", "2s", "--source", "nvml", "--set", "sources.nvml-library=" + FAKE,
                         env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
            told = {d["device"]: d for d in self.json("--since", "1h")["money"]["idle"]}[f"GPU-{busy}"]
            self.assertEqual(told["no_kernel_hours"] > 0, idle, told)

    @unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
    def test_alerts_are_those_that_live_raised(self):
        self.box.write("nvml.txt", "gpu 0 uuid=GPU-0 name=Fake pci=00000000:1D:00.0 total=80G used=1G\n"
                                   "process gpu=0 pid=self list=C used=1G+8M\n")
        settings = [*TREND, "--set", "minimum-duration-minutes=0", "--set", "minimum-samples=10"]
        watched = self.box.run("watch", *settings, "--json", "--interval", "0.1s", "--every", "1h", "--duration", "3s", "--source", "nvml",
                               "--set", "sources.nvml-library=" + FAKE, env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        live = [r for r in map(json.loads, watched.stdout.decode().splitlines()) if r["schema"] == "vramtrack.alert.v1" and r["event"] == "raised"]
        report = self.json(*TREND, exit_code=1)  # with another rule now, the alerts are those that were raised then
        told = [a for s in report["series"] for a in s["alerts"]]
        self.assertEqual(sorted(a["raised"] for a in told), sorted(r["alert"]["raised"] for r in live))
        self.assertEqual({a["watch_ended"] for a in told}, {False})
        # Another watch: it is not known how those continued.
        self.box.run("watch", *settings, "--no-experience", "--interval", "0.1s", "--duration", "0.5s", *drm_machine())
        report = self.json(*TREND, exit_code=1)
        self.assertEqual({a["watch_ended"] for s in report["series"] for a in s["alerts"]}, {True})

    def test_the_acts_of_policies_are_reported(self):
        self.box.run("watch", "--interval", "0.1s", "--duration", "0.5s", *drm_machine())
        path = self.box.path / "home/.local/state/vramtrack/vramtrack.db.acts.jsonl"
        act = {"schema": "vramtrack.act.v1", "event": "done", "time_ns": time.time_ns(), "written_ns": time.time_ns(), "climb": "c-1", "policy": "training",
               "step": 0, "action": "terminate", "text": "SIGTERM was sent", "dry_run": False, "device": {"id": "GPU-0"},
               "process": {"pid": 4242, "start_ticks": 7, "user": "ada", "command": "python train.py"}, "evidence": {"because": "it leaks"}}
        long_ago = {**act, "time_ns": 1, "text": "long ago"}
        path.write_text("".join(json.dumps(a) + "\n" for a in (long_ago, {**act, "event": "intent"}, act)))
        acts = self.json("--since", "1h")["acts"]
        self.assertEqual([(a["policy"], a["action"], a["event"], a["text"], a["because"]) for a in acts],
                         [("training", "terminate", "done", "SIGTERM was sent", "it leaks")])
        self.assertIn("4242", acts[0]["subject"])
        for form in ("text", "md", "html"):
            said = self.report("--since", "1h", "--format", form)
            self.assertIn("Actions of policies", said)
            self.assertIn("SIGTERM was sent", said)

    def test_a_damaged_store_is_an_error(self):
        self.box.run("watch", "--interval", "0.1s", "--duration", "0.5s", *drm_machine())
        path = pathlib.Path(self.box.path / "home/.local/state/vramtrack/vramtrack.db")
        with sqlite3.connect(path) as db:
            db.execute("DROP TABLE series")
        self.assertIn("cannot report", self.fails("--since", "1h"))


if __name__ == "__main__":
    unittest.main(verbosity=1)
