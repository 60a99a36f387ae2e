"""`vramtrack test`: the leak gate around a program, from outside: marks with bytes, marks without, no marks, and its end."""
import os
import sys
import unittest
import xml.etree.ElementTree as ElementTree

from sandbox import Sandbox

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY", "")
MIB = 2**20

# A program in no particular language: it writes lines to the pipe with the number that it is given.
MARKS = """
import os, random, sys
rng = random.Random(1)
fd = int(os.environ["VRAMTRACK_MARK_FD"])
leak, n, key = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for i in range(n):
    used = (1000 - 800 / (1 + i) + leak * i + rng.random()) * 2**20
    os.write(fd, f"step {int(used)}{key and ' ' + key}\\n".encode())
    if i % 10 == 9: os.write(fd, b"epoch 5\\n")
sys.exit(int(sys.argv[4]))
"""


def program(leak, n=400, key="", code=0):
    return ["--", sys.executable, "-c", MARKS, str(leak), str(n), key, str(code)]


class LeakGate(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY)
        self.box.__enter__()
        self.addCleanup(self.box.__exit__, None, None, None)

    def gate(self, *args, env=None, timeout=120):
        done = self.box.run("test", "--set", "sources.sys-root=no-sys", *args, env=env, timeout=timeout)
        return done.returncode, done.stderr.decode(), done.stdout.decode()

    def test_healthy_passes(self):
        code, words, out = self.gate(*program(0))
        self.assertEqual(code, 0, words)
        self.assertRegex(words, r"passes: GPU memory: grows .*/step .*the limit is 0\.20 MiB/step; \d+ iterations after \d+ of warm-up")
        self.assertEqual(out, "")

    def test_a_leak_fails_with_its_bound(self):
        code, words, _ = self.gate("--junit", "out.xml", *program(0.5))
        self.assertEqual(code, 1, words)
        self.assertRegex(words, r"LEAKS: GPU memory: grows 0\.\d\d MiB/step \(at least 0\.\d+ MiB/step at error rate 0\.0001\)")
        case = ElementTree.parse(self.box.work / "out.xml").getroot().find("testsuite/testcase")
        self.assertIn("at least", case.find("failure").get("message"))
        properties = {p.get("name"): p.get("value") for p in case.iter("property")}
        self.assertEqual(properties["step.outcome"], "fails")
        self.assertAlmostEqual(float(properties["step.growth_bytes_per_iteration"]) / MIB, 0.5, delta=0.05)

    def test_the_limit(self):
        self.assertEqual(self.gate("--limit", "1MiB/step", *program(0.5))[0], 0)
        self.assertEqual(self.gate("--limit", "0.1 MiB/step", *program(0.5))[0], 1)
        code, words, _ = self.gate("--limit", "fast", *program(0.5))
        self.assertEqual(code, 2)
        self.assertIn('"0.2 MiB/iter"', words)

    def test_another_mark(self):
        code, words, _ = self.gate("--mark", "epoch", *program(0.5))
        self.assertEqual(code, 2, words)
        self.assertIn("40 iterations", words)
        code, words, _ = self.gate("--mark", "batch", *program(0.5))
        self.assertEqual((code, "made no mark named 'batch'" in words), (2, True), words)

    def test_the_limit_names_the_mark(self):
        # 10 steps per epoch: the growth allowed per epoch is not a limit per step.
        marks = "import os\nfd = int(os.environ['VRAMTRACK_MARK_FD'])\nfor i in range(1000):\n os.write(fd, b'step %d\\n' % (i << 20))\n" \
                " if i % 10 == 9: os.write(fd, b'epoch %d\\n' % (i << 20))\n"
        code, words, _ = self.gate("--limit", "2MiB/epoch", "--", sys.executable, "-c", marks)
        self.assertEqual(code, 1, words)
        self.assertIn("grows 10.00 MiB/epoch", words)
        self.assertEqual(self.gate("--limit", "2 MiB / step", "--", sys.executable, "-c", marks)[0], 0)

    def test_mistakes(self):
        code, words, _ = self.gate("--limit", "0.2", *program(0))
        self.assertEqual((code, "the unit is missing" in words), (2, True), words)
        code, words, _ = self.gate("--junitt", "leak.xml", *program(0))
        self.assertEqual((code, "unknown option '--junitt'" in words), (2, True), words)

    def test_too_few_iterations(self):
        code, words, _ = self.gate(*program(0.5, 30))
        self.assertEqual(code, 2)
        self.assertIn("54 iterations", words)

    def test_several_writers_are_told_apart(self):
        both = "import subprocess, sys, os\nps = [subprocess.Popen([sys.executable, '-c', sys.argv[1], leak, '300', key, '0'], " \
               "close_fds=False) for leak, key in (('0', 'rank0'), ('0.5', 'rank1'))]\nsys.exit(max(p.wait() for p in ps))"
        code, words, _ = self.gate("--", sys.executable, "-c", both, MARKS)
        self.assertEqual(code, 1, words)
        self.assertIn("GPU memory (by rank1): grows 0.", words)

    def test_a_writer_of_few_marks_decides_nothing(self):
        both = "import subprocess, sys, os\nps = [subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[2], n, key, '0'], " \
               "close_fds=False) for n, key in (('300', 'main'), ('5', 'helper'))]\nsys.exit(max(p.wait() for p in ps))"
        code, words, _ = self.gate("--", sys.executable, "-c", both, MARKS, "0")
        self.assertEqual(code, 0, words)
        self.assertIn("; one writer with less than a tenth of these iterations left out", words)
        self.assertEqual(self.gate("--", sys.executable, "-c", both, MARKS, "0.5")[0], 1)

    def test_a_child_of_a_launcher_that_closes_descriptors_opens_the_pipe_by_its_path(self):
        by_path = MARKS.replace('fd = int(os.environ["VRAMTRACK_MARK_FD"])',
                                'device, inode, path = os.environ["VRAMTRACK_MARK_PIPE"].split(":", 2)\n'
                                'fd = os.open(path, os.O_WRONLY)\n'
                                'assert (os.fstat(fd).st_dev, os.fstat(fd).st_ino) == (int(device), int(inode))')
        # The launcher has closed it, too: the gate must not take that for the end.
        launcher = "import os, subprocess, sys, time\nos.close(int(os.environ['VRAMTRACK_MARK_FD']))\ntime.sleep(0.1)\n" \
                   "sys.exit(subprocess.run([sys.executable, '-c', *sys.argv[1:]]).returncode)"
        code, words, _ = self.gate("--", sys.executable, "-c", launcher, by_path, "0.5", "300", "", "0")
        self.assertEqual(code, 1, words)
        self.assertIn("grows 0.", words)

    def test_the_lines_that_grew(self):
        said = "import os, sys\nfolder = os.environ.get('VRAMTRACK_TEST_EVIDENCE', '')\nprint(folder, end='')\n" \
               "if folder:\n    with open(os.path.join(folder, (sys.argv[3] or 'main') + '.sites'), 'w') as file:\n" \
               "        file.write('step 64 128\\n67108864 train.py:12 in step<1>\\n-5 x\\n')\n" + MARKS
        for key in ("", "rank3-pid77"):
            code, words, folder = self.gate("--junit", "out.xml", "--", sys.executable, "-c", said, "0.5", "300", key, "0")
            self.assertEqual(code, 1, words)
            self.assertIn("step 64 to step 128", words)
            self.assertIn("  train.py:12 in step<1>: +64 MiB", words)
            self.assertNotIn("pid77", words)  # there is no other process to distinguish it from
            failure = ElementTree.parse(self.box.work / "out.xml").getroot().find("testsuite/testcase/failure")
            self.assertIn("\n  train.py:12 in step<1>: +64 MiB", failure.text)
            self.assertFalse(os.path.exists(folder))
        code, words, _ = self.gate("--", sys.executable, "-c", said, "0", "300", "", "0")
        self.assertEqual((code, "grew most" in words), (0, False), words)
        code, words, folder = self.gate("--", sys.executable, "-c", said, "0.5", "300", "", "0", env={"VRAMTRACK_TEST_EVIDENCE": ""})
        self.assertEqual((code, folder, "grew most" in words), (1, "", False), words)

    def test_the_programs_own_failure(self):
        code, words, _ = self.gate(*program(0, code=7))
        self.assertEqual(code, 3)
        self.assertIn("the program ended with 7; GPU memory", words)
        code, words, _ = self.gate("--", "sh", "-c", "kill -9 $$")
        self.assertEqual(code, 3)
        self.assertIn("ended by signal 9", words)
        code, words, _ = self.gate("--", "no-such-program")
        self.assertEqual(code, 2)
        self.assertIn("cannot run no-such-program: ", words)
        self.assertEqual(self.gate(*program(0.5, code=7))[0], 1, "a leak is told before a failure")

    def test_output_and_input_are_the_programs(self):
        done = self.box.run("test", "--", "sh", "-c", "read line; echo got $line; echo its error >&2", stdin="text\n")
        self.assertEqual(done.stdout, b"got text\n")
        self.assertIn(b"its error\n", done.stderr)

    def test_nonsense_on_the_pipe(self):
        code, words, _ = self.gate("--", "sh", "-c", "head -c 100000 /dev/urandom >&$VRAMTRACK_MARK_FD")
        self.assertEqual(code, 2, words)
        self.assertIn("that were not marks", words)

    def test_without_marks_and_without_a_gpu(self):
        for program in (["sleep", "0.1"], ["true"]):
            code, words, _ = self.gate("--set", "sources.nvml-library=no-such-library.so", "--", *program)
            self.assertEqual(code, 2)
            self.assertIn("no GPU memory", words)

    def driver_of(self, used):
        """A prefix for a shell command that makes it the process that holds the memory. Where `scenario` is a FIFO, the fake driver waits
        at it for the pid."""
        self.box.write("template", f"gpu 0 uuid=GPU-0 total=80G used=1G\nprocess gpu=0 pid=PID list=C used={used}\n"
                       f"note file={self.box.work}/enough at=150\n")
        return "sed s/PID/$$/ template > scenario; "

    @unittest.skipUnless(FAKE, "the fake NVML library was not built")
    def test_a_program_without_marks_is_sampled(self):
        os.mkfifo(self.box.work / "scenario")
        for used, expected in (("100M+1M", 1), ("100M,200M,210M", 0)):
            # Until it has been sampled often enough, however busy the machine is.
            script = "rm -f enough; " + self.driver_of(used) + "while [ ! -e enough ]; do sleep 0.02; done"
            code, words, _ = self.gate("--set", f"sources.nvml-library={FAKE}", "--interval", "20ms", "--", "sh", "-c", script,
                                       env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "scenario")})
            self.assertEqual(code, expected, words)
            self.assertIn("the program makes no marks, so its process tree's memory was tested by time", words)
            if expected:
                self.assertIn("grows 1.00 MiB/sample", words)

    @unittest.skipUnless(FAKE, "the fake NVML library was not built")
    def test_marks_without_bytes_are_measured(self):
        script = self.driver_of("100M+2M") + "i=0; while [ $i -lt 150 ]; do echo step >&$VRAMTRACK_MARK_FD; sleep 0.005; i=$((i+1)); done"
        code, words, _ = self.gate("--set", f"sources.nvml-library={FAKE}", "--interval", "60s", "--", "sh", "-c", script,
                                   env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "scenario")})
        self.assertEqual(code, 1, words)
        self.assertIn("grows 2.00 MiB/step", words)


if __name__ == "__main__":
    unittest.main()
