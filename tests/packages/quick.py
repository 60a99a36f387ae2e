#!/usr/bin/env python3
"""What `make quick` builds and runs (scripts/quick.py), and what differs from the main branch (scripts/changed.sh): quick.py BUILD_DIR"""
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1))

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("quick", ROOT / "scripts/quick.py")
quick = importlib.util.module_from_spec(spec)
spec.loader.exec_module(quick)

MODULES = """\
module core core
module detect detect core
module engine engine core detect
module gate gate core
module gate_run gate/run gate
module cli cli engine gate_run
other page dashboard.stamp
other python vramtrack_python
tests detect detect_test unit.detect
tests engine engine_test unit.engine
tests gate gate_test unit.gate
tests gate_run gate_run_test unit.gate_run
tests cli cli_test unit.cli
tests bench accuracy_test accuracy
"""


class Plan(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def plan(self, *changed, modules=MODULES):
        path = pathlib.Path(self.folder.name) / "modules.txt"
        path.write_text(modules)
        return quick.plan_for(changed, quick.read_modules(path))

    def test_a_module_and_those_that_link_it(self):
        self.assertEqual(self.plan("src/detect/judge.cpp").targets, ["detect_test", "engine_test"])
        self.assertEqual(self.plan("src/engine/a/b.def").targets, ["cli_test", "engine_test"])

    def test_the_folder_of_a_module_within_another(self):
        self.assertEqual(self.plan("src/gate/run/probe.cpp").targets, ["cli_test", "gate_run_test"])
        self.assertEqual(self.plan("src/gate/verdict.cpp").targets, ["gate_test", "gate_run_test"])

    def test_a_test_alone_runs_its_program_alone(self):
        plan = self.plan("tests/unit/detect/judge_test.cpp", "tests/unit/bench/series_test.cpp")
        self.assertEqual(plan.targets, ["accuracy_test", "detect_test"])
        self.assertEqual(plan.tests, [r"accuracy\.[0-9]+", r"unit\.detect\.[0-9]+"])

    def test_the_page(self):
        plan = self.plan("page/src/gpu.ts")
        self.assertEqual((plan.targets, plan.tests), (["dashboard.stamp"], ["dashboard_types", "dashboard_unit"]))

    def test_the_package(self):
        plan = self.plan("python/vramtrack/watch.py")
        self.assertEqual(plan.targets, ["vramtrack_python"])
        self.assertIn(r"python\.watch", plan.tests)
        self.assertNotIn(r"python\.snapshots_of_others", plan.tests)
        self.assertEqual(self.plan("python/tests/test_advice.py").tests, [r"python\.advice"])
        self.assertIn(r"python\.detect", self.plan("python/native/detect.cpp").tests)

    def test_a_module_that_others_import_runs_theirs_too(self):
        self.assertLessEqual({r"python\.advice", r"python\.gate"}, set(self.plan("python/vramtrack/units.py").tests))

    def test_what_is_not_built_is_left_out(self):
        without = "".join(line for line in MODULES.splitlines(True) if not line.startswith("other"))
        plan = self.plan("page/src/gpu.ts", "python/vramtrack/watch.py", modules=without)
        self.assertEqual((plan.targets, plan.left_out), ([], ["page/src/gpu.ts", "python/vramtrack/watch.py"]))

    def test_what_no_unit_test_covers_is_named(self):
        plan = self.plan("CMakeLists.txt", "src/pch.hpp", "tests/cli/top.py", "docs/manual.md")
        self.assertEqual((plan.targets, plan.left_out), ([], ["CMakeLists.txt", "src/pch.hpp", "tests/cli/top.py"]))

    def test_every_source_of_this_tree_has_a_module(self):
        modules = quick.read_modules(BUILD / "modules.txt")
        folders = {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").glob("*/**/*.cpp")}
        self.assertEqual(quick.plan_for(sorted(folders), modules).left_out, [])
        units = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests/unit").glob("*/**/*_test.cpp")}
        self.assertEqual(quick.plan_for(sorted(units), modules).left_out, [])
        self.assertLessEqual({"detect", "engine"}, set(quick.plan_for(["src/detect/judge.cpp"], modules).modules))


class Changed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/changed.sh", self.root / "scripts")
        self.git("init", "-q", "-b", "main")
        self.git("add", ".")
        self.commit("first")

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.root, check=True, capture_output=True)

    def commit(self, name):
        (self.root / name).write_text(name)
        self.git("add", name)
        self.git("commit", "-q", "-m", name)

    def changed(self, *arguments):
        done = subprocess.run([self.root / "scripts/changed.sh", *arguments], capture_output=True, text=True)
        return done.stdout.split() if done.returncode == 0 else done.stderr

    def test_what_is_committed_edited_and_new(self):
        self.git("checkout", "-q", "-b", "branch")
        self.commit("second")
        (self.root / "first").write_text("edited")
        (self.root / "new").write_text("new")
        self.assertEqual(self.changed(), ["first", "second", "new"])
        self.assertEqual(self.changed("second"), ["second"])

    def test_on_the_main_branch_the_recent_ones_if_asked(self):
        self.commit("second")
        self.assertEqual(self.changed(), [])
        self.assertEqual(self.changed("--or-recent"), ["second"])

    def test_without_a_main_branch_it_says_so(self):
        self.git("branch", "-m", "other")
        self.assertIn("neither a branch origin/main nor main", self.changed())


if __name__ == "__main__":
    unittest.main()
