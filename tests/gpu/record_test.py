"""record.sh end to end as a dry run, and the parts of record.py: python3 record_test.py

VRAMTRACK_FAKE_LIBRARY, when set, names a fake libnvidia-ml.so.1 (tests/fake/nvml) for the test of nvml.py.
"""
import argparse
import csv
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import pack
import record

HERE = pathlib.Path(__file__).resolve().parent
GIB = 1 << 30
MIB = 1 << 20


def run(name="one", expandable=0):
    return record.Run(name, "pytorch", [], "kind", 1, "gradual_leak", "", expandable)


class EndToEnd(unittest.TestCase):
    def test_a_dry_run_records_what_can_run_and_says_what_cannot(self):
        if not shutil.which(os.environ.get("CC", "cc")):
            self.skipTest("no C compiler")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for module in ("torch", "jax", "numpy", "cupy"):  # as if they were not installed, wherever the test runs
                (folder / f"{module}.py").write_text(f"raise ImportError('no {module} for this test')\n")
            done = subprocess.run([str(HERE / "record.sh"), str(folder / "out"), "--dry-run", "--seconds", "8"], capture_output=True, text=True,
                                  env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(folder)}, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for framework, module in (("pytorch", "torch"), ("jax", "jax"), ("cupy", "numpy")):
                self.assertRegex(done.stdout, f"left out: {framework}: .*no {module} for this test")

            recordings = folder / "out" / "recordings"
            labels = pack.rows_of(recordings / "labels.csv")
            self.assertEqual(len(labels), 10, done.stdout)
            self.assertEqual({label["wave"] for label in labels}, {"1", "2"})
            self.assertEqual({label["gpu"] for label in labels}, {"dry run"})
            for label in labels:
                with self.subTest(name=label["name"]), gzip.open(recordings / f"{label['name']}.csv.gz", "rt") as file:
                    rows = list(csv.DictReader(file))
                    self.assertEqual(list(rows[0]), pack.SERIES)
                    self.assertEqual(label["leak"] == "1", label["onset_s"] != "")
                    times = [float(row["t_s"]) for row in rows]
                    self.assertEqual(times, sorted(times))
                    self.assertEqual(rows[0]["process_used_bytes"], "")
                    seen = [int(row["process_used_bytes"]) for row in rows if row["process_used_bytes"]]
                    self.assertGreater(len(seen), 3)
                    # What the process holds beside its allocator is a median: a reading of it is late by up to a step of the program.
                    self.assertLessEqual(max(seen), int(label["process_limit_bytes"]) + 16 * MIB)
                    self.assertGreater(max(int(row["device_used_bytes"]) for row in rows), max(seen))

    def test_without_a_gpu_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, str(HERE / "record.py"), folder, "--nvml", "no-such-library.so"], capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(done.returncode, 77)
            self.assertIn("no NVIDIA driver", done.stderr)


class Parts(unittest.TestCase):
    def test_all_of_a_wave_fit_on_the_card_and_in_main_memory(self):
        for card, host, processors, runs in ((139 * GIB, 120 * GIB, 16, 67), (24 * GIB, 60 * GIB, 16, 67), (8 * GIB, 16 * GIB, 4, 67)):
            at_once, cap = record.budget([run()] * runs, 2, card, host, processors)
            self.assertLessEqual(at_once * (cap + record.OVERHEAD_BYTES), card)
            self.assertLessEqual(at_once * record.HOST_BYTES, host)
            self.assertLessEqual(at_once, 3 * processors)
            self.assertGreaterEqual(cap, record.LEAST_CAP_BYTES)
        self.assertEqual(record.budget([run()] * 67, 2, 139 * GIB, 120 * GIB, 16)[0], 34)  # a large card takes them all

    def test_expandable_segments_are_set_only_where_they_are_asked_for(self):
        options = argparse.Namespace(capacity_bytes=GIB, uuid="GPU-7")
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:32"
        self.addCleanup(os.environ.pop, "PYTORCH_CUDA_ALLOC_CONF")
        self.assertNotIn("PYTORCH_CUDA_ALLOC_CONF", record.environment(options, run()))
        self.assertEqual(record.environment(options)["CUDA_VISIBLE_DEVICES"], "GPU-7")
        self.assertEqual(record.environment(options, run(expandable=1))["PYTORCH_CUDA_ALLOC_CONF"], "expandable_segments:True")

    def test_a_program_that_does_not_end_is_stopped(self):
        endless, short = run("endless"), run("short")
        endless.process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        short.process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
        short.process.wait()
        record.await_end([endless, short], deadline=time.time() - 1)
        self.assertEqual((endless.exit_status, short.exit_status), (-9, 3))
        self.assertGreater(endless.ended_s, 0)

    def test_the_driver_is_read(self):
        library = os.environ.get("VRAMTRACK_FAKE_LIBRARY")
        if not library:
            self.skipTest("VRAMTRACK_FAKE_LIBRARY names no fake libnvidia-ml.so.1")
        with tempfile.TemporaryDirectory() as folder:
            scenario = pathlib.Path(folder) / "scenario.txt"
            scenario.write_text('gpu 0 uuid=GPU-0 name="Fake H200" pci=00000000:1D:00.0 total=80G used=1G reserved=500M\n'
                                "process gpu=0 pid=4242 list=C used=100M\nprocess gpu=0 pid=4243 list=C used=none\n")
            code = ("import nvml, sys\ngpu = nvml.Gpu(sys.argv[1])\n"
                    "print(gpu.name, gpu.uuid, gpu.capacity_bytes, gpu.used_bytes(), gpu.processes(), sep='|')\n")
            done = subprocess.run([sys.executable, "-c", code, library], cwd=HERE, capture_output=True, text=True, timeout=60,
                                  env={**os.environ, "VRAMTRACK_FAKE_NVML": str(scenario)})
            self.assertEqual(done.stdout, f"Fake H200|GPU-0|{80 * GIB}|{GIB + 100 * MIB}|{{4242: {100 * MIB}}}\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
