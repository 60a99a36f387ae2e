"""What the tests of logs of people's own programs share: `analyze` as the binary runs it, in one process, and what it says of one log."""
import functools
import itertools
import json
import unittest

from one_process import OneProcess

MIB = 2**20
GIB = 2**30


class Case:
    """What `analyze` says of one log. Its JSON is asked for when a test looks at it: most look at the text alone."""

    def __init__(self, sandbox, *args):
        self.sandbox, self.args = sandbox, args
        text = sandbox.run("analyze", *args)
        self.code = text.returncode
        self.text = text.stdout.decode()
        self.error = " ".join(text.stderr.decode().split())

    @functools.cached_property
    def rows(self):
        if self.code == 2:
            return []
        return [json.loads(line) for line in self.sandbox.run("analyze", "--format", "json", *self.args).stdout.decode().splitlines()]

    def of(self, metric="device_used", device="0"):
        return next(r for r in self.rows if r["series"]["metric"] == metric and r["series"]["device"] == device)


class LogTests(unittest.TestCase):
    """`binary` is that of the derived class: a file of tests takes it from its arguments."""

    binary = None
    numbers = itertools.count()

    @classmethod
    def setUpClass(cls):
        cls.sandbox = OneProcess(cls.binary).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.sandbox.__exit__()

    def analyze(self, lines, *args):
        name = f"{next(self.numbers)}.log"
        self.sandbox.write(name, "".join(line + "\n" for line in lines))
        return Case(self.sandbox, *args, name)

    def assert_leak(self, case, mib_per_min=100, **of):
        self.assertEqual(case.code, 1, case.text + case.error)
        verdict = case.of(**of)["verdict"]
        self.assertTrue(verdict["leak"], case.text)
        self.assertAlmostEqual(verdict["growth_bytes_per_s"]["mid"] * 60 / MIB, mib_per_min, delta=mib_per_min / 20)

    def assert_refused(self, case, *words):
        self.assertEqual(case.code, 2, case.text + case.error)
        for word in words:
            self.assertIn(word, case.error)
