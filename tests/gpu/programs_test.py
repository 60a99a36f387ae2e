"""Every leaking program without a GPU, each in a synthetic time that passes at once: python3 programs_test.py

Frameworks that are not installed are skipped and reported. NumPy stands in for CuPy.
"""
import csv
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import job
import leak_cupy
import leak_jax
import leak_pytorch

FAKE_DRIVER = """
#include <stdlib.h>
static size_t held, blocks[1 << 20], count;
int cuInit(unsigned f) { return 0; }
int cuDriverGetVersion(int* v) { *v = 13020; return 0; }
int cuDeviceGet(int* d, int n) { *d = n; return 0; }
int cuDevicePrimaryCtxRetain(void** c, int d) { *c = &held; return 0; }
int cuCtxSetCurrent(void* c) { return c == &held ? 0 : 201; }
int cuMemAlloc_v2(unsigned long long* at, size_t n) {
  if (held + n > strtoull(getenv("FAKE_DRIVER_BYTES"), NULL, 10)) return 2;
  held += blocks[*at = ++count] = n;
  return 0;
}
int cuMemFree_v2(unsigned long long at) {
  if (blocks[at] == 0) return 1; /* unknown, or freed before */
  held -= blocks[at];
  blocks[at] = 0;
  return 0;
}
int cuMemsetD8_v2(unsigned long long at, unsigned char v, size_t n) { return blocks[at] == n ? 0 : 700; }
"""
CAP_MIB = 64
STEPS = 300


class FakeClock:
    def __init__(self):
        self.now = 1767225600.0

    def time(self):
        return self.now

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += max(seconds, 1e-3)


def read(path):
    with open(path) as file:
        return list(csv.DictReader(file))


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_kind(self, kinds, open_framework, kind):
        clock, history = FakeClock(), []

        def open_recorded(options):
            memory = open_framework(options)
            changed = memory.changed
            memory.changed = lambda live, cap: (changed(live, cap), history.append(live))
            return memory

        out = str(self.folder / kind.name)
        status = job.main(kinds, open_recorded, ["--kind", kind.name, "--out", out, "--dry-run", "--cap-mib", str(CAP_MIB), "--step-s", "0.2",
                                                 "--until", str(clock.now + STEPS * 0.2), "--life-share", "0.7"], clock)
        self.assertEqual(status, 0)
        return read(out + ".events.csv"), read(out + ".truth.csv"), history

    def check_all(self, kinds, open_framework):
        names = [kind.name for kind in kinds]
        self.assertEqual(len(set(names)), len(names))
        for kind in kinds:
            with self.subTest(kind=kind.name):
                if kind.twin:
                    twin = next(one for one in kinds if one.name == kind.twin)
                    self.assertNotEqual(twin.leak, kind.leak)
                events, truth, history = self.run_kind(kinds, open_framework, kind)
                at = {row["event"]: float(row["time_s"]) for row in events}
                self.assertLessEqual({"framework", "start", "end"}, set(at))
                self.assertGreaterEqual(len(truth), 1)
                if kind.leak:
                    self.assertLessEqual(at["start"], at["onset"])
                    life = (at["oom"] - at["start"]) / (STEPS * 0.2)
                    self.assertTrue(0.35 <= life <= 1, f"met the cap after {life:.2f} of its time, not about 0.7")
                else:
                    self.assertNotIn("onset", at)
                    self.assertNotIn("oom", at)
                    self.assertGreater(max(history), 0)
                    self.assertLess(max(history), 0.8 * CAP_MIB * job.MIB)

    def test_pytorch(self):
        try:
            import torch  # noqa: F401
        except ImportError as error:
            self.skipTest(str(error))
        self.check_all(leak_pytorch.KINDS, leak_pytorch.open_pytorch)

    def test_jax(self):
        try:
            import jax  # noqa: F401
        except ImportError as error:
            self.skipTest(str(error))
        self.check_all(leak_jax.KINDS, leak_jax.open_jax)

    def test_cupy(self):
        try:
            import numpy  # noqa: F401
        except ImportError as error:
            self.skipTest(str(error))
        self.check_all(leak_cupy.KINDS, leak_cupy.open_cupy)

    def test_cuda(self):
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("no C compiler")
        program = str(self.folder / "leak_cuda")
        source = pathlib.Path(__file__).with_name("leak_cuda.c")
        subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, str(source), "-ldl", "-lm"], check=True)
        listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
        for kind in csv.DictReader(listed.splitlines()):
            with self.subTest(kind=kind["kind"]):
                out = str(self.folder / kind["kind"])
                begin = FakeClock().now
                subprocess.run([program, "--kind", kind["kind"], "--out", out, "--dry-run", "--cap-mib", str(CAP_MIB), "--step-s", "0.2",
                                "--made-up-clock", str(begin), "--until", str(begin + STEPS * 0.2), "--life-share", "0.7"], check=True)
                at = {row["event"]: float(row["time_s"]) for row in read(out + ".events.csv")}
                truth = read(out + ".truth.csv")
                self.assertEqual(kind["leak"] == "1", "oom" in at)
                self.assertEqual(kind["leak"] == "1", "onset" in at)
                self.assertGreater(max(int(row["live_bytes"]) for row in truth), 0)
                self.assertGreater(len(truth), 2 * (at["end"] - at["start"]))  # ten rows a second; here one a step, at least
                if "oom" in at:
                    life = (at["oom"] - at["start"]) / (STEPS * 0.2)
                    self.assertTrue(0.35 <= life <= 1, f"met the cap after {life:.2f} of its time, not about 0.7")

    def test_cuda_programs_take_and_free_what_they_say(self):
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("no C compiler")
        program, source = str(self.folder / "leak_cuda"), pathlib.Path(__file__).with_name("leak_cuda.c")
        subprocess.run([compiler, "-o", program, str(source), "-ldl", "-lm"], check=True)
        subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-o", str(self.folder / "libcuda.so.1"), "-"], input=FAKE_DRIVER, text=True,
                       check=True)

        def run(kind, driver_mib):
            begin, out = FakeClock().now, str(self.folder / kind)
            environment = {**os.environ, "LD_LIBRARY_PATH": str(self.folder), "FAKE_DRIVER_BYTES": str(driver_mib * job.MIB)}
            subprocess.run([program, "--kind", kind, "--out", out, "--cap-mib", str(CAP_MIB), "--step-s", "0.2", "--made-up-clock", str(begin),
                            "--until", str(begin + STEPS * 0.2)], check=True, env=environment)
            return read(out + ".events.csv")

        self.assertEqual(run("memory_kept", CAP_MIB)[0]["detail"], "CUDA 13.2")
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", [row["detail"] for row in run("memory_kept", CAP_MIB // 2) if row["event"] == "oom"][0])
        for kind in ("memory_freed", "sawtooth", "cache_limited", "stairs_freed"):  # the driver refuses to free twice
            self.assertNotIn("oom", [row["event"] for row in run(kind, CAP_MIB)])

    def test_what_a_framework_does_not_tell_is_empty_and_not_zero(self):
        class Silent(job.SimulatedMemory):
            def reserved_bytes(self):
                return None

        def steady(one):
            one.begin()
            for _ in one.steps():
                pass

        kind = job.healthy(steady, "steady")
        _, truth, _ = self.run_kind([kind], lambda options: Silent("none"), kind)
        self.assertEqual((truth[0]["allocated_bytes"], truth[0]["reserved_bytes"]), ("0", ""))

    def test_out_of_memory_is_told_from_other_errors(self):
        self.assertTrue(leak_jax.XlaMemory.is_oom(None, RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate")))
        self.assertFalse(leak_jax.XlaMemory.is_oom(None, RuntimeError("INVALID_ARGUMENT")))
        memory = leak_pytorch.CudaMemory.__new__(leak_pytorch.CudaMemory)
        memory.oom_error = RuntimeError  # as before PyTorch 1.13
        self.assertTrue(memory.is_oom(RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")))
        self.assertFalse(memory.is_oom(RuntimeError("CUDA error: an illegal memory access was encountered")))

    def test_a_program_without_its_framework_says_so_and_is_no_failure(self):
        def missing(options):
            raise job.Unavailable("there is no such framework")

        self.assertEqual(job.main(leak_cupy.KINDS, missing, ["--probe"]), 77)

    def test_a_defect_of_a_program_is_not_taken_for_out_of_memory(self):
        def broken(one):
            one.begin()
            raise RuntimeError("a defect")

        kinds = [job.healthy(broken, "broken")]
        with self.assertRaisesRegex(RuntimeError, "a defect"):
            self.run_kind(kinds, lambda options: job.SimulatedMemory("none"), kinds[0])


if __name__ == "__main__":
    unittest.main()
