"""`vramtrack trace live` on programs that run already: live.py BINARY KEEPER LIBRARY

Needs the right to load BPF programs (root); is skipped without it, with the reason.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from programs import Program, is_probed, line_of, pythons, stays_probed

BINARY, KEEPER, LIBRARY = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
del sys.argv[1:4]
HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20


class Live(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace = self.folder / "live.trace"

    def start(self, *command):
        program = Program(*command)
        self.addCleanup(program.end)
        return program

    def attach(self, *options):
        tracer = subprocess.Popen([BINARY, "trace", "live", "--output", self.trace, *map(str, options)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        self.addCleanup(tracer.communicate)
        self.addCleanup(tracer.kill)
        first = tracer.stdout.readline()
        if not first.startswith("tracing "):
            self.fail(f"{first}{tracer.communicate()[1]}")
        return tracer

    def detach(self, tracer):
        tracer.send_signal(signal.SIGINT)
        out, err = tracer.communicate(timeout=60)
        self.assertEqual(err, "")
        report = subprocess.run([BINARY, "trace", "report", "--format", "json", self.trace], capture_output=True, text=True, timeout=60)
        report = json.loads(report.stdout)
        self.processes = report["verdict"]["processes"]
        self.live_bytes = sum(process["live_bytes"] for process in self.processes)
        return tracer.returncode, out, report

    def traced(self, program, *commands, options=None):
        tracer = self.attach(*(options or ("--pid", program.process.pid)))
        program.do(*commands)
        return self.detach(tracer)

    def test_names_the_line_that_keeps_and_counts_each_byte(self):
        program = self.start(KEEPER)
        program.do("k100", "u10")  # before anybody looks
        code, text, report = self.traced(program, *["k10", "u10"] * 30)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, rf"LEAK: \S*keeper\.cpp:{line_of('keeper.cpp', 'allocate')} .*allocate")
        site = report["sites"][0]
        self.assertEqual((site["live_bytes"], site["live_count"]), (300 * MIB, 300))
        frames = [(frame["file"].rsplit("/", 1)[-1], frame["line"]) for frame in site["frames"]]
        self.assertIn(("keeper.cpp", line_of("keeper.cpp", "keep")), frames)

    def test_gives_back_what_is_given_back_and_names_nothing(self):
        program = self.start(KEEPER)
        program.do("k5")
        code, text, report = self.traced(program, *["k3", "g"] * 30)
        self.assertEqual(code, 0, text)
        self.assertEqual(self.live_bytes, 0)
        self.assertTrue(any("before" in note or "5 " in note for note in report["verdict"]["notes"]), report["verdict"]["notes"])

    def test_a_call_within_a_call_counts_once_and_a_failure_is_none(self):
        program = self.start(KEEPER)
        _, _, report = self.traced(program, "p", "l", "p")
        self.assertEqual(self.live_bytes, 2 * 1024 * 1024)

    def test_reads_a_deep_stack_and_other_threads(self):
        program = self.start(KEEPER)
        _, _, report = self.traced(program, "d100", "t20")
        self.assertEqual(self.live_bytes, 60 * MIB)

    def test_follows_children_and_what_replaces_the_program(self):
        program = self.start(KEEPER)
        _, _, report = self.traced(program, "k2", "f7", "f7")
        self.assertEqual(sorted(process["events"] for process in self.processes), [2, 7, 7])
        tracer = self.attach("--pid", program.process.pid)
        program.do("k2", "x")
        program.do("k3")
        self.detach(tracer)
        self.assertEqual(self.live_bytes, 5 * MIB)  # of the first image and of the second

    def test_names_python_lines(self):
        """Of every interpreter that is here."""
        for version, python in pythons().items():
            with self.subTest(version=version):
                program = self.start(python, HERE / "keeper.py", LIBRARY)
                code, text, report = self.traced(program, *["k5"] * 30)
                self.assertEqual(code, 1, text)
                name = "Model.forward" if version >= (3, 11) else "forward"
                self.assertRegex(text, rf"LEAK: \S*keeper\.py:{line_of('keeper.py', 'forward')} {name}")
                self.assertEqual(report["sites"][0]["live_count"], 150)
                self.assertIn("train", [frame["function"] for frame in report["sites"][0]["frames"]])

    def test_leaves_no_probe_however_it_ends(self):
        program = self.start(KEEPER)
        for end in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            tracer = self.attach("--pid", program.process.pid)
            self.assertTrue(is_probed(program, LIBRARY))
            program.do("k2")
            tracer.send_signal(end)
            tracer.communicate(timeout=60)
            self.assertFalse(stays_probed(program, LIBRARY), end)

    def test_ends_with_the_program(self):
        program = Program(KEEPER)
        tracer = self.attach("--pid", program.process.pid)
        program.do("k2")
        program.end()
        out, _ = tracer.communicate(timeout=60)
        self.assertEqual(tracer.returncode, 0, out)

    def test_says_what_it_waits_for_and_leaves_no_file_of_nothing(self):
        self.trace.write_text("an earlier one")
        for options, words in ((("--user", "nobody"), "a process of user nobody"), (("--container", "4f2a9c", "--job", "1"),
                               "a process of container 4f2a9c or a process of job 1"), (("--pid", os.getpid()), f"process {os.getpid()}")):  # fmt: skip
            tracer = subprocess.Popen([BINARY, "trace", "live", "--output", self.trace, *map(str, options)],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
            self.addCleanup(tracer.communicate)
            self.addCleanup(tracer.kill)
            self.assertIn(f"waiting for {words} that uses a GPU library", tracer.stdout.readline())
            tracer.send_signal(signal.SIGINT)
            out, error = tracer.communicate(timeout=60)
            self.assertEqual((tracer.returncode, out), (2, ""), error)
            self.assertIn("no process that was named uses a GPU library that can be traced", error)
            self.assertEqual([path.name for path in self.folder.iterdir()], ["live.trace"])
            self.assertEqual(self.trace.read_text(), "an earlier one")

    def test_the_files_default_name_is_one_for_all(self):
        program = self.start(KEEPER)
        for options in (("--pid", program.process.pid), ("--all",), ("--user", pathlib.Path(f"/proc/{program.process.pid}").owner())):
            tracer = subprocess.Popen([BINARY, "trace", "live", *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      cwd=self.folder)  # fmt: skip
            self.addCleanup(tracer.communicate)
            self.addCleanup(tracer.kill)
            self.assertIn("tracing ", tracer.stdout.readline())
            name = f"vramtrack.live.{tracer.pid}.trace"
            self.assertEqual([path.name for path in self.folder.iterdir()], [name])
            tracer.send_signal(signal.SIGINT)
            self.assertIn(f"wrote {name}\n", tracer.communicate(timeout=60)[0])
            (self.folder / name).unlink()

    def test_says_what_is_wrong(self):
        for options, words in ((("--pid", "0"), "expected the number of a process"), (("--pid", "4194304"), "no such process"), (("--user", "nobody-at-all"), "there is no user 'nobody-at-all' here"), ((), "name what to trace")):
            done = subprocess.run([BINARY, "trace", "live", "--output", self.trace, *options], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    probe = subprocess.run([BINARY, "trace", "live", "--duration", "0s", "--all", "--output", "/dev/null"], capture_output=True, text=True)
    if "not permitted" in probe.stderr or "cannot" in probe.stderr:
        print(f"skipped: {probe.stderr.strip()}")
        sys.exit(77)
    unittest.main()
