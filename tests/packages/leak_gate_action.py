#!/usr/bin/env python3
"""The leak gate's action for others' CI: its step is run here as the runner would run it, with the real vramtrack and a program that
marks its bytes itself; and the workflows are read.

    leak_gate_action.py VRAMTRACK
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

try:
    import yaml
except ImportError:
    print("skipped: this Python has no yaml (Debian: python3-yaml)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACTION = ROOT / ".github" / "actions" / "leak-gate"
VRAMTRACK = ""
# Grows by GROWTH bytes in each iteration, with a jitter of a tenth of a MiB that is the same in each run.
PROGRAM = """
import os, random
random.seed(7)
for step in range(300):
    used = 2**30 + step * float(os.environ["GROWTH"]) + random.gauss(0, 1e5)
    os.write(int(os.environ["VRAMTRACK_MARK_FD"]), b"step %d\\n" % used)
"""
MIB = 2**20


def expanded(text, inputs):
    """What the runner makes of ${{ inputs.NAME }}."""
    return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: inputs[found[1]], text)


class Action(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "program.py").write_text(PROGRAM)
        self.action = yaml.safe_load((ACTION / "action.yml").read_text())
        self.baseline = self.folder / "baseline.json"

    def gate(self, growth_mib=0.0, **given):
        inputs = {name: str(entry.get("default", "")) for name, entry in self.action["inputs"].items()}
        inputs |= {"program": f"{sys.executable} program.py", "baseline": "baseline.json", "vramtrack": VRAMTRACK}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        (step,) = [step for step in self.action["runs"]["steps"] if step.get("id") == "gate"]
        outputs, summary = self.folder / "outputs", self.folder / "summary"
        for file in (outputs, summary):
            file.write_text("")
        env = {**os.environ, **{name: expanded(text, inputs) for name, text in step["env"].items()}, "GITHUB_ACTION_PATH": str(ACTION),
               "GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary), "GROWTH": str(growth_mib * MIB),
               "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=self.folder, env=env,
                              capture_output=True, text=True, check=False)
        self.said = done.stdout + done.stderr
        self.outputs = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
        self.summary = summary.read_text()
        return done.returncode

    def bound_mib(self):
        return json.loads(self.baseline.read_text())["growth_high_bytes"]["step"] / MIB

    def test_a_healthy_program_passes_and_makes_a_baseline(self):
        self.assertEqual(self.gate(), 0, self.said)
        self.assertEqual(self.outputs["outcome"], "passes")
        self.assertLess(self.bound_mib(), 0.2)
        self.assertIn("| `step` |", self.summary)
        self.assertEqual(len(list(xml.parse(self.folder / "vramtrack-leak-gate.xml").iter("testcase"))), 1)

    def test_a_leak_fails_without_a_baseline_and_makes_none(self):
        self.assertEqual(self.gate(3), 1, self.said)
        self.assertEqual(self.outputs["outcome"], "leaks")
        self.assertAlmostEqual(int(self.outputs["growth_bytes"]) / MIB, 3, places=1)
        self.assertFalse(self.baseline.exists())
        self.assertIn("accept: true", self.said)

    def test_an_accepted_leak_passes_until_it_grows(self):
        self.assertEqual(self.gate(3, accept="true"), 0, self.said)
        self.assertAlmostEqual(self.bound_mib(), 3, delta=0.1)
        self.assertEqual(self.gate(3), 0, self.said)
        self.assertEqual(self.gate(4), 1, self.said)
        self.assertIn("the baseline", self.said)
        self.assertAlmostEqual(self.bound_mib(), 3, delta=0.1)

    def test_a_mended_leak_does_not_come_back(self):
        self.gate(3, accept="true")
        self.assertEqual(self.gate(0), 0, self.said)
        self.assertLess(self.bound_mib(), 0.2)
        self.assertEqual(self.gate(3), 1, self.said)

    def test_growth_does_not_creep_up(self):
        self.gate(3, accept="true")
        bound = self.bound_mib()
        self.gate(3.002)
        self.assertLessEqual(self.bound_mib(), bound)

    def test_a_program_that_fails_or_makes_no_marks_is_no_success(self):
        self.assertIn(self.gate(program="exit 5"), (2, 3), self.said)
        self.assertEqual(self.gate(program=f"{sys.executable} program.py; exit 5"), 3, self.said)
        self.assertEqual(self.outputs["outcome"], "program_failed")
        self.assertFalse(self.baseline.exists())

    def test_a_file_that_is_no_baseline_is_named(self):
        self.baseline.write_text("[]")
        self.assertEqual(self.gate(), 1)
        self.assertIn("baseline.json is not a baseline of the leak gate", self.said)

    def test_what_an_input_contains_is_not_run(self):
        self.assertEqual(self.gate(limit="$(touch ran) MiB/iter"), 2, self.said)
        self.assertFalse((self.folder / "ran").exists())


class Workflows(unittest.TestCase):
    def files(self):
        return [*sorted((ROOT / ".github" / "workflows").glob("*.yml")), ACTION / "action.yml"]

    def steps(self, path):
        content = yaml.safe_load(path.read_text())
        jobs = content["jobs"].values() if "jobs" in content else [content["runs"]]
        return [step for job in jobs for step in job["steps"]]

    def test_actions_are_pinned(self):
        for path in self.files():
            for step in self.steps(path):
                if "uses" in step:
                    self.assertRegex(step["uses"], r"^actions/[a-z/-]+@[0-9a-f]{40}$", path)

    def test_each_make_target_exists(self):
        targets = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
        called = set()
        for path in self.files():
            content = yaml.safe_load(path.read_text())
            matrix = [target for job in content.get("jobs", {}).values() for target in job.get("strategy", {}).get("matrix", {}).get("target", [])]
            called.update(matrix)
            for step in self.steps(path):
                called.update(re.findall(r"^make ([a-z0-9-]+)", step.get("run", ""), re.MULTILINE))
        self.assertLessEqual(called, targets)
        self.assertGreaterEqual(called, {"test", "lint", "dev", "dist", "try-deb", "try-portable"})

    def test_they_may_read_unless_they_say_why(self):
        for path in self.files()[:-1]:
            content = yaml.safe_load(path.read_text())
            self.assertEqual(content["permissions"], {"contents": "read"}, path)
            for name, job in content["jobs"].items():
                if "permissions" in job:
                    self.assertEqual((path.name, name, job["permissions"]), ("release.yml", "draft", {"contents": "write"}))

    def test_no_expression_is_pasted_into_a_script(self):
        for path in self.files():
            for step in self.steps(path):
                for expression in re.findall(r"\$\{\{ *([^}]*?) *\}\}", step.get("run", "")):
                    self.assertEqual(expression, "matrix.target", path)

    def test_every_step_is_valid_shell(self):
        for path in self.files():
            for step in self.steps(path):
                if "run" in step:
                    done = subprocess.run(["bash", "-n", "-c", re.sub(r"\$\{\{[^}]*\}\}", "x", step["run"])], capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    VRAMTRACK = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
