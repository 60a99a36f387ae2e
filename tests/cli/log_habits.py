"""Logs of people's own programs in other languages and shapes, by the real binary."""
import datetime
import re
import sys
import unittest

from sandbox import Sandbox
from text_logs import Case

BINARY = sys.argv.pop(1)
BEGIN = datetime.datetime(2024, 5, 1, 23, 50)


def at(seconds, form="%Y-%m-%d %H:%M:%S"):
    return (BEGIN + datetime.timedelta(seconds=seconds)).strftime(form)


class Habits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sandbox = Sandbox(BINARY).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.sandbox.__exit__()

    def analyze(self, lines, *args):
        self.sandbox.write("a.log", "".join(line + "\n" for line in lines))
        return Case(self.sandbox, *args, "a.log")

    def assert_leak(self, case, mib_per_min=100, **of):
        self.assertEqual(case.code, 1, case.text + case.error)
        verdict = case.of(**of)["verdict"]
        self.assertTrue(verdict["leak"], case.text)
        self.assertAlmostEqual(verdict["growth_bytes_per_s"]["mid"] * 60 / 2**20, mib_per_min, delta=mib_per_min / 20)


class Thousands(Habits):
    """"4.000 MB" is 4 or 4000: what else is in the log decides, or it is said that nothing does."""

    @staticmethod
    def dotted(number):
        return f"{number:,}".replace(",", ".")

    def lines(self, form, begin=4000):
        return [at(30 * i, "%d.%m.%Y %H:%M:%S") + " " + form.format(self.dotted(begin + 50 * i)) for i in range(60)]

    def test_german_words(self):
        self.assert_leak(self.analyze(self.lines("belegt {} MB")))
        self.assert_leak(self.analyze(self.lines("Grafikspeicher: {} MB, loss 0.25")))
        self.assert_leak(self.analyze(self.lines("Grafikspeicher belegt: {}")))

    def test_a_german_pattern(self):
        for amount in ("(?<used>[0-9.]+ MB)", "(?<used>[0-9.]+)"):
            self.assert_leak(self.analyze(self.lines("belegt {} MB"), "--line-pattern", "belegt " + amount))

    def test_the_total(self):
        c = self.analyze(self.lines("used {} MB / 24.576 MB"))
        self.assert_leak(c)
        self.assertEqual(c.of()["capacity_bytes"], 24576 * 2**20)

    def test_other_figures(self):
        self.assert_leak(self.analyze(self.lines("used {} MB, loss 0,25")))
        self.assert_leak(self.analyze(self.lines("used {} MB, free 1.234.567 KB")))
        self.assert_leak(self.analyze(self.lines("used {} MB", begin=800)), 100)

    def test_steps_are_grouped_too(self):
        german = [f"Schritt {self.dotted(900 + 10 * i)} belegt {self.dotted(4000 + 50 * i)} MB" for i in range(60)]
        english = [f"step {900 + 10 * i:,} used {4000 + 50 * i:,} MB" for i in range(60)]
        for lines in (german, english):
            c = self.analyze(lines)
            self.assertAlmostEqual(c.of()["verdict"]["growth_bytes_per_step"]["mid"] / 2**20, 5, delta=0.3)

    def test_nothing_decides(self):
        c = self.analyze(self.lines("used {} MB"))
        self.assertIn("nothing shows whether '4.000' separates thousands or a fraction", c.text.replace("\n", " "))
        self.assertEqual(c.code, 1)
        self.assertNotIn("MiB", c.text.split("used memory is unknown")[0].split("read as")[0])
        for args in (("--line-pattern", "used (?<used>[0-9.]+ MB)"), ()):
            self.assertIn("nothing shows whether", " ".join(self.analyze(self.lines("used {} MB"), *args).text.split()))
            thousands = self.analyze(self.lines("used {} MB"), "--unit", "GB", *args)
            self.assert_leak(thousands, 100 * 1e6 / 2**20)
            fractions = self.analyze(self.lines("used {} MB"), "--unit", "MB", *args)
            self.assertEqual(fractions.code, 0)
            self.assertIn("7 MiB now", fractions.text)
            self.assertNotIn("is unknown", fractions.text)

    def test_english_fractions(self):
        gigabytes = [f"{at(30 * i)} used {4.123 + i * 0.05:.3f} GB" for i in range(60)]
        self.assert_leak(self.analyze(gigabytes), 102.4)
        megabytes = [f"{at(30 * i)} allocated {16.123 + i % 7 * 0.05:.3f} MB, loss {3 / (i + 1):.4f}" for i in range(60)]
        c = self.analyze(megabytes)
        self.assertEqual(c.code, 0, c.text)
        self.assertIn("16 MiB", c.text)
        large = [f"{at(30 * i)} used {812.123 + i * 50:.3f} MB" for i in range(60)]
        self.assert_leak(self.analyze(large))

    def test_commas(self):
        self.assert_leak(self.analyze([f"{at(30 * i)} used {4000 + 50 * i:,} MB" for i in range(60)]))
        decimal = [f"{at(30 * i)} allocated {f'{16.123 + i % 7 * 0.05:.3f}'.replace('.', ',')} MB, loss 0,25" for i in range(60)]
        c = self.analyze(decimal)
        self.assertEqual(c.code, 0, c.text)
        self.assertIn("16 MiB", c.text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
