"""The whole way: an OpenCL program under `vramtrack run`, its trace, the line that leaks.

    python3 tests/probe/apis/opencl_leak.py PROGRAM
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from running import SKIPPED, build_folder

PROGRAM = sys.argv.pop(1)
SOURCE = pathlib.Path(__file__).with_name("opencl_leak.cpp")


class OpenClLeak(unittest.TestCase):
    def report(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            trace, binary = f"{folder}/t.trace", str(build_folder() / "vramtrack")
            env = {"XDG_RUNTIME_DIR": folder, "HOME": folder, "PATH": "/usr/bin:/bin"}
            run = subprocess.run([binary, "run", "--quiet", "--probe", build_folder() / "probe", "--output", trace, "--", PROGRAM, *arguments],
                                 env=env, capture_output=True, text=True, timeout=120, check=False)
            if run.returncode == SKIPPED:
                self.skipTest("no OpenCL device")
            self.assertEqual(run.returncode, 0, run.stderr)
            shown = subprocess.run([binary, "trace", "report", "--format", "json", trace], env=env, capture_output=True, text=True,
                                   timeout=120, check=False)
            return shown.returncode, json.loads(shown.stdout)

    def test_the_line_that_keeps_buffers_is_named_first(self):
        status, report = self.report()
        self.assertEqual(status, 1)
        line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if "kept.push_back" in text)
        leaking = [site for site in report["sites"] if site["leak"]]
        self.assertEqual(len(leaking), 1)
        self.assertEqual(leaking[0]["live_count"], 300)
        self.assertEqual(leaking[0]["live_bytes"], 300 * 4096)
        own = next(frame for frame in leaking[0]["frames"] if frame["file"].endswith("opencl_leak.cpp"))
        self.assertEqual(own["line"], line)
        self.assertIn("keep", own["function"])
        self.assertFalse(own["python"])

    def test_a_healthy_one_names_none(self):
        status, report = self.report("healthy")
        self.assertEqual(status, 0)
        self.assertFalse([site for site in report["sites"] if site["leak"]])
        self.assertTrue(report["verdict"]["can_tell"])


if __name__ == "__main__":
    unittest.main()
