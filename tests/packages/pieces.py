#!/usr/bin/env python3
"""Pieces of test programs (scripts/test_program.py) and what is told of them (scripts/test_results.py): pieces.py PROGRAM"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = sys.argv.pop(1)


def run(*arguments, wrong=""):
    done = subprocess.run([sys.executable, "-B", ROOT / "scripts/test_program.py", PROGRAM, *arguments], capture_output=True, text=True,
                          env={**os.environ, "VRAMTRACK_PIECES": wrong})
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def failed(text):
    return re.findall(r"^FAILED (\S+) \((.*)\)$", text, re.MULTILINE)


class Pieces(unittest.TestCase):
    def test_all_pass(self):
        status, text = run()
        self.assertEqual(status, 0)
        self.assertIn(", piece 1 of 1: 10 tests passed, 1 skipped in ", text)

    def test_each_test_is_in_one_piece(self):
        counts = [tuple(map(int, re.search(r"(\d+) tests passed, (\d+) skipped", run("--piece", f"{n}/4")[1]).groups())) for n in range(1, 5)]
        self.assertEqual([sum(column) for column in zip(*counts)], [10, 1])

    def test_a_failed_test_is_named_with_what_it_said(self):
        status, text = run(wrong="Fails")
        self.assertEqual((status, failed(text)), (1, [("Pieces.Fails", "exit status 1")]))
        self.assertIn("    as told", text)
        self.assertIn("1 of 11 tests did not pass and are run again", text)

    def test_the_piece_of_a_failed_test_alone_fails(self):
        results = [run("--piece", f"{n}/4", wrong="Fails EachPiece") for n in range(1, 5)]
        self.assertEqual(sorted(name for _, text in results for name, _ in failed(text)), ["All/EachPiece.Passes/2", "Pieces.Fails"])
        self.assertEqual(sum(status for status, _ in results), len([text for _, text in results if failed(text)]))

    def test_those_after_a_crash_are_run(self):
        status, text = run(wrong="Crashes EachPiece")
        self.assertEqual(status, 1)
        self.assertEqual(failed(text), [("Pieces.Crashes", "ended by SIGABRT"), ("All/EachPiece.Passes/2", "exit status 1")])

    def test_a_test_that_ends_the_program_has_failed(self):
        status, text = run(wrong="Exits")
        self.assertEqual((status, failed(text)), (1, [("Pieces.Exits", "a test ended the program with exit status 0")]))

    def test_a_test_that_hangs_is_ended_and_named(self):
        status, text = run("--limit", "1", wrong="Hangs")
        self.assertEqual((status, failed(text)), (1, [("Pieces.Hangs", "a test did not end in time")]))

    def test_what_passes_only_by_itself_has_failed(self):
        status, text = run(wrong="IsAlone")
        self.assertEqual(status, 1)
        self.assertEqual(failed(text), [("Pieces.IsAlone", "passes by itself: it depends on the tests before it, or fails now and then")])
        self.assertIn("another has run before it", text)

    def test_a_filter_chooses(self):
        self.assertIn(" 4 tests passed, 0 skipped", run("--filter", "All/EachPiece.*")[1])
        self.assertEqual(failed(run("--filter", "*-Pieces.Fails", wrong="Fails EachPiece")[1]), [("All/EachPiece.Passes/2", "exit status 1")])


class Results(unittest.TestCase):
    def results(self, which, *outputs):
        """What test_results.py says of cases (name, seconds, output, whether it failed)."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tests.xml"
            path.write_text("<testsuite>" + "".join(
                f'<testcase name="{name}" time="{seconds}">{"<failure/>" if bad else ""}<system-out>{escape(text)}</system-out></testcase>'
                for name, seconds, text, bad in outputs) + "</testsuite>")
            return subprocess.run([sys.executable, "-B", ROOT / "scripts/test_results.py", which, path], check=True, capture_output=True, text=True).stdout

    def test_each_failed_test_of_a_piece_is_told(self):
        text = self.results("failed", ("unit.x.1", 1, run(wrong="Fails EachPiece")[1], True), ("other", 1, "Traceback\n", True), ("fine", 1, "", False))
        self.assertEqual(failed(text), [("Pieces.Fails", "exit status 1"), ("All/EachPiece.Passes/2", "exit status 1"), ("other", "failed")])
        self.assertIn("as told", text)

    def test_the_longest_come_with_their_times(self):
        text = self.results("longest", ("unit.x.1", 70.5, run()[1], False), *((f"other{n}", n, "", False) for n in range(20)))
        self.assertIn(": 10 tests passed in 1 pieces of programs, and 20 others\n", text)
        lines = text.splitlines()[2:]
        self.assertEqual(len(lines), 10)
        self.assertRegex(lines[0], r"^ +70\.5 s  \S+  unit\.x\.1 \(of it \d\.\d s \S+\)$")
        self.assertTrue(lines[1].endswith("other19"))


if __name__ == "__main__":
    unittest.main()
