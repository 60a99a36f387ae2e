"""What `analyze` says of logs that it cannot read, and the --line-pattern that it prints for those that it can."""
import datetime
import re
import sys
import unittest

from log_case import Case, LogTests

BINARY = sys.argv.pop(1)
BEGIN = datetime.datetime(2024, 5, 1, 23, 50)


def at(reading):
    return f"{BEGIN + datetime.timedelta(seconds=30 * reading):%Y-%m-%d %H:%M:%S}"


class Logs(LogTests):
    binary = BINARY

    def analyze(self, line, *args, readings=60):
        self.sandbox.write("a.log", "".join(line(i) + "\n" for i in range(readings)))
        return Case(self.sandbox, *args, "a.log")

    @staticmethod
    def said(case):
        return " ".join(case.text.split())


class Refusals(Logs):
    def assert_refused(self, case, *words):
        self.assertEqual(case.code, 2, case.text)
        for each in words:
            self.assertIn(each, case.error)

    def test_memory_of_the_host(self):
        refused = self.analyze(lambda i: f"{at(i)[11:]} RAM used {4000 + 50 * i} MiB")
        self.assert_refused(refused, "line 1: '23:50:00 RAM used 4000 MiB' is ", "vramtrack watch")

    def test_amounts_that_nothing_explains(self):
        refused = self.analyze(lambda i: f"{at(i)} foo {4000 + 50 * i} MiB bar 9000 MiB")
        self.assert_refused(refused, "line 1 has '4000 MiB', '9000 MiB', and no word ", "'foo[^0-9]*(?<used>[0-9.,]+ *MiB)'")
        advised = self.analyze(lambda i: f"{at(i)} foo {4000 + 50 * i} MiB bar 9000 MiB", "--line-pattern", "foo *(?<used>[0-9.]+ *MiB)")
        self.assertEqual(advised.code, 1, advised.text + advised.error)

    def test_numbers_alone(self):
        refused = self.analyze(lambda i: str(4000 + 50 * i))
        self.assert_refused(refused, "line 1 is '4000'", "--line-pattern '^(?<used>[0-9]+)$' --unit MiB", "--interval")
        advised = self.analyze(lambda i: str(4000 + 50 * i), "--line-pattern", "^(?<used>[0-9]+)$", "--unit", "MiB", "--interval", "30s")
        self.assertEqual(advised.code, 1, advised.text + advised.error)
        self.assertEqual(advised.of()["interval_s"], 30)


class WhatIsUsed(Logs):
    def test_a_bare_number_beside_the_word_used(self):
        c = self.analyze(lambda i: f"{at(i)} used={329.60 + 2.5 * i:.2f}")
        self.assertEqual(c.code, 1, c.text + c.error)
        self.assertIn("whose memory 'used=' is", self.said(c))

    def test_an_amount_behind_the_index_of_a_gpu(self):
        c = self.analyze(lambda i: f"{at(i)} cuda:0 {4000 + 50 * i} MiB cuda:1 9000 MiB")
        self.assertTrue(c.of(device="0")["verdict"]["leak"], c.text)
        self.assertFalse(c.of(device="1")["verdict"]["leak"], c.text)


class PrintedPatterns(Logs):
    """The printed pattern reads the same, or it is said that none does."""

    LINES = {
        "one figure": lambda i: f"{at(i)} INFO memory used: {4000 + 50 * i} MiB, loss 0.{i}",
        "peak before current": lambda i: f"{at(i)} max memory allocated: {4050 + 50 * i} MB, current memory allocated: {3000 + 50 * i} MB",
        "two figures": lambda i: f"{at(i)} allocated {4000 + 50 * i} MiB, reserved {5000 + 50 * i} MiB",
        "ranks": lambda i: f"{at(i // 2)} [rank{i % 2}] memory allocated: {4000 + 50 * (i // 2) if i % 2 == 0 else 9000} MiB",
        "names of pods": lambda i: f"[pod/trainer-{i % 2}/main] {at(i // 2)} memory used: {4000 + 50 * (i // 2) if i % 2 == 0 else 9000} MiB",
        "names of containers": lambda i: f"trainer-{i % 2} | {at(i // 2)} memory used: {4000 + 50 * (i // 2) if i % 2 == 0 else 9000} MiB",
        "steps": lambda i: f"step {10 * i}: memory used {4000 + 50 * i} MiB",
    }
    NONE = {
        "two GPUs in a line": lambda i: f"{at(i)} cuda:0 {4000 + 50 * i} MiB cuda:1 9000 MiB",
        "a table": lambda i: "| time | used (MiB) |\n|---|---|" if i == 0 else f"| {at(i)} | {4000 + 50 * i} |",
    }

    def told(self, case):
        return [(r["series"]["metric"], r["series"]["device"], r["samples"], r["verdict"]) for r in case.rows]

    def test_reads_the_same(self):
        for name, line in self.LINES.items():
            with self.subTest(name):
                read = self.analyze(line, readings=120)
                pattern = re.search(r"to correct it: --line-pattern '(.*)'$", self.said(read))
                self.assertTrue(pattern, read.text)
                again = self.analyze(line, "--line-pattern", pattern[1], readings=120)
                self.assertEqual(self.told(read), self.told(again), pattern[1])

    def test_where_none_does(self):
        for name, line in self.NONE.items():
            with self.subTest(name):
                read = self.analyze(line, readings=120)
                self.assertNotEqual(read.code, 2, read.error)
                self.assertIn("no single --line-pattern ", self.said(read))


if __name__ == "__main__":
    unittest.main()
