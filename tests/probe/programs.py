#!/usr/bin/env python3
"""Eight of the programs of bench/programs: the line that leaks is named first, and no line of a healthy program. A kept graph is one leak.

    programs.py BUILD
"""
import argparse
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parents[1] / "bench/programs"
sys.path.insert(0, str(PROGRAMS))
from apis import APIS, Unavailable  # noqa: E402
from judging import expected_line, judge  # noqa: E402
from measure import api_name  # noqa: E402
from traced_run import report_of  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()


class Programs(unittest.TestCase):
    def judged(self, path):
        options = argparse.Namespace(build=BUILD, binary=BUILD / "vramtrack")
        with tempfile.TemporaryDirectory() as folder:
            try:
                command, environment = APIS[api_name(path)].prepared(path, options)
                return judge(path, *report_of(command, environment, options, pathlib.Path(folder) / "run"))
            except Unavailable as reason:
                return self.skipTest(str(reason))

    def test_the_line_that_leaks_is_named_first(self):
        for name in ("cuda_decoder.c", "cuda_shape_cache.cpp", "cuda_resolved.c", "opencl_retain.c"):
            with self.subTest(name):
                path = PROGRAMS / "leaking" / name
                verdict = self.judged(path)
                self.assertEqual(verdict.word, "named", verdict)
                self.assertTrue(verdict.named.endswith(f"{name}:{expected_line(path)}"), verdict)

    def test_no_line_of_a_healthy_program_is_named(self):
        for name in ("cuda_decoder.c", "cuda_shape_cache.cpp", "cuda_start.cpp", "opencl_camera.c"):
            with self.subTest(name):
                self.assertEqual(self.judged(PROGRAMS / "healthy" / name).word, "quiet")

    def test_a_kept_graph_is_one_leak_with_its_loss_first(self):
        driver = BUILD / "tests/probe/cuda/driver"
        if not (driver / "libcuda.so.1").exists():
            self.skipTest("no double of CUDA's driver")
        environment = {"LD_LIBRARY_PATH": str(driver), "PYTHONPATH": str(HERE / "site-packages"), "PYTHONDONTWRITEBYTECODE": "1"}
        options = argparse.Namespace(build=BUILD, binary=BUILD / "vramtrack")
        lines = (HERE / "kept_graph.py").read_text().splitlines()
        loss = next(i for i, line in enumerate(lines, 1) if "loss = T(" in line)
        for words in ((), ("at once",)):
            with self.subTest(words), tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, HERE / "kept_graph.py", *words]
                report, _ = report_of(command, environment, options, pathlib.Path(folder) / "run")
                (finding,) = report["findings"]
                self.assertIs(finding["leak"], True)
                self.assertTrue(finding["site"].endswith(f"kept_graph.py:{loss} train"), finding)
                self.assertEqual((finding["steps"], finding["live_count"], len(finding["sites"])), (406, 406 * 6, 3))


if __name__ == "__main__":
    unittest.main()
