"""Excerpts of logs that others have published, by the real binary: each as tests/fixtures/public_logs/truth.json says."""
import json
import sys
import unittest

from log_case import MIB, Case, LogTests
from sandbox import FIXTURES

BINARY = sys.argv.pop(1)
FOLDER = FIXTURES / "public_logs"


class Published(LogTests):
    binary = BINARY

    def test_each_shows_what_its_reader_saw(self):
        truths = json.loads((FOLDER / "truth.json").read_text())
        self.assertEqual(set(truths), {path.name for path in FOLDER.iterdir()} - {"README.md", "truth.json"})
        for name, truth in truths.items():
            with self.subTest(name):
                case = Case(self.sandbox, str(FOLDER / name))
                self.assertEqual(case.code, 1 if truth["leak"] else 0, case.text + case.error)
                found = {"{metric} {device}".format(**row["series"]): row for row in case.rows}
                self.assertEqual({key: row["samples"] for key, row in found.items()},
                                 {key: series["samples"] for key, series in truth["series"].items()})
                for key, mib in truth.get("capacity_mib", {}).items():
                    self.assertEqual(found[key]["capacity_bytes"], mib * MIB)
                for words in truth.get("says", []):
                    self.assertIn(words, " ".join((case.text + " " + case.error).split()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
