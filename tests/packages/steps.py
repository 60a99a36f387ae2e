#!/usr/bin/env python3
"""The steps of the gate (scripts/steps.sh), each of them a stand-in: what runs beside what, and what is told at the end."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# `test` ends when `sanitized` has begun, and `sanitized` when `test` has ended: one after the other, they would wait for ever.
MAKE = """#!/bin/sh
echo "$1" >>order
case $1 in
  test)
    read -r _ <begun
    mkdir -p build/release
    echo '<testsuite><testcase name="slow" time="71.25"><system-out/></testcase><testcase name="fast" time="1"/></testsuite>' >build/release/tests.xml
    echo "100% tests passed, 0 tests failed out of 2"
    echo >ended
    ;;
  sanitized) echo >begun; read -r _ <ended ;;
esac
[ "$1" != "$WRONG" ] || { echo "error: as told"; exit 1; }
"""


class Steps(unittest.TestCase):
    def gate(self, wrong=""):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        (root / "scripts").mkdir()
        for name in ("steps.sh", "test_results.py"):
            shutil.copy(ROOT / "scripts" / name, root / "scripts")
        for path, text in {root / "scripts/setup.sh": "#!/bin/sh\n", root / "make": MAKE}.items():
            path.write_text(text)
            path.chmod(0o755)
        os.mkfifo(root / "begun")
        os.mkfifo(root / "ended")
        done = subprocess.run([root / "scripts/steps.sh", "gate"], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PATH": f"{root}:{os.environ['PATH']}", "WRONG": wrong})
        return done.returncode, done.stdout, (root / "order").read_text().split()

    def test_the_sanitized_tests_run_beside_the_others(self):
        status, text, order = self.gate()
        self.assertEqual(status, 0, text)
        self.assertEqual(order[:2], ["format-check", "compiled-tests"])
        self.assertEqual(sorted(order[2:]), ["sanitized", "test"])
        self.assertRegex(text, r"(?s)=== format: ok in .*=== compile: ok in .*=== test: ok in .*=== sanitized: ok in .*gate: all passed\n100% tests passed")

    def test_the_longest_are_told_at_the_end(self):
        self.assertIn("the 10 longest:\n    71.2 s  release  slow\n     1.0 s  release  fast\n", self.gate()[1])

    def test_a_step_that_fails_hides_no_other(self):
        for wrong, step in (("format-check", "format"), ("test", "test"), ("sanitized", "sanitized")):
            status, text, order = self.gate(wrong)
            self.assertEqual((status, len(order)), (1, 4))
            self.assertIn(f"=== {step}: FAILED in", text)
            self.assertIn(f"gate: failed: {step}\n", text)
            self.assertIn("error: as told", text)


if __name__ == "__main__":
    unittest.main()
