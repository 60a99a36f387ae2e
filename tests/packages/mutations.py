"""Each mutation of tests/mutations.txt fits its file: `make mutants`, which takes an hour, is not needed to see that it does not."""
import importlib.util
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts/mutants.py")
mutants = importlib.util.module_from_spec(spec)
sys.modules["mutants"] = mutants
sys.dont_write_bytecode = True
spec.loader.exec_module(mutants)


class Mutations(unittest.TestCase):
    def test_each_fits_its_file(self):
        for mutation in mutants.read_mutations(ROOT / "tests/mutations.txt"):
            with self.subTest(line=mutation.line, mutation=str(mutation)):
                text = (ROOT / mutation.path).read_text()
                self.assertNotEqual(mutation.applied_to(text), text)


if __name__ == "__main__":
    unittest.main(verbosity=1)
