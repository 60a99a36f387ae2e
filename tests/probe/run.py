"""`vramtrack run` and `vramtrack control` from outside, on programs whose only GPU call is a mark."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BINARY, PROBE = (pathlib.Path(path).resolve() for path in (sys.argv.pop(1), sys.argv.pop(1)))
MARK = "import ctypes; mark = ctypes.CDLL(None).vramtrack_probe_mark; mark(b'begun'); "


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.work = self.folder / "work"
        self.work.mkdir()

    def environment(self):
        return {**os.environ, "XDG_RUNTIME_DIR": str(self.runtime), "XDG_CONFIG_HOME": str(self.folder),
                "XDG_CACHE_HOME": str(self.folder / "cache")}

    def start(self, *words, **kwargs):
        process = subprocess.Popen([BINARY, "run", "--probe", PROBE.parent, *words], cwd=self.work, env=self.environment(), text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        def end():
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                pipe.close()
        self.addCleanup(end)
        return process

    def run_program(self, *words):
        process = self.start(*words)
        out, error = process.communicate(timeout=60)
        return process.returncode, out, error

    def control(self, *words):
        return subprocess.run([BINARY, "control", *words], env=self.environment(), capture_output=True, text=True, timeout=60)

    def traces(self):
        return sorted(path.name for path in self.work.iterdir())

    def test_the_programs_own_status_and_output(self):
        for code, status in (("print('out')", 0), ("print('out'); raise SystemExit(7)", 7),
                             ("print('out', flush=True); import os; os.kill(os.getpid(), 9)", 128 + 9)):
            returned, out, _ = self.run_program("--", sys.executable, "-c", code)
            self.assertEqual((returned, out), (status, "out\n"), code)
        self.assertEqual(self.traces(), [], "no GPU, no file")
        self.assertEqual(list((self.runtime / "vramtrack-runs").iterdir()), [])

    def test_the_last_words_of_a_program_that_was_killed(self):
        for code, end in (("pass", "signal 9 (Killed); nothing was recorded until then"), (MARK, "signal 9 (Killed)")):
            returned, _, error = self.run_program("--", sys.executable, "-c", code + "\nimport os; os.kill(os.getpid(), 9)")
            self.assertEqual(returned, 128 + 9)
            self.assertEqual(error.splitlines()[-1], f"vramtrack: the program was killed by {end}")

    def test_where_nothing_was_recorded_a_leak_is_not_ruled_out(self):
        for code, status in (("pass", 2), ("raise SystemExit(7)", 7)):
            returned, _, error = self.run_program("--fail-on-leak", "--", sys.executable, "-c", code)
            self.assertEqual(returned, status, error)
            self.assertIn("nothing was recorded: the program called no GPU API", error)
            self.assertEqual("--fail-on-leak: nothing was recorded, so a leak cannot be ruled out" in error, status == 2, error)
        self.assertEqual(self.run_program("--quiet", "--fail-on-leak", "--", "true")[0], 2)
        self.assertEqual(self.run_program("--fail-on-leak", "--", sys.executable, "-c", MARK)[0], 0, "recorded, and too short to tell")
        self.assertEqual(self.run_program("--", sys.executable, "-c", "pass")[0], 0)

    def test_the_last_words_of_a_program_whose_child_was_killed(self):
        child = f"{sys.executable} -c 'import os; os.kill(os.getpid(), 9)'; exit $?"
        returned, _, error = self.run_program("--", "sh", "-c", child)
        self.assertEqual(returned, 137)
        self.assertIn("nothing was recorded; judging by its status of 137, the program, or one that it started, was killed by signal 9 (Killed)", error)
        self.assertNotIn("no GPU API", error)

    def test_a_program_that_may_write_no_large_file_is_recorded(self):
        code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0})); " + MARK + "print('done')"
        for most in (0, 100_000, 2**20):
            returned, out, error = self.run_program("--output", f"{most}.trace", "--", sys.executable, "-c", code.format(most))
            self.assertEqual((returned, out), (0, "done\n"), error)
            self.assertIn(f"recorded into {most}.trace", error)
            report = subprocess.run([BINARY, "trace", "report", self.work / f"{most}.trace"], capture_output=True, text=True, timeout=60)
            self.assertEqual(report.returncode, 0, report.stderr)

    def test_a_run_that_may_write_no_large_file_itself_ends_with_its_program(self):
        words = [str(word) for word in (BINARY, "run", "--probe", PROBE.parent, "--output", "a.trace", "--", sys.executable, "-c",
                                        MARK + "print('done')")]  # fmt: skip
        for most, said in ((0, "within this process's limit for files"), (16 << 10, "within this process's limit for files"), (1 << 20, "recorded into")):
            limit = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most})); os.execv(sys.argv[1], sys.argv[1:])"
            ran = subprocess.run([sys.executable, "-c", limit, *words], cwd=self.work, env=self.environment(), capture_output=True, text=True, timeout=60)
            self.assertEqual((ran.returncode, ran.stdout), (0, "done\n"), ran.stderr)
            self.assertIn(said, ran.stderr)

    def test_a_program_built_with_address_sanitizer_starts_and_is_recorded(self):
        compiler = shutil.which("gcc")
        if compiler is None:
            self.skipTest("no gcc")
        (self.folder / "checked.c").write_text("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {\n"
                                               "  void (*mark)(const char*) = dlsym(RTLD_DEFAULT, \"vramtrack_probe_mark\");\n"
                                               "  mark(\"here\");\n  puts(\"done\");\n  return 0;\n}\n")
        program = self.folder / "checked"
        built = subprocess.run([compiler, "-fsanitize=address", "-o", program, self.folder / "checked.c", "-ldl"], capture_output=True, text=True)
        if built.returncode != 0:
            self.skipTest(f"no AddressSanitizer here: {built.stderr.strip()}")
        returned, out, error = self.run_program("--", program)
        self.assertEqual((returned, out), (0, "done\n"), error)
        self.assertIn("recorded into", error)

    def test_a_limit_that_no_driver_was_seen_to_obey(self):
        for words, expected in ((("--limit", "1GiB"), 2), (("--limit", "1GiB", "--quiet"), 2), ((), 0)):
            returned, _, error = self.run_program(*words, "--", sys.executable, "-c", MARK)
            self.assertEqual(returned, expected, error)
            self.assertEqual("the limit of 1.0 GiB was not enforced: no call to a GPU driver was seen" in error, expected == 2, error)
        self.assertEqual(self.run_program("--limit", "1GiB", "--", sys.executable, "-c", "raise SystemExit(7)")[0], 7)
        self.assertIn("--limit: must be greater than zero, for example 24GiB", self.run_program("--limit", "0", "--", "true")[2])
        for option in ("--limit", "--soft-limit"):
            returned, out, error = self.run_program(option, "20", "--", sys.executable, "-c", "print('started')")
            self.assertEqual((returned, out), (2, ""))
            self.assertIn("20 bytes is too small for a GPU's memory; give a unit, for example 24GiB", error)

    def test_a_program_that_cannot_be_started(self):
        returned, _, error = self.run_program("--", "/nowhere/at-all")
        self.assertEqual(returned, 2)
        self.assertIn("cannot run /nowhere/at-all: No such file", error)

    def test_a_probe_that_is_nowhere(self):
        process = subprocess.run([BINARY, "run", "--probe", self.work, "--", "true"], env=self.environment(), capture_output=True, text=True)
        self.assertEqual(process.returncode, 2)
        self.assertIn(f"was found in none of {self.work}; name its folder with --probe", process.stderr)

    def test_what_it_recorded_is_in_the_file(self):
        returned, _, error = self.run_program("--output", "a-%p.trace", "--", sys.executable, "-c", MARK)
        self.assertEqual(returned, 0)
        trace, = self.traces()
        self.assertRegex(trace, r"^a-\d+\.trace$")
        self.assertIn(f"recorded into {trace}", error)
        self.assertEqual((self.work / trace).stat().st_mode & 0o777, 0o600)
        self.assertTrue((self.work / trace).read_bytes().startswith(b"VRAMTRC1"))

    def test_a_folder_that_cannot_be_written_is_told_before_the_program_starts(self):
        returned, out, error = self.run_program("--output", "/nowhere/at-all.trace", "--", sys.executable, "-c", "print('started')")
        self.assertEqual((returned, out), (2, ""))
        self.assertIn("cannot write a trace into /nowhere: No such file or directory; name another file with --output", error)

    def test_a_disk_that_is_full_does_not_stop_the_program(self):
        for words, expected in ((), 0), (("--fail-on-leak",), 2):
            returned, out, error = self.run_program(*words, "--output", "/dev/full", "--", sys.executable, "-c", MARK + "print('done')")
            self.assertEqual((returned, out), (expected, "done\n"), words)
            self.assertIn("recording has ended: ", error)
            self.assertNotIn("nothing was recorded", error)

    def test_a_name_of_its_own_replaces_nothing(self):
        for _ in range(2):
            self.run_program("--", "sh", "-c", f'touch kept; for f in vramtrack.sh.$PPID.trace; do [ -e $f ] || ln -s kept $f; done; {sys.executable} -c "{MARK}"')
        self.assertEqual((self.work / "kept").read_bytes(), b"")
        self.assertEqual(len([name for name in self.traces() if name.endswith(".1.trace")]), 2)

    def waiting(self, *words):
        """A program under the probe that has begun and ends when its standard input does."""
        process = self.start(*words, "--", sys.executable, "-c", MARK + "print('up', flush=True); import sys; sys.stdin.read()")
        self.assertEqual(process.stdout.readline(), "up\n")
        return process

    def until_seen(self):
        """What control says once the run has found the program's ring."""
        end = time.monotonic() + 30
        while "process" not in (answer := self.control()).stdout:
            self.assertLess(time.monotonic(), end, answer)
        return answer.stdout

    def test_control_of_the_only_run(self):
        process = self.waiting("--limit", "1GiB")
        self.assertRegex(self.until_seen(), r"^limit 1\.0 GiB, soft limit none\nprocess \d+ holds 0 ")
        self.assertTrue(self.control("--limit", "2GiB", "--soft-limit", "512MiB").stdout.startswith("limit 2.0 GiB, soft limit 512 MiB\n"))
        self.assertTrue(self.control(str(process.pid), "--limit", "0").stdout.startswith("limit none"))
        refused = self.control("1")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("process 1 is not running under a 'vramtrack run' of yours", refused.stderr)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertIn("you have no program running under 'vramtrack run'", self.control().stderr)

    def test_of_two_runs_one_must_be_named(self):
        first, second = self.waiting(), self.waiting()
        self.assertIn(f"name one of {', '.join(sorted(str(p.pid) for p in (first, second)))}", self.control().stderr)
        self.assertEqual(self.control(str(second.pid)).returncode, 0)

    def test_signals_reach_the_program(self):
        process = self.waiting()
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    def test_each_signal_is_the_programs(self):
        for name in ("SIGUSR1", "SIGUSR2", "SIGHUP", "SIGALRM"):
            code = MARK + f"import signal, sys; print('up', flush=True); sys.exit(signal.sigwait([signal.{name}]))"
            code = code.replace("print(", f"signal.pthread_sigmask(signal.SIG_BLOCK, [signal.{name}]); print(")
            process = self.start("--", sys.executable, "-c", code)
            self.assertEqual(process.stdout.readline(), "up\n")
            process.send_signal(getattr(signal, name))
            process.wait(timeout=30)
            self.assertEqual(process.returncode, getattr(signal, name), name)

    def test_a_mark_by_signal(self):
        process = self.waiting("--output", "marked.trace")
        self.until_seen()
        process.send_signal(signal.SIGRTMIN)
        self.until_seen()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        refused = subprocess.run([BINARY, "trace", "diff", "--from", "nothing", "marked.trace"], cwd=self.work, env=self.environment(),
                                 capture_output=True, text=True)
        self.assertIn("--since: the trace has no mark nothing: it has begun at ", refused.stderr)
        self.assertIn("signal at ", refused.stderr)

    def test_what_is_ignored_stays_ignored(self):
        code = MARK + "import signal; print(*(signal.getsignal(s) == signal.SIG_IGN for s in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)))"
        words = [str(word) for word in (BINARY, "run", "--probe", PROBE.parent, "--", sys.executable, "-c", code)]
        for ignored, expected in (("HUP", "True False False\n"), ("INT TERM", "False True True\n")):
            result = subprocess.run(["sh", "-c", f'trap "" {ignored}; exec "$@"', "sh", *words], cwd=self.work, env=self.environment(),
                                    capture_output=True, text=True, timeout=60)
            self.assertEqual(result.stdout, expected, result.stderr)

    def test_an_image_after_exec_is_recorded_too(self):
        second = MARK + "print('up', flush=True); import sys; sys.stdin.read()"
        first = MARK + f"import os, sys; os.execv(sys.executable, [sys.executable, '-c', {second!r}])"
        process = self.start("--", sys.executable, "-c", first)
        self.assertEqual(process.stdout.readline(), "up\n")
        end = time.monotonic() + 30
        while len(rings := self.rings()) != 1 or not self.has_one_process():
            self.assertLess(time.monotonic(), end, rings)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        trace, = self.work.iterdir()
        report = subprocess.run([BINARY, "trace", "report", trace], capture_output=True, text=True, timeout=60).stdout
        self.assertEqual(report.count(": 0 bytes live, peak"), 2, report)

    def rings(self):
        return [path.name for path in self.runtime.glob("vramtrack-runs/*/ring.*")]

    def has_one_process(self):
        return self.control().stdout.count("\nprocess ") == 1

    def test_a_process_of_another_pid_namespace_keeps_its_ring(self):
        unshare = ["unshare", "-Urpf", "--mount-proc"]
        if (tried := subprocess.run([*unshare, "true"], capture_output=True, text=True)).returncode != 0:
            self.skipTest(f"no pid namespaces here: {tried.stderr.strip()}")
        process = self.start("--", *unshare, sys.executable, "-c", MARK + "print('up', flush=True); import sys; sys.stdin.read()")
        self.assertEqual(process.stdout.readline(), "up\n")
        self.assertIn("process 1 ", self.until_seen())
        # Each control is answered after a look at the rings.
        for _ in range(3):
            self.assertIn("process 1 ", self.control().stdout)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)

    def test_processes_that_outlive_the_program_are_named(self):
        # The child leaves the streams but standard input, whose end ends it.
        code = ("import os, sys; r, w = os.pipe(); child = os.fork()\n"
                "if child: os.read(r, 1); print(child, flush=True); os._exit(0)\n"
                "null = os.open('/dev/null', os.O_WRONLY); os.dup2(null, 1); os.dup2(null, 2)\n"
                f"{MARK}os.write(w, b'x'); sys.stdin.read()")
        process = self.start("--", sys.executable, "-c", code)
        child = process.stdout.readline().strip()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertIn(f"process {child} outlives the program and is no longer recorded", process.stderr.read())
        process.stdin.close()

    def test_a_probe_whose_path_has_a_blank_or_a_colon(self):
        for name in ("a blank", "a:colon"):
            place = self.folder / name
            place.mkdir()
            for file in PROBE.parent.glob("libvramtrack_probe*.so"):
                shutil.copy(file, place)
            words = [BINARY, "run", "--quiet", "--probe", place, "--output", f"{name}.trace", "--", sys.executable, "-c", MARK]
            ran = subprocess.run(list(map(str, words)), cwd=self.work, env=self.environment(), capture_output=True, text=True, timeout=60)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertTrue((self.work / f"{name}.trace").exists(), "it was loaded")

    def test_of_such_a_path_processes_that_outlive_the_run_load_it_still(self):
        place = self.folder / "a blank"
        place.mkdir()
        for file in PROBE.parent.glob("libvramtrack_probe*.so"):
            shutil.copy(file, place)
        process = subprocess.Popen([BINARY, "run", "--quiet", "--probe", place, "--", "sh", "-c", "(read line; exec true) 3<&0 <&3 >&2 &"],
                                   cwd=self.work, env=self.environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertEqual(process.communicate("go on\n", timeout=60)[1], "", "the loader found it")

    def test_a_program_that_closes_all_files_keeps_its_ring(self):
        code = MARK + "import os, sys; os.closerange(3, 65536); print('up', flush=True); sys.stdin.read()"
        process = self.start("--", sys.executable, "-c", code)
        self.assertEqual(process.stdout.readline(), "up\n")
        self.until_seen()
        for _ in range(3):
            self.assertIn("process ", self.control().stdout)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)

    def test_many_processes_at_once_give_no_warning(self):
        # Each waits for those that it made: what outlives the first is not recorded on.
        code = MARK + ("import os\n[os.fork() for _ in range(4)]\nmark(b'each')\n"
                       "while True:\n    try:\n        os.wait()\n    except ChildProcessError:\n        break")
        returned, _, error = self.run_program("--", sys.executable, "-c", code)
        self.assertEqual(returned, 0)
        self.assertNotIn("no ring", error)

    def test_the_program_survives_its_launcher(self):
        code = MARK + "import sys; print('up', flush=True); sys.stdin.read(); mark(b'on'); print('still here', flush=True)"
        process = self.start("--", sys.executable, "-c", code)
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        process.stdin.close()
        self.assertEqual(process.stdout.readline(), "still here\n")


if __name__ == "__main__":
    unittest.main()
