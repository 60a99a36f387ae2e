"""What an NVIDIA H100 and its driver really printed (tests/fixtures/h100), by the real binary."""
import json
import sys
import unittest

from sandbox import FIXTURES, Sandbox

BINARY = sys.argv.pop(1)
H100 = FIXTURES / "h100"
MIB = 1 << 20


class RealGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sandbox = Sandbox(BINARY).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.sandbox.__exit__()

    def series(self, file):
        done = self.sandbox.run("analyze", "--format", "json", str(H100 / file))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual([row["skipped_lines"] for row in rows], [0] * len(rows))
        return {row["series"]["metric"]: row for row in rows}

    def explained(self, file):
        done = self.sandbox.run("explain", "--format", "json", str(H100 / file))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def test_the_logs_of_one_device_show_the_same(self):
        for file, samples in (("query_gpu.csv", 56), ("dmon.log", 29), ("screens.log", 10)):
            with self.subTest(file):
                device = self.series(file)["device_used"]
                self.assertEqual(device["samples"], samples)
                shown = self.sandbox.run("analyze", str(H100 / file)).stdout.decode()
                self.assertRegex(shown, "used +2[.]4(/79[.]6)? GiB now, peak 2[.]4 GiB" if file != "dmon.log" else "used +2[.]5 GiB now")
                if file != "dmon.log":  # it shows no total
                    self.assertEqual(device["capacity_bytes"], 81559 * MIB)
                    self.assertEqual(device["series"]["name"], "NVIDIA H100 80GB HBM3")

    def test_the_logs_of_its_process_name_it(self):
        for file, samples in (("compute_apps.csv", 48), ("pmon.log", 23), ("screens.log", 8)):
            with self.subTest(file):
                process = self.series(file)["process_used"]
                self.assertEqual(process["samples"], samples)
                self.assertEqual((process["series"]["pid"], process["series"]["command"]), (521, "python3"))

    def test_the_errors_of_the_frameworks_are_explained(self):
        pytorch = self.explained("pytorch_oom.log")
        self.assertEqual((pytorch["cause"], pytorch["failures"][0]["program"]), ("full", "PyTorch"))
        for file, program in (("jax_oom.log", "JAX/XLA"), ("cupy_oom.log", "CuPy")):
            failures = self.explained(file)["failures"]
            self.assertTrue(any(program in failure["program"] for failure in failures), failures)


if __name__ == "__main__":
    unittest.main()
