#!/usr/bin/env python3
"""Python programs under the probe that keep the memory of each step: the variable that keeps it is named, by the real binary.

    kept.py BUILD [TEST...]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import together  # noqa: E402
from python_frames import home, pythons  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
PROGRAM = HERE / "kept_ways.py"
LIMIT_S = 120
#: what the finding's words begin with, and what they hold besides
WAYS = {
    "a_local_list": ("losses (list, N items), local of a_local_list() at kept_ways.py:", "LINE losses = []"),
    "a_global_dict": ("cache (dict, N items) in kept_ways.py module globals", ""),
    "a_deque_of_an_object": ("tuple, N items within Replay.memory (deque, N items), attribute of replay in kept_ways.py module globals", ""),
    "a_variable_of_a_closure": ("seen (list, N items) in the closure of ", "remember(), remember in kept_ways.py module globals"),
    "a_traceback": ("activations, local of fails() at ", "in the traceback of an object of builtins.ValueError within errors (list, N items)"),
    "an_lru_cache": ("dict, N items within mask (lru_cache, N items) in kept_ways.py module globals", ""),
    "a_hook": ("the default arguments of a_hook.", "function in Model.hooks (dict, N items), attribute of model in kept_ways.py module globals"),
    "a_class_attribute": ("Metric.history (list, N items), attribute of the class", ""),
    "a_generator": ("batch, local of batches() at ", "in the generator batches() within iterators (list, N items), local of a_generator()"),
    "a_thread": ("['outputs'] (list, N items) of ", "local, local of "),
    "no_list_but_a_chain": ("a chain of tensors.T (N items) that begins at last, local of no_list_but_a_chain() at kept_ways.py:", "LINE last = None"),
    "an_attribute_each": ("SimpleNamespace.t* (N items), attributes of store, local of an_attribute_each() at kept_ways.py:", ""),
    "a_global_each": ("output_* (N items) in kept_ways.py module globals", ""),
    "a_tree_that_knows_its_parents": ("Node.tensor, attribute of a chain of __main__.Node (N items) that begins at root, local of ", "LINE root = node = Node(None, None)"),
    "a_handler_of_records": ("LogRecord.args (tuple, N items), attribute of an object of logging.LogRecord within Collects.records (list, N items), attribute of ", "['kept'] (object) of Manager.loggerDict"),
    "an_extension": ("py_object_Array_400._objects (dict, N items), attribute of slots, local of an_extension()", ""),
}


class Kept(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)
        driver = BUILD / "tests/probe/cuda/driver"
        if not (driver / "libcuda.so.1").exists():
            self.skipTest("no double of CUDA's driver")
        own = {"XDG_RUNTIME_DIR": self.folder, "XDG_CONFIG_HOME": self.folder, "XDG_CACHE_HOME": self.folder}
        program = {"LD_LIBRARY_PATH": driver, "PYTHONPATH": HERE / "site-packages", "PYTHONDONTWRITEBYTECODE": "1"}
        self.environment = {**os.environ, **{name: str(value) for name, value in {**own, **program}.items()}}
        os.chmod(self.folder, 0o700)

    def command(self, *words, options=(), python=sys.executable):
        return [BUILD / "vramtrack", "run", "--output", self.folder / "trace", "--probe", BUILD / "probe", *options, "--", python, *words]

    def run_it(self, *words, **more):
        done = subprocess.run(self.command(*words, **more), env=self.environment, capture_output=True, text=True, timeout=LIMIT_S)
        return done, self.report()

    def report(self):
        read = [BUILD / "vramtrack", "trace", "report", "--format", "json", self.folder / "trace"]
        return json.loads(subprocess.run(read, env=self.environment, capture_output=True, text=True, timeout=LIMIT_S).stdout)

    def check_way(self, way, python=sys.executable):
        done, report = self.run_it(PROGRAM, way, python=python)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(report["findings"], (way, report["verdict"], done.stderr))
        kept = report["findings"][0]["kept_by"]
        self.assertIsNotNone(kept, (way, report["findings"][0], done.stderr))
        words = re.sub(r"[\d,]+ items", "N items", kept["words"])
        begin, rest = WAYS[way]
        self.assertTrue(words.startswith(begin), words)
        if rest.startswith("LINE "):
            line = next(i for i, text in enumerate(PROGRAM.read_text().splitlines(), 1) if text.strip() == rest[5:])
            self.assertTrue(words.endswith(f":{line}"), words)
        else:
            self.assertIn(rest, words)
        return done, report

    def test_the_run_and_the_text_of_the_report_say_it(self):
        done, _ = self.check_way("a_global_dict")
        self.assertRegex(done.stderr, r"LEAK at \S*kept_ways.py:\d+ a_global_dict: .*, kept by cache \(dict, 400 items\) in kept_ways.py module globals")
        text = subprocess.run([BUILD / "vramtrack", "trace", "report", self.folder / "trace"], env=self.environment, capture_output=True, text=True).stdout
        self.assertIn("kept by cache (dict, 400 items) in kept_ways.py module globals, seen after ", text)
        self.assertIn("next: bound what is in cache (dict, 400 items)", text)

    def test_switched_off(self):
        _, report = self.run_it(PROGRAM, "a_local_list", options=["--no-kept"])
        self.assertIsNone(report["findings"][0]["kept_by"])
        self.assertEqual(report["findings"][0]["no_keeper_because"], "Python was not asked: it is switched off")

    def test_two_lists_that_one_line_fills_are_two_findings(self):
        done, report = self.run_it(PROGRAM, "two_lists")
        self.assertEqual(done.returncode, 0, done.stderr)
        kept = sorted(one["kept_by"]["words"].split(" (list, ")[0] for one in report["findings"])
        self.assertEqual(kept, ["losses", "outputs"], done.stderr)
        self.assertEqual(len(re.findall(r"LEAK at \S*kept_ways.py:\d+ two_lists: ", done.stderr)), 2, done.stderr)

    def test_what_a_thread_kept_that_is_over_is_said_to_be_given_back(self):
        done, report = self.run_it(PROGRAM, "a_thread_that_is_over")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(report["findings"][0]["no_keeper_because"], "given back .*: the function or the thread that kept it had ended")

    def check_as_it_was(self, words, status):
        alone = subprocess.run([sys.executable, PROGRAM, words], env=self.environment, capture_output=True, text=True, timeout=LIMIT_S)
        done, report = self.run_it(PROGRAM, words)
        self.assertEqual((alone.returncode, done.returncode, done.stdout), (status, status, alone.stdout))
        told = [line for line in done.stderr.splitlines() if not line.startswith("vramtrack: ")]
        self.assertEqual(told, alone.stderr.splitlines())
        if words == "healthy":
            self.assertEqual(report["findings"], [])

    def test_a_limit_names_what_was_kept_when_it_was_reached(self):
        # The function is left by the exception, and its variables with it.
        done, report = self.run_it(PROGRAM, "to_the_limit", options=["--limit", "2MiB"])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("outputs (list, ", report["findings"][0]["kept_by"]["words"])

    def test_a_program_that_ends_amid_a_search_waits_for_it(self):
        # The interpreter would end its thread within a function that may not throw, and with it the program.
        done, _ = self.run_it(PROGRAM, "ends_while_it_is_searched", BUILD / "probe/libprobe_holds.so")
        self.assertEqual((done.returncode, done.stdout), (0, "True\n"), done.stderr)

    def test_what_a_handler_of_signals_raises_is_the_programs(self):
        done, _ = self.run_it(PROGRAM, "stopped_by_signals")
        self.assertEqual((done.returncode, done.stdout), (0, "all caught\n"), done.stderr)

    def test_an_older_python_is_refused_with_the_reason(self):
        older = sorted(home().glob(".pyenv/versions/3.7.*/bin/python3.7"))
        if not older:
            self.skipTest("no Python 3.7 is here")
        done, report = self.run_it(PROGRAM, "a_local_list", python=older[0])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(report["findings"][0]["no_keeper_because"], "Python was not asked: Python is older than 3.8")

    def test_an_alert_says_the_line_and_when_it_began(self):
        program = subprocess.Popen(self.command(PROGRAM, "until_its_input_ends", options=["--watch"]), env=self.environment,
                                   stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
        try:
            line = next(said for said in program.stderr if "LEAK at " in said)
            self.assertRegex(line, r"LEAK at \S*kept_ways.py:\d+ until_its_input_ends: .*; it began \d+ \w+ after the start\n")
        finally:
            program.stdin.close()
            program.stderr.read()
            program.wait(LIMIT_S)
            program.stderr.close()

    def test_on_request(self):
        program = subprocess.Popen(self.command(PROGRAM, "until_its_input_ends"), env=self.environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        try:
            self.assertEqual(program.stdout.readline(), "at work\n")
            done = subprocess.run([BUILD / "vramtrack", "control", "--kept"], env=self.environment, capture_output=True, text=True, timeout=LIMIT_S)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"process \d+: outputs \(list, [\d,]+ items\), local of until_its_input_ends\(\) at kept_ways.py:\d+\n")
        finally:
            program.stdin.close()
            program.wait(LIMIT_S)
            program.stdout.close()

    def test_attach_is_let_in_by_the_probe(self):
        program = subprocess.Popen(self.command(PROGRAM, "until_its_input_ends"), env=self.environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        try:
            self.assertEqual(program.stdout.readline(), "at work\n")
            (child,) = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
            done = subprocess.run([BUILD / "vramtrack", "attach", child, "--duration", "0", "--kept"], env=self.environment, capture_output=True, text=True, timeout=LIMIT_S)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"^What keeps tensors:\n  outputs \(list, [\d,]+ items\), local of until_its_input_ends\(\) at kept_ways.py:\d+ keeps ")
            self.assertEqual(list(self.folder.rglob("attach.*.py")), [])
        finally:
            program.stdin.close()
            program.wait(LIMIT_S)
            program.stdout.close()


def add(name, check, *arguments):
    setattr(Kept, f"test_{name}", lambda self: getattr(self, check)(*arguments))


for way in WAYS:
    add(f"the_variable_is_named_{way}", "check_way", way)
for version, python in pythons().items():
    add(f"python_{version}_a_local_list", "check_way", "a_local_list", python)
    add(f"python_{version}_a_thread", "check_way", "a_thread", python)
for words, status in (("healthy", 0), ("ends_with_an_error", 1), ("ends_with_a_status", 7)):
    add(f"the_program_is_as_it_was_{words}", "check_as_it_was", words, status)

if __name__ == "__main__":
    together.main(Kept)
