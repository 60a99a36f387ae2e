#!/usr/bin/env python3
"""How a release build compiles (docs/design/0033-build.md): levels.py BUILD_FOLDER, which holds compile_commands.json"""
import collections
import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = [(str(pathlib.Path(entry["directory"], entry["file"]).resolve().relative_to(ROOT)), entry["command"])
            for entry in json.loads((pathlib.Path(sys.argv.pop(1)) / "compile_commands.json").read_text())
            if pathlib.Path(entry["directory"], entry["file"]).resolve().is_relative_to(ROOT)]


def level(command):
    """Of several options, the last one counts."""
    return (re.findall(r" -O(\w+)", command) or [""])[-1]


# The probe is compiled for speed, and without the product's headers; tests compile some files of commands once more, at -O0.
PRODUCT = [(file, command) for file, command in COMMANDS
           if file.startswith("src/") and not file.startswith("src/probe/") and file != "src/pch.cpp" and level(command) != "0"]


@unittest.skipUnless(any(level(command) == "s" for _, command in COMMANDS), "this is no release build")
class Levels(unittest.TestCase):
    def test_what_runs_for_each_sample_is_compiled_for_speed_and_the_rest_for_size(self):
        lines = (ROOT / "src/per_sample.txt").read_text().splitlines()
        fast = {f"src/{line}" for line in lines if line.strip() and not line.startswith("#")}
        levels = collections.defaultdict(set)
        for file, command in PRODUCT:
            levels[file].add(level(command))
        self.assertTrue(fast <= set(levels), "a file of per_sample.txt is not compiled")
        for file, found in levels.items():
            self.assertEqual(found, {"2" if file in fast else "s"}, file)

    def test_nothing_is_compiled_at_o3(self):
        self.assertEqual([file for file, command in COMMANDS if level(command) == "3"], [])

    def test_every_file_of_the_product_uses_a_precompiled_header(self):
        for file, command in PRODUCT:
            self.assertIn("cmake_pch", command, file)


if __name__ == "__main__":
    unittest.main(verbosity=1)
