"""pack.py on a small run made up here: python3 pack_test.py"""
import csv
import gzip
import pathlib
import tempfile
import unittest

import pack

MIB = 1 << 20
EPOCH = 1767225600.0
MACHINE = "key,value\ngpu,GPU X\ndriver,1.2\ncapacity_bytes,8589934592\ndry_run,{dry_run}\nrecorded,2026-01-01\n"
RUN_COLUMNS = "name,framework,kind,leak,pattern,twin,expandable,wave,cap_bytes,pid,started_s,ended_s,exit_status\n"


class Raw:
    """A recording of 30 s: the process lives from 10 s to 20 s, its loop begins at 12 s and it grows by 1 MiB a second."""

    def __init__(self, folder, dry_run=0):
        self.path = pathlib.Path(folder)
        (self.path / "machine.csv").write_text(MACHINE.format(dry_run=dry_run))
        self.runs = ""
        samples = ["time_s,pid,used_bytes"]
        for tenth in range(300):
            t = tenth / 10
            samples.append(f"{EPOCH + t:.3f},0,{100 * MIB}")
            if 11 <= t < 20:
                samples.append(f"{EPOCH + t:.3f},77,{(50 + int(t)) * MIB}")
        (self.path / "samples.csv").write_text("\n".join(samples) + "\n")

    def add(self, name="leaker", leak=1, status=0, events=(("framework", 11, "PyTorch 2"), ("start", 12, ""), ("onset", 13, ""),
                                                            ("oom", 19.5, "why"), ("end", 19.6, ""))):
        self.runs += f"{name},pytorch,kind,{leak},gradual_leak,twin,0,1,{64 * MIB},77,{EPOCH + 10},{EPOCH + 20},{status}\n"
        (self.path / "runs.csv").write_text(RUN_COLUMNS + self.runs)
        (self.path / f"{name}.events.csv").write_text(
            "time_s,event,detail\n" + "".join(f"{EPOCH + t:.3f},{event},{detail}\n" for event, t, detail in events))
        truth = "".join(f"{EPOCH + 12 + n / 10:.3f},{n},{(12 + n // 10) * MIB},0\n" for n in range(76))
        (self.path / f"{name}.truth.csv").write_text("time_s,allocated_bytes,reserved_bytes,live_bytes\n" + truth + "1767225620.0,12")


class Pack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.target = pathlib.Path(folder.name) / "packed"
        self.raw_path = pathlib.Path(folder.name) / "raw"
        self.raw_path.mkdir()
        self.raw = Raw(self.raw_path)

    def pack(self):
        return pack.main([str(self.raw_path), str(self.target)])

    def labels(self):
        with (self.target / "labels.csv").open() as file:
            return {row["name"]: row for row in csv.DictReader(file)}

    def series(self, name="leaker"):
        with gzip.open(self.target / f"{name}.csv.gz", "rt") as file:
            return list(csv.DictReader(file))

    def test_times_begin_with_the_first_sample_kept(self):
        self.raw.add()
        self.assertEqual(self.pack(), 0)
        label = self.labels()["leaker"]
        self.assertEqual([label[key] for key in ("start_s", "onset_s", "oom_s", "end_s")], ["4.00", "5.00", "11.50", "11.60"])
        series = self.series()
        self.assertEqual(series[0]["t_s"], "0.00")
        self.assertEqual(len(series), 141)  # 8 s to 22 s, both ends in

    def test_what_is_not_known_is_empty_and_not_zero(self):
        self.raw.add()
        self.pack()
        series = self.series()
        self.assertEqual((series[0]["process_used_bytes"], series[0]["allocated_bytes"]), ("", ""))
        during = series[60]  # 14 s
        self.assertEqual(during["process_used_bytes"], str(64 * MIB))
        self.assertEqual((during["allocated_bytes"], during["reserved_bytes"]), ("20", str(14 * MIB)))
        self.assertEqual((series[-1]["process_used_bytes"], series[-1]["reserved_bytes"]), ("", ""))
        self.assertTrue(all(row["device_used_bytes"] == str(100 * MIB) for row in series))

    def test_the_limit_of_the_process_is_the_cap_and_what_it_holds_beside_it(self):
        self.raw.add()
        self.pack()
        self.assertEqual(self.labels()["leaker"]["process_limit_bytes"], str((64 + 50) * MIB))

    def test_what_failed_or_contradicts_its_label_is_left_out(self):
        oom = (("start", 12, ""), ("oom", 19, ""), ("end", 19, ""))
        self.raw.add("failed", status=1)
        self.raw.add("leaks_without_onset", events=oom)
        self.raw.add("healthy_and_out_of_memory", leak=0, events=oom)
        self.raw.add("never_began", events=(("framework", 11, ""), ("end", 19, "")))
        self.assertEqual(self.pack(), 1)
        self.assertFalse((self.target / "labels.csv").exists())
        self.raw.add("good")
        self.assertEqual(self.pack(), 0)
        self.assertEqual(list(self.labels()), ["good"])

    def test_a_leak_that_did_not_meet_its_end_has_no_time_of_it(self):
        self.raw.add(events=(("start", 12, ""), ("onset", 13, ""), ("end", 19.6, "")))
        self.pack()
        self.assertEqual(self.labels()["leaker"]["oom_s"], "")

    def test_the_same_run_gives_the_same_bytes(self):
        self.raw.add()
        self.pack()
        first = (self.target / "leaker.csv.gz").read_bytes()
        self.pack()
        self.assertEqual(first, (self.target / "leaker.csv.gz").read_bytes())

    def test_recordings_that_are_there_stay(self):
        self.raw.add("before")
        self.pack()
        self.raw.runs = ""
        self.raw.add("after")
        self.pack()
        self.assertEqual(list(self.labels()), ["after", "before"])

    def test_a_dry_run_is_not_packed_into_the_repository(self):
        Raw(self.raw_path, dry_run=1).add()
        self.assertEqual(pack.main([str(self.raw_path), str(pack.REAL)]), 2)

    def test_recordings_in_the_repository_are_real(self):
        labels = pack.REAL / "labels.csv"
        if not labels.exists():
            self.skipTest("no recordings yet: no GPU was at hand")
        rows = pack.rows_of(labels)
        self.assertEqual([row["name"] for row in rows if row["gpu"] == "dry run"], [])
        self.assertEqual({path.name for path in pack.REAL.glob("*.csv.gz")}, {f"{row['name']}.csv.gz" for row in rows})


if __name__ == "__main__":
    unittest.main()
