"""One verdict, whichever way the samples come to the real binary: watched, replayed from the store, simulated, analysed
from the log, and analysed from a log that was cut short."""
import json
import os
import random
import sys
import unittest

from sandbox import Sandbox

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")

# Whole MiB, whole seconds, one process that does not end: all of this can be expressed in nvidia-smi's logs.
SCENARIO = """
name = "{name}"
seed = 5
start = 2026-01-05T08:00:00Z
period_s = 5
duration_s = "{duration}"
quantum_bytes = "2MiB"

[[device]]
name = "NVIDIA A10"
capacity_bytes = "24GiB"
baseline_bytes = "260MiB"

[[process]]
name = "trainer"
pid = 4242
command = "python train.py"
  [[process.shape]]
  kind = "constant"
  bytes = "9GiB"
  [[process.shape]]
  kind = "sawtooth"
  amplitude_bytes = "300MiB"
  period_s = 42
  period_spread = 0.2
{shape}
"""
LEAK = SCENARIO.format(name="leak", duration="2h", shape="""
  [[process.shape]]
  kind = "linear"
  rate_bytes_per_s = "80MiB/min"
  onset_s = "15min"
""")
RAMPS = SCENARIO.format(name="ramps", duration="3h", shape="""
  [[process.shape]]
  kind = "sawtooth"
  amplitude_bytes = "6GiB"
  period_s = 2700
""")
STEADY = SCENARIO.format(name="steady", duration="1h", shape="")


def rows_of(result, schema):
    return [row for row in (json.loads(line) for line in result.stdout.decode().splitlines()) if row["schema"] == schema]


def of_any_gpu(alert):
    """Without what follows from the id of its GPU, which a log does not know."""
    return {key: value for key, value in alert.items() if key != "incident"}


def comparable(row):
    """What every way in can know: not the files it came from, nor what only a live process tells of itself."""
    row = {key: value for key, value in row.items() if key not in ("files", "warnings", "skipped_lines")}
    for key in ("framework", "causes", "advice"):
        row["verdict"].pop(key)
    row["alerts"] = [of_any_gpu(alert) for alert in row["alerts"]]
    row["told"] = {key: row["told"][key] for key in ("verdict", "headline", "tone", "word", "concern")}
    return row


def alerts_until(row, time_s):
    """The alerts of an analysis raised by then, as they were then: one that ended later still stood."""
    alerts = []
    for alert in row["alerts"]:
        if alert["raised_s"] > time_s:
            continue
        alert = dict(alert)
        alert.pop("severity")  # the highest in its whole life
        if alert["cleared_s"] is not None and alert["cleared_s"] > time_s:
            alert.update(cleared=None, cleared_s=None, ended="standing")
        alerts.append(alert)
    return alerts


class SameVerdict(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def run_ok(self, *args, exit_codes=(0,), **kwargs):
        result = self.box.run(*args, **kwargs)
        self.assertIn(result.returncode, exit_codes, result.stderr.decode() + result.stdout.decode()[-2000:])
        return result

    def analyze(self, *files):
        rows = rows_of(self.run_ok("analyze", "--timezone", "UTC", "--format", "json", *files, exit_codes=(0, 1)), "vramtrack.analysis.v1")
        return {(r["series"]["metric"], r["series"]["pid"]): comparable(r) for r in rows}

    def simulate(self, scenario):
        self.box.write("scenario.toml", scenario)
        return self.run_ok("simulate", "scenario.toml", "--json", "--csv", "gpu.csv", "--process-csv", "apps.csv")

    def test_simulated_analysed_and_replayed_say_the_same_to_the_last_digit(self):
        for scenario, alerts in ((LEAK, 1), (RAMPS, 0), (STEADY, 0)):
            simulated = self.simulate(scenario)
            last = {}
            for row in rows_of(simulated, "vramtrack.analysis.v1"):
                last[row["series"]["metric"], row["series"]["pid"]] = comparable(row)
            analysed = self.analyze("gpu.csv", "apps.csv")
            self.assertEqual(set(analysed), {("device_used", None), ("device_unattributed", None), ("process_used", 4242)})
            self.assertGreaterEqual(len(analysed["device_used", None]["alerts"]), alerts)
            self.assertEqual(analysed, last)
            replayed = self.run_ok("replay", "--timezone", "UTC", "--json", "gpu.csv", "apps.csv", exit_codes=(1 if alerts else 0,))
            last_replayed = {(r["series"]["metric"], r["series"]["pid"]): comparable(r)
                             for r in rows_of(replayed, "vramtrack.analysis.v1")}
            self.assertEqual(last_replayed, last)
            told = [[(r["event"], r["series"]["pid"], of_any_gpu(r["alert"]), r["because"]) for r in rows_of(run, "vramtrack.alert.v1")]
                    for run in (simulated, replayed)]
            self.assertEqual(told[0], told[1])

    def test_a_log_cut_short_says_what_the_whole_log_said_then(self):
        rng = random.Random(3)
        for scenario in (LEAK, RAMPS):
            self.simulate(scenario)
            lines = (self.box.work / "gpu.csv").read_text().splitlines(keepends=True)
            whole = self.analyze("gpu.csv")["device_used", None]
            for _ in range(8):
                self.box.write("cut.csv", "".join(lines[:rng.randrange(40, len(lines))]))
                cut = self.analyze("cut.csv")["device_used", None]
                self.assertEqual(alerts_until(cut, cut["duration_s"]), alerts_until(whole, cut["duration_s"]))

    def test_repeated_lines_change_nothing(self):
        self.simulate(LEAK)
        lines = (self.box.work / "gpu.csv").read_text().splitlines(keepends=True)
        self.box.write("twice.csv", lines[0] + "".join(line + line for line in lines[1:]))
        once, twice = (self.analyze(file)["device_used", None] for file in ("gpu.csv", "twice.csv"))
        for row in (once, twice):
            row.pop("samples")
        self.assertEqual(once, twice)

    @unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
    def test_watched_and_replayed_say_the_same_to_the_last_digit(self):
        self.box.write("nvml.txt", "gpu 0 uuid=GPU-0 name=Fake pci=00000000:1D:00.0 total=80G used=1G\n"
                                   "process gpu=0 pid=self list=C used=1G+8M\n")
        settings = ["--json", "--set", "minimum-duration-minutes=0", "--set", "minimum-samples=10"]
        watched = self.run_ok("watch", *settings, "--interval", "0.1s", "--every", "1h", "--duration", "2s", "--source", "nvml",
                              "--set", "sources.nvml-library=" + FAKE, env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        replayed = self.run_ok("replay", *settings)
        live, again = ({(r["series"]["metric"], r["series"]["pid"]): comparable(r) for r in rows_of(run, "vramtrack.analysis.v1")
                        if r["samples"] > 1} for run in (watched, replayed))
        self.assertLessEqual({"device_used", "process_used"}, {metric for metric, _ in live})
        self.assertEqual(live, again)


if __name__ == "__main__":
    unittest.main(verbosity=1)
