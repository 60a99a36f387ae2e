"""One conclusion of a recording, in every form, with one exit status; and no sentence of it contradicts another.

Every scenario, built in or of tests/scenarios, is simulated and its logs are read again; every recording of
tests/recordings is read too. What is concluded must be the same in the JSON of analyze, replay, report and simulate, and
in the words of analyze, replay and report. The figures that top shows of a leak that has ended are those, too."""
import csv
import datetime
import gzip
import itertools
import json
import re
import sys
import unittest

from sandbox import MIB, TESTS, Sandbox

BINARY = sys.argv.pop(1)
SCENARIOS = sorted((TESTS / "scenarios").glob("*.toml"))
AT_REST = ("steady", "cycling", "too_short")
#: Programs that answer requests have no checkpoint.
SERVERS = ("vllm", "sglang", "triton", "ollama", "llama")


def rows_of(result, schema="vramtrack.analysis.v1"):
    return [row for row in map(json.loads, result.stdout.decode().splitlines()) if row["schema"] == schema]


def key_of(row):
    series = row["series"]
    return series["metric"], series["device"], series["pid"], row["start"], row["samples"]


def conclusion_of(row, is_simulated=False):
    """What all forms must agree on. A watch advises to watch on, and says when its alerts came."""
    told = row["told"]
    verdict = {name: value for name, value in row["verdict"].items() if name not in ("framework", "causes", "advice", "dissent")}
    alerts = [{name: a[name] for name in ("raised_s", "cleared_s", "ended", "severity", "end_kind", "stage", "told")} for a in row["alerts"]]
    out = {"leaked": row["leaked"], "verdict": verdict, "alerts": alerts, "runs": row.get("runs"),
           "told": {name: told.get(name) for name in ("verdict", "headline", "tone", "word", "concern", "pattern", "severity", "forecast")}}
    if not is_simulated:
        out["advice"] = told.get("next")
        out["facts"] = told.get("facts")
    return out


class OneConclusion(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def run_all(self, files):
        """Checks every form of one recording against analyze's JSON; returns its rows."""
        zone = ["--timezone", "UTC"]
        analysed = self.box.run("analyze", *zone, "--format", "json", *files)
        self.assertIn(analysed.returncode, (0, 1), analysed.stderr)
        rows = rows_of(analysed)
        expected = {key_of(row): conclusion_of(row) for row in rows}
        self.assertEqual(analysed.returncode, int(any(row["leaked"] for row in rows)))
        replayed = self.box.run("replay", *zone, "--json", *files)
        self.check_same(rows_of(replayed), expected)
        reported = self.box.run("report", *zone, "--format", "json", *files)
        report = json.loads(reported.stdout)
        self.check_same(report["series"], expected, left_out="device_unattributed")  # it has no chart
        self.assertEqual(report["leak"], analysed.returncode == 1)
        texts = [self.box.run("analyze", *zone, *files), self.box.run("replay", *zone, *files), self.box.run("report", *zone, *files)]
        for form in (replayed, reported, *texts):
            self.assertEqual(form.returncode, analysed.returncode, form.args)
        for row in rows:
            if row["series"]["metric"] == "device_used":
                for text in texts:
                    self.assertIn(row["told"]["headline"], text.stdout.decode(), text.args)
            self.check_sentences(row)
        self.check_onsets(rows)
        for text in texts:
            self.check_text(text.stdout.decode())
        self.check_sampling(rows, texts[0].stdout.decode())
        devices = [row for row in rows if row["series"]["metric"] == "device_used"]
        if len(devices) == 1 and devices[0]["told"]["verdict"].startswith("LEAKED"):
            figures = r"(\S+ MiB/min)(?: \(.*?\))?, R² (\S+), probability of a leak (\d+ %)"
            screen = self.box.run("top", "--once", *zone, "--replay", *files).stdout.decode()
            self.assertEqual(re.search(" growth +" + figures, screen)[0].split(maxsplit=1)[1], re.search(figures, texts[0].stdout.decode())[0])
        return rows

    def check_same(self, rows, expected, left_out=None):
        got = {key_of(row): conclusion_of(row) for row in rows}
        self.assertEqual(set(), {key for key in set(got) ^ set(expected) if key[0] != left_out})
        for key, conclusion in got.items():
            self.assertEqual(conclusion, expected[key], key)

    def check_sentences(self, row):
        verdict, told = row["verdict"], row["told"]
        facts = {fact["label"]: fact["text"] for fact in reversed(told.get("facts", []))}
        # The words, the fields and the exit status agree about a leak.
        if told["verdict"].startswith("LEAKED"):
            self.assertTrue(row["leaked"], told)
            if "; now " not in told["verdict"]:
                self.assertGreater(verdict["growth_bytes_per_s"]["mid"], 0, verdict)
                if verdict["onset"]:  # a date, not the time since the start of a simulation
                    self.assertEqual(facts["since"][:19], verdict["onset"][:19])
                self.assertTrue(verdict["leak"] and verdict["state"] == "leaking" and verdict["confidence"] > 0.5, verdict)
        if verdict["leak"]:
            self.assertTrue(row["leaked"], verdict)
            self.assertIn("LEAK", told["verdict"])
        if not row["leaked"]:
            self.assertNotIn("LEAK", told["headline"])
        # An idle series has no rate, no onset and no predicted end.
        if verdict["state"] in AT_REST:
            self.assertEqual(verdict["growth_bytes_per_s"]["mid"], 0, verdict)
            self.assertEqual((verdict["oom_in_s"], verdict["oom_if_growth_continues_s"], verdict["onset"]), (None, None, None), verdict)
            self.assertNotIn("since", facts)
        # A series that has ended has no forecast.
        if "process ended" in told["headline"] or re.match(r"LEAKED|ran out|ended", told["verdict"]) and "; now " not in told["verdict"]:
            self.assertNotIn("forecast", told)
            self.assertIsNone(verdict["oom_in_s"])
            self.assertNotRegex(told.get("next", ""), "keep watching|record for longer|save a checkpoint")
        # A reason belongs to the verdict that it follows.
        if told["verdict"].startswith("LEAKED"):
            self.assertNotRegex(facts["because"], "no samples after|ended to tell|has not grown since")
        elif re.match("ran out|ended", told["verdict"]):
            self.assertNotIn("because", facts)
        if row["series"]["metric"] == "device_used":
            self.assertEqual("now" in facts, "; now " in told["verdict"] or "(since then: " in told["verdict"] or
                             (re.match("ran out|ended", told["verdict"]) is not None), told)
        command = (verdict["suspect"] or {}).get("command") or row["series"]["command"] or ""
        if any(server in command.lower() for server in SERVERS):
            self.assertNotIn("checkpoint", told.get("next", ""))
        if told.get("next", "").startswith("let pid"):
            self.assertTrue(verdict["leak"], told)

    def check_onsets(self, rows):
        """A device and the process that explains its growth, or that ended with it, name one onset."""
        for device in (row for row in rows if row["series"]["pid"] is None and row["verdict"]["leak"]):
            whose = device["verdict"]["suspect"] or device["verdict"]["end"] or {}
            for row in rows:
                if (row["series"]["pid"] and row["series"]["pid"] == whose.get("pid") and row["verdict"]["leak"] and
                        row["series"]["device"] == device["series"]["device"]):
                    self.assertEqual(row["verdict"]["onset"], device["verdict"]["onset"])

    def check_text(self, text):
        for line in text.splitlines():
            if "CLEARED" in line:
                self.assertNotRegex(line, "ran out|out of memory")
            if re.search(r": (steady|cycling)\b|now (steady|cycling)\b", line):
                self.assertNotRegex(line, r"[+-]\d[\d.]* [KMG]iB/", line)

    def check_sampling(self, rows, text):
        """Samples, length and interval of a line lead to each other, or the line says what is missing."""
        interval_s = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
        for count, rest in re.findall(r"; ([\d,]+) samples? over (.*)", text):
            row = next((r for r in rows if r["samples"] == int(count.replace(",", ""))), None)
            every = re.search(r"every (\d+)(ms|s|m|h)(?: \d\d[ms])?(.*)", rest)
            if not row or not every or row["samples"] < 20:
                continue
            length_s = row["duration_s"]
            covered_s = (row["samples"] - 1) * row["interval_s"]
            if "on average" in every[3]:
                self.assertGreater(covered_s, length_s, rest)
            elif "without samples" in every[3]:
                self.assertLess(covered_s, length_s, rest)
            else:
                self.assertAlmostEqual(covered_s / length_s, 1, delta=0.11, msg=rest)
                self.assertLessEqual(int(every[1]) * interval_s[every[2]], 1.5 * row["interval_s"] + 1, rest)

    def check_scenario(self, name):
        simulated = self.box.run("simulate", str(name), "--json", "--csv", "gpu.csv", "--process-csv", "apps.csv")
        self.assertEqual(simulated.returncode, 0, simulated.stderr)
        last = {}
        for row in rows_of(simulated):
            last[row["series"]["metric"], row["series"]["device"], row["series"]["pid"]] = row
            self.check_sentences(row)
        self.check_text(self.box.run("simulate", str(name)).stdout.decode())
        has_processes = (self.box.work / "apps.csv").read_text().count("\n") > 1
        rows = self.run_all(["gpu.csv", "apps.csv"] if has_processes else ["gpu.csv"])
        if len(rows) == 2 and rows[0]["told"]["verdict"].startswith("LEAKED"):
            self.check_that_rest_changes_nothing(rows[0])
        for row in last.values():
            if row["leaked"]:
                return "leaked"
        return ""

    def check_that_rest_changes_nothing(self, ended):
        """The GPU at rest for an hour after its only run has leaked: what is concluded is about the run."""
        lines = (self.box.work / "gpu.csv").read_text().splitlines()
        idle = min(lines[1:], key=lambda line: int(re.search(r"(\d+) MiB", line)[1]))
        last = datetime.datetime.strptime(lines[-1][:19], "%Y/%m/%d %H:%M:%S")
        for at in range(5, 3600, 5):
            lines.append(f"{last + datetime.timedelta(seconds=at):%Y/%m/%d %H:%M:%S}.000{idle[23:]}")
        self.box.write("gpu.csv", "\n".join(lines) + "\n")
        rested = self.run_all(["gpu.csv", "apps.csv"])[0]
        self.assertEqual(rested["told"]["verdict"], ended["told"]["verdict"] + " (since then: steady)")
        for field in ("leak", "state", "confidence", "growth_bytes_per_s", "onset", "because"):
            self.assertEqual(rested["verdict"][field], ended["verdict"][field], field)

    def test_scenarios_that_are_built_in(self):
        listed = self.box.run("simulate", "--list").stdout.decode().splitlines()
        self.assertGreaterEqual(len(listed), 9)
        for name in (line.split()[0] for line in listed):
            with self.subTest(scenario=name):
                self.check_scenario(name)

    def test_scenarios_of_the_tests(self):
        self.assertGreaterEqual(len(SCENARIOS), 65)
        for path in SCENARIOS:
            with self.subTest(scenario=path.stem):
                self.check_scenario(path)

    def test_recordings(self):
        """As a GPU's log at a tenth of the speed: the GPU is the part of it that the program was allowed to use."""
        with open(TESTS / "recordings/labels.csv") as labels:
            labelled = list(csv.DictReader(labels))
        self.assertGreaterEqual(len(labelled), 65)
        leaked = 0
        for label in labelled:
            with self.subTest(recording=label["name"]):
                self.write_log(label)
                rows = self.run_all(["gpu.csv"])
                leaked += any(row["told"]["verdict"].startswith("LEAKED") for row in rows)
        self.assertGreater(leaked, 5, "recordings that ran out of memory while they leaked")

    def write_log(self, label):
        total_mib = int(label["process_limit_bytes"]) // MIB
        lines = ["timestamp, index, name, memory.used [MiB], memory.total [MiB]"]
        with gzip.open(TESTS / "recordings" / f"{label['name']}.csv.gz", "rt") as recorded:
            for row in itertools.islice(csv.DictReader(recorded), 0, None, 5):
                at = datetime.datetime(2026, 1, 5, 8) + datetime.timedelta(seconds=round(10 * float(row["t_s"])))
                used_mib = int(row["process_used_bytes"] or 0) // MIB
                lines.append(f"{at:%Y/%m/%d %H:%M:%S.000}, 0, {label['gpu']}, {used_mib} MiB, {total_mib} MiB")
        self.box.write("gpu.csv", "\n".join(lines) + "\n")


if __name__ == "__main__":
    unittest.main(verbosity=1)
