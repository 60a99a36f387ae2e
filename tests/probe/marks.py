"""mark() of the Python package arrives in the trace of the probe, in its place."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from ring import rings

LIBRARY = pathlib.Path(sys.argv.pop(1)).resolve()
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
PROGRAM = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("marks", sys.argv[1])
marks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(marks)
for step in range(3):
    marks.mark("step")
marks.mark("a-name-that-is-longer-than-one-piece")
"""


class Marks(unittest.TestCase):
    def run_program(self, **environment):
        result = subprocess.run([sys.executable, "-c", PROGRAM, PACKAGE / "vramtrack/marks.py"], capture_output=True, text=True,
                                timeout=60, env={**os.environ, **environment})
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_marks_are_in_the_ring(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_program(LD_PRELOAD=str(LIBRARY), VRAMTRACK_PROBE_DIR=folder)
            ring, = rings(folder)
            marks = ring.of("mark")
            self.assertEqual([ring.texts[mark.number] for mark in marks], ["step"] * 3 + ["a-name-that-is-longer-than-one-piece"])
            self.assertEqual([mark.time_us for mark in marks], sorted(mark.time_us for mark in marks))

    def test_without_the_probe_nothing_happens(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_program(VRAMTRACK_PROBE_DIR=folder)
            self.assertEqual(rings(folder), [])

    def test_the_loaded_probe_is_inert(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", "import json, threading"], check=True, timeout=60,
                           env={**os.environ, "LD_PRELOAD": str(LIBRARY), "VRAMTRACK_PROBE_DIR": folder})
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
