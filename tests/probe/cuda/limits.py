"""Limits, failures and moments of a program under `vramtrack run`: limits.py BINARY PROBE PROGRAMS ARCHIVE"""
import json
import re
import subprocess
import sys
import unittest

from under_run import PROBE, PROGRAMS, UnderRun

#: take(KIBIBYTES) allocates; its block is kept.
PROGRAM = """
import ctypes, time
cuda = ctypes.CDLL('libcuda.so.1')
context, kept = ctypes.c_void_p(), []
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
def take(kibibytes):
    address = ctypes.c_uint64()
    code = cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(kibibytes << 10))
    if code == 0: kept.append(address)
    return code
def mark(name):
    ctypes.CDLL(None).vramtrack_probe_mark(name)
"""


class Limits(UnderRun):
    def run_code(self, code, *options, **changes):
        self.driver()
        done = self.run_program(sys.executable, "-c", PROGRAM + code, options=options, **changes)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_a_peak_above_the_soft_limit_is_told_however_short(self):
        code = "take(4096); take(2048); cuda.cuMemFree_v2(kept.pop()); cuda.cuMemFree_v2(kept.pop())"
        self.assertRegex(self.run_code(code, "--soft-limit", "5MiB").stderr,
                         r"process \d+ held 6\.0 MiB of device 0 .*, more than the soft limit of 5\.0 MiB")
        self.assertNotIn("soft limit", self.run_code(code, "--soft-limit", "6MiB").stderr)

    def test_a_limit_refuses_and_the_report_says_so(self):
        done = self.run_code("codes = [take(256) for _ in range(5)]; print(codes)", "--limit", "1MiB")
        self.assertEqual(done.stdout, "[0, 0, 0, 0, 2]\n")
        self.assertRegex(done.stderr, r"process \d+ asked for 256\.0 KiB on device 0 .* and the limit refused it")
        said = self.trace("oom show")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertRegex(said.stdout, r"^OUT OF MEMORY: process \d+ asked for 256\.0 KiB on device 0")
        self.assertEqual(said.stdout.count("the limit of 1.0 MiB refused it; the device itself was not asked"), 1, said.stdout)
        self.assertTrue(json.loads(self.trace("oom show", "--format", "json").stdout)["refused_by_limit"])

    def test_what_is_measured_counts_against_a_limit(self):
        # A module is never refused itself, and leaves less for what follows.
        code = """
module, other = ctypes.c_void_p(), ctypes.c_void_p()
codes = [take(8 << 10), cuda.cuModuleLoadData(ctypes.byref(module), None), take(8 << 10), take(4 << 10), cuda.cuModuleLoadData(ctypes.byref(other), None)]
print(codes, take(1), cuda.cuModuleUnload(module), cuda.cuModuleUnload(other), take(7 << 10), take(2 << 10))
"""
        done = self.run_code(code, "--limit", "20MiB", VRAMTRACK_FAKE_GPU_MODULE_MIB="5")
        self.assertEqual(done.stdout, "[0, 0, 2, 0, 0] 2 0 0 0 2\n")
        self.assertRegex(done.stderr, r"process \d+ asked for 8\.0 MiB on device 0 .* and the limit refused it")

    def test_a_leak_that_a_limit_stopped_is_both(self):
        self.run_code("while take(64) == 0: pass", "--limit", "64MiB")
        said = self.trace("oom show").stdout
        self.assertIn("the limit of 64.0 MiB refused it", said)
        self.assertIn("because leaking lines held", said)

    def test_a_limit_holds_where_only_the_program_finds_the_driver(self):
        driver = self.driver()
        code = PROGRAM + "print([take(256) for _ in range(5)])"
        by_path = code.replace("libcuda.so.1", str(driver))
        # What a wrapper sets; the run itself has none of it.
        wrapper = ("env", f"LD_LIBRARY_PATH={self.folder}")
        for command in ((*wrapper, sys.executable, "-c", code), (sys.executable, "-c", by_path)):
            done = self.run_program(*command, options=("--limit", "1MiB"), LD_LIBRARY_PATH="/nowhere")
            self.assertEqual((done.returncode, done.stdout), (0, "[0, 0, 0, 0, 2]\n"), done.stderr)
        for program in ("probe_cuda_linked", "probe_cuda_resolved"):
            whole = self.run_program(*wrapper, PROGRAMS / program, "plain", LD_LIBRARY_PATH="/nowhere")
            self.assertEqual(whole.returncode, 0, whole.stderr)
            limited = self.run_program(*wrapper, PROGRAMS / program, "plain", options=("--limit", "1MiB"), LD_LIBRARY_PATH="/nowhere")
            self.assertIn("the limit refused it", limited.stderr, program)

    def test_a_process_that_escapes_the_limit_is_named_whatever_others_obey_it(self):
        self.driver()
        obeys, escapes = self.folder / "obeys.py", self.folder / "escapes.py"
        obeys.write_text(PROGRAM + "print([take(256) for _ in range(5)], flush=True)")
        escapes.write_text(PROGRAM + "import sys\nprint(take(5000), flush=True)\nsys.stdin.read()")
        # What drops LD_PRELOAD: env, and an exec within one process.
        dropped = f"env -i LD_LIBRARY_PATH={self.folder} {sys.executable} {escapes}"
        execed = f"{sys.executable} -c \"import os, sys; os.execve(sys.executable, [sys.executable, '{escapes}'], {{'LD_LIBRARY_PATH': '{self.folder}'}})\""
        for escape in (dropped, execed):
            for options, status in ((("--limit", "1MiB"), 2), ((), 0), (("--fail-on-leak",), 2)):
                with self.subTest(escape=escape, options=options):
                    process = self.start_program("sh", "-c", f"{sys.executable} {obeys} && {escape}", options=options)
                    self.assertEqual(process.stdout.readline(), "[0, 0, 0, 0, 2]\n" if "--limit" in options else "[0, 0, 0, 0, 0]\n")
                    self.assertEqual(process.stdout.readline(), "0\n", "the driver gives it")
                    # It is told while the process lives, and lives until it was told.
                    said = ""
                    while "without the probe" not in said:
                        line = process.stderr.readline()
                        self.assertNotEqual(line, "", said)
                        said += line
                    rest = process.communicate(timeout=60)[1]
                    self.assertEqual(process.returncode, status, said + rest)
                    name = rf"process \d+ \({re.escape(sys.executable)} {re.escape(str(escapes))}\)"
                    self.assertRegex(said, rf"{name} has loaded libcuda\.so\.1 without the probe: it is not recorded")
                    if "--limit" in options:
                        self.assertRegex(rest, rf"the limit of 1 MiB was not enforced on {name}: it uses libcuda\.so\.1 without the probe")
                    else:
                        self.assertNotIn("was not enforced", rest)

    def test_a_limit_that_held_without_a_ring_was_enforced(self):
        self.driver()
        code = PROGRAM + "print([take(256) for _ in range(5)])"
        limited = ("sh", "-c", 'ulimit -f 4; exec "$@"', "sh")
        # The processes alone, and vramtrack itself with them: then there are no rings that it made.
        for before, inner in ((limited, ()), ((), limited)):
            for options, expected, status in ((("--limit", "1MiB"), "[0, 0, 0, 0, 2]\n", 0), ((), "[0, 0, 0, 0, 0]\n", 0),
                                              (("--limit", "1MiB", "--fail-on-leak"), "[0, 0, 0, 0, 2]\n", 2 if before else None)):  # fmt: skip
                with self.subTest(before=before, options=options):
                    done = self.run_program(*inner, sys.executable, "-c", code, options=options, before=before)
                    self.assertEqual(done.stdout, expected, done.stderr)
                    if status is not None:
                        self.assertEqual(done.returncode, status, done.stderr)
                    self.assertNotIn("not enforced", done.stderr)
                    self.assertNotIn("no GPU API", done.stderr)
                    if before:
                        self.assertRegex(done.stderr, r"nothing was recorded of process \d+ \(.*\): its limit for files \(ulimit -f\) is too small"
                                         + (r"; it obeyed the limit all the same" if "--limit" in options else "$"))  # fmt: skip

    def test_a_program_without_a_driver_sees_that_there_is_none(self):
        code = "import ctypes\ntry: ctypes.CDLL('libcuda.so.1')\nexcept OSError as error: print(error)"
        alone = subprocess.run([sys.executable, "-c", code], env={**self.environment(), "LD_LIBRARY_PATH": "/nowhere"}, capture_output=True, text=True,
                               timeout=60)  # fmt: skip
        done = self.run_program(sys.executable, "-c", code, LD_LIBRARY_PATH="/nowhere")
        self.assertEqual((done.returncode, done.stdout), (0, alone.stdout))
        if "libcuda" not in alone.stdout:
            self.skipTest("this machine has a driver")
        self.assertEqual(self.run_program(sys.executable, "-c", code, options=("--limit", "1GiB"), LD_LIBRARY_PATH="/nowhere").returncode, 2)

    def test_a_leak_that_begins_late_has_a_status_of_its_own(self):
        code = "for step in range(2000):\n    take(64)\n    if step < 1500: cuda.cuMemFree_v2(kept.pop())"
        self.driver()
        done = self.run_program(sys.executable, "-c", PROGRAM + code, options=("--fail-on-leak",))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"SUSPECTED, began late: .*: 31.2 MiB in 500 blocks")
        self.assertIn("suspected leak: 1 site that gained most of the memory of the second half began to grow late", done.stderr)
        self.assertEqual(self.run_program(sys.executable, "-c", PROGRAM + code).returncode, 0)
        said = self.trace("trace report")
        self.assertEqual(said.returncode, 3)
        self.assertRegex(said.stdout, r"^SUSPECTED LEAK, began late: ")
        healthy = code + "\nfor step in range(2000): take(64); cuda.cuMemFree_v2(kept.pop())"
        self.assertEqual(self.run_program(sys.executable, "-c", PROGRAM + healthy, options=("--fail-on-leak",)).returncode, 0)
        # Regardless of what the program loaded before, its weights are most of the live memory.
        weights = "for _ in range(40): take(16 << 10)\nweights, kept = kept, []\n" + code
        self.assertEqual(self.run_program(sys.executable, "-c", PROGRAM + weights, options=("--fail-on-leak",)).returncode, 3)
        # However late, as long as enough of the run is left; and a last step like those before is none.
        for begun, ended, expected in ((1600, 2000, 3), (1800, 2000, 3), (1850, 2000, 3), (1600, 1900, 0)):
            code = f"for step in range(2000):\n    take(64)\n    if not {begun} <= step < {ended}: cuda.cuMemFree_v2(kept.pop())"
            done = self.run_program(sys.executable, "-c", PROGRAM + code, options=("--fail-on-leak",))
            self.assertEqual(done.returncode, expected, (begun, ended, done.stderr))
        steps = "for step in range(30):\n    for _ in range(64): take(64)\n    if step < 29:\n        while kept: cuda.cuMemFree_v2(kept.pop())"
        self.assertEqual(self.run_program(sys.executable, "-c", PROGRAM + steps, options=("--fail-on-leak",)).returncode, 0)

    def test_a_folder_is_no_trace_file(self):
        self.driver()
        (self.folder / "trace").mkdir()
        done = self.run_program(sys.executable, "-c", "print('started')")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("trace: it is a folder; name a file in it with --output", done.stderr)

    def test_moments(self):
        self.run_code("mark(b'first'); take(1024); mark(b'second'); take(2048); time.sleep(0.3); take(4096)")
        grown = self.trace("trace diff", "--from", "first", "--to", "second")
        self.assertRegex(grown.stdout, r"^\+1\.0 MiB from first to second\n", grown.stderr)
        self.assertRegex(self.trace("trace diff", "--from", "second").stdout, r"^\+6\.0 MiB from second to the end\n")
        for options, said in ((("--from", "second", "--to", "first"), "--since second is later than --until first: give the earlier moment as --since"),
                              (("--from", "9s", "--to", "0s"), r"--since: 9s is after the end of the trace, which is [0-9.]+ s long"),
                              (("--from", "first", "--to", "500s"), r"--until: 500s is after the end of the trace, which is [0-9.]+ s long"),
                              (("--from", "0.2s", "--to", "0.1s"), "--since 0.2s is later than --until 0.1s: give the earlier"),
                              (("--from", "third"), "--since: the trace has no mark third: it has first at ")):  # fmt: skip
            refused = self.trace("trace diff", *options)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), options)
            self.assertRegex(refused.stderr, said)
        none = self.trace("trace flamegraph", "--from", "0s", "--to", "0s", "--output", str(self.folder / "page.html"))
        self.assertEqual(none.returncode, 2)
        self.assertIn("nothing to draw: there is no growth from 0s to 0s", none.stderr)

    def test_the_duration_begins_with_the_program(self):
        self.run_code("time.sleep(0.4); take(1024); time.sleep(0.4)")
        report = json.loads(self.trace("trace report", "--format", "json").stdout)
        self.assertGreater(report["duration_s"], 0.3, "of which no process knows the time before its first call")

    def test_a_probe_that_is_named_as_the_driver_is_refused(self):
        driver = self.driver()
        for named in (PROBE, driver):
            done = subprocess.run([PROGRAMS / "probe_cuda_linked", "plain"], capture_output=True, text=True, timeout=60,
                                  env={**self.environment(), "LD_PRELOAD": str(PROBE), "VRAMTRACK_PROBE_DRIVER": str(named)})  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(re.findall("^init: ([0-9]+)", done.stdout, re.M), ["0" if named == driver else "100"])
            self.assertEqual("cannot be opened" in done.stderr, named == PROBE, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
