"""`vramtrack attach` from outside, on a stand-in for PyTorch. Real PyTorch is in tests/torch/test_attach.py.

    python3 tests/cli/attach.py build/release/vramtrack

The way that needs nothing of the program needs Python 3.14: scripts/python314.sh installs one. Without it those tests say that they are skipped.
"""
import os
import pathlib
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from patience import patience
from sandbox import TESTS, Sandbox

sys.path.insert(0, str(TESTS / "probe"))
from python_frames import pythons  # noqa: E402

BINARY = sys.argv.pop(1)
MODULES = TESTS.parent / "python/vramtrack"
NEWER = pythons().get(14)


def until(condition, seconds=30):
    end = time.monotonic() + patience(seconds)
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def line_of(program):
    """The next line that it says. One is asked for at a time: nothing waits in the reader's buffer."""
    assert select.select([program.stdout], [], [], patience(30))[0], "it says nothing"
    return program.stdout.readline()


def can_call_functions():
    """Whether gdb can restore the registers of this processor: gdb 13 cannot where it has AMX."""
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        said = subprocess.run(["gdb", "-nx", "-batch", "-ex", f"attach {sleeper.pid}", "-ex", "set $xmm0.v4_int32[0] = $xmm0.v4_int32[0] ^ 1"],
                              capture_output=True, check=False, text=True)  # fmt: skip
    finally:
        sleeper.kill()
        sleeper.wait()
    return "extended state" not in said.stdout + said.stderr


class Attach(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        # Keep the path of the socket short.
        self.runtime = tempfile.mkdtemp(prefix="va-")
        self.addCleanup(shutil.rmtree, self.runtime, True)

    def environment(self, **more):
        return {**self.box.environment(), "XDG_RUNTIME_DIR": self.runtime, "PYTHONDONTWRITEBYTECODE": "1", **more}

    def program(self, mode, python=sys.executable, **environment):
        started = subprocess.Popen([python, TESTS / "cli/attached.py", MODULES, mode], env=self.environment(**environment),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
        self.addCleanup(started.stdout.close)
        self.addCleanup(started.stdin.close)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        self.assertEqual(line_of(started), "ready\n")
        return started

    def recording(self, program):
        program.stdin.write("?\n")
        program.stdin.flush()
        return line_of(program).strip()

    def attach(self, program, *arguments, code=0):
        pid = program if isinstance(program, int) else program.pid
        done = self.box.run("attach", str(pid), *arguments, env={"XDG_RUNTIME_DIR": self.runtime})
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        return done.stdout.decode() if code != 2 else done.stderr.decode()

    def check_leak(self, program):
        said = self.attach(program, "--duration", "1s", "--kept", "--output", "job.pickle", code=1)
        self.assertIn("train.py:88", said)
        self.assertRegex(said, r"losses \(list, \d+ items\) in attached.py module globals keeps \d+ tensors of [\d.]+ MiB, \+\d+")
        self.assertIn("made at /home/me/project/train.py:88", said)
        self.assertEqual(sorted(path.name for path in self.box.work.iterdir()), [f"job-{n}.pickle" for n in (1, 2, 3)])
        self.assertEqual(self.recording(program), "None")

    def test_a_program_that_opened_its_socket(self):
        program = self.program("allows")
        self.check_leak(program)
        self.attach(program, "--duration", "1s", code=1)  # again

    def test_the_environment_asks_for_the_socket(self):
        program = self.program("asked", VRAMTRACK_ATTACHABLE="1")
        self.attach(program, "--duration", "1s", code=1)
        self.assertIn("vramtrack.allow_attach()", self.attach(self.program("asked"), code=2))

    def test_kept_alone_records_nothing(self):
        said = self.attach(self.program("allows"), "--duration", "0", "--kept")
        self.assertEqual(said, "What keeps tensors:\n  nothing that Python can see keeps more\n")
        self.assertEqual(list(self.box.work.iterdir()), [])

    def test_a_recording_of_the_program_stays_on(self):
        program = self.program("records")
        done = self.box.run("attach", str(program.pid), "--duration", "1s", env={"XDG_RUNTIME_DIR": self.runtime})
        self.assertIn("stays on afterwards", done.stderr.decode())
        self.assertEqual(self.recording(program), "all")

    def interrupted(self, number):
        program = self.program("allows")
        running = subprocess.Popen([self.box.binary, "attach", str(program.pid), "--duration", "30m"], cwd=self.box.work,
                                   env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        until(lambda: self.recording(program) == "all")
        running.send_signal(number)
        out, err = running.communicate(timeout=patience(30))
        until(lambda: self.recording(program) == "None")
        return running.returncode, out.decode(), err.decode()

    def test_interrupted_it_compares_what_it_has(self):
        code, out, err = self.interrupted(signal.SIGINT)
        self.assertEqual(code, 1, err)
        self.assertIn("train.py:88", out)

    def test_killed_the_recorder_is_off(self):
        self.assertEqual(self.interrupted(signal.SIGKILL)[0], -signal.SIGKILL)

    def talk(self, program):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(patience(30))
        connection.connect(f"{self.runtime}/vramtrack-attach/{program.pid}")
        self.addCleanup(connection.close)
        return connection

    def test_the_programs_own_time_limit(self):
        program = self.program("allows")
        connection = self.talk(program)
        connection.sendall(b"record 0.2\n")
        self.assertEqual(connection.recv(100), b"ok\n")
        self.assertEqual(connection.recv(100), b"", "it ends the session")
        until(lambda: self.recording(program) == "None")

    def test_where_others_wait_already_it_does_not_wait_with_them(self):
        program = self.program("allows")
        first = self.talk(program)
        first.sendall(b"hello\n")
        self.assertTrue(first.recv(100).startswith(b"ok "))
        with self.assertRaises(BlockingIOError):
            while True:  # until the line is full
                waiting = socket.socket(socket.AF_UNIX)
                self.addCleanup(waiting.close)
                waiting.setblocking(False)
                waiting.connect(f"{self.runtime}/vramtrack-attach/{program.pid}")
        self.assertIn("another vramtrack is attached to it, and more are waiting; try again later", self.attach(program, code=2))

    def test_wrong_requests(self):
        program = self.program("allows")
        connection = self.talk(program)
        for asked, said in ((b"record soon", b"needs a number"), (b"record 99999", b"at most"), (b"record nan", b"at most"),
                            (b"snapshot", b"descriptor"), (b"kept out", b"expected hello"), (b"\xff\xfe", b"expected hello")):  # fmt: skip
            connection.sendall(asked + b"\n")
            answer = connection.recv(1000)
            self.assertTrue(answer.startswith(b"error: ") and said in answer, answer)
        connection.sendall(b"x" * 300)
        try:
            self.assertEqual(connection.recv(100), b"")
        except ConnectionResetError:
            pass
        self.assertEqual(self.recording(program), "None")

    def test_the_socket_is_the_users(self):
        program = self.program("allows")
        path = pathlib.Path(self.runtime, "vramtrack-attach")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE((path / str(program.pid)).stat().st_mode), 0o600)
        program.stdin.close()
        program.wait(timeout=patience(30))
        self.assertEqual(list(path.iterdir()), [], "it is gone with the program")

    def test_a_folder_that_others_can_enter_is_not_used(self):
        path = pathlib.Path(self.runtime, "vramtrack-attach")
        path.mkdir()
        path.chmod(0o777)
        self.assertIn("cannot be attached to from outside", self.attach(self.program("asked", VRAMTRACK_ATTACHABLE="1"), code=2))

    def test_another_process_behind_the_path_is_refused(self):
        """A socket that a program was given, where another process listens."""
        folder = pathlib.Path(self.runtime, "vramtrack-attach")
        folder.mkdir(mode=0o700)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(folder / "socket"))
        listener.listen()
        child = subprocess.Popen(["sleep", "60"], pass_fds=[listener.fileno()])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        os.rename(folder / "socket", folder / str(child.pid))
        # The kernel remembers the name that was bound, so the search does not even find the socket.
        self.assertEqual(self.attach(child.pid, code=2).count("\n"), 1)

    def test_refusals(self):
        for mode, words in (("no_torch", "has not imported PyTorch"), ("cpu", "has not used a GPU")):
            self.assertIn(words, self.attach(self.program(mode), "--duration", "1s", code=2))
        sleeper = subprocess.Popen(["sleep", "60"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        self.assertIn("no Python interpreter was recognized in process", self.attach(sleeper.pid, code=2))
        self.assertIn("does not exist", self.attach(2**22 + 1, code=2))
        if sys.version_info < (3, 14):
            said = self.attach(self.program("plain"), code=2)
            self.assertIn(f"runs Python {sys.version_info[0]}.{sys.version_info[1]}, which cannot be attached to from outside", said)
            self.assertIn("vramtrack run -- PROGRAM", said)

    @unittest.skipUnless(os.getuid() == 0, "needs root, to be two users")
    def test_other_users_are_refused(self):
        other = subprocess.Popen(["sleep", "60"], user=65534)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.assertIn("is not yours: it belongs to user 65534", self.attach(other.pid, code=2))
        program = self.program("allows")
        os.chmod(self.runtime, 0o755)
        folder = pathlib.Path(self.runtime, "vramtrack-attach")
        folder.chmod(0o755)
        (folder / str(program.pid)).chmod(0o666)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            # Whatever happens here, this child must not continue with the tests.
            said = b"failed"
            try:
                os.setuid(65534)
                connection = self.talk(program)
                connection.sendall(b"record 9\n")
                said = connection.recv(9) or b"nothing"
            except (BrokenPipeError, ConnectionResetError):
                said = b"nothing"
            finally:
                os.write(writing, said)
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        self.assertEqual(os.read(reading, 100), b"nothing")
        os.close(reading)
        self.assertEqual(self.recording(program), "None")

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("unshare"), "needs root and unshare")
    def test_another_pid_namespace_is_refused(self):
        outer = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "sleep", "60"], stderr=subprocess.DEVNULL)
        self.addCleanup(outer.wait)
        self.addCleanup(outer.kill)
        children = pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        until(lambda: outer.poll() is not None or children.read_text().strip())
        if outer.poll() is not None:
            self.skipTest("namespaces cannot be made here")
        inner = int(children.read_text().split()[0])
        until(lambda: os.readlink(f"/proc/{inner}/ns/pid") != os.readlink("/proc/self/ns/pid"))
        self.assertIn("another pid namespace", self.attach(inner, code=2))

    @unittest.skipUnless(NEWER, "no Python 3.14: scripts/python314.sh installs one")
    def test_python_lets_it_in(self):
        program = self.program("plain", NEWER)
        self.check_leak(program)
        until(lambda: not list(pathlib.Path(self.runtime, "vramtrack-attach").iterdir()), 10)
        self.attach(program, "--duration", "1s", code=1)  # the socket was closed after the first session, and opens again

    @unittest.skipUnless(NEWER, "no Python 3.14: scripts/python314.sh installs one")
    def test_python_that_does_not_let_it_in(self):
        program = self.program("plain", NEWER, PYTHON_DISABLE_REMOTE_DEBUG="1")
        self.assertIn("its Python could not be asked to allow this", self.attach(program, code=2))
        self.assertEqual([path for path in pathlib.Path(self.runtime).rglob("*.py")], [])

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_a_debugger_lets_it_in_where_the_user_asks_for_it(self):
        older = {version: python for version, python in pythons().items() if 8 <= version < 14}
        self.assertTrue(older)
        for version, python in older.items():
            with self.subTest(version):
                program = self.program("plain", python)
                self.assertIn("With --inject, gdb stops it for a moment", self.attach(program, code=2))
                if not can_call_functions():
                    said = self.attach(program, "--inject", "--duration", "0", "--kept", code=2)
                    self.assertIn("install gdb 14 or newer", said)
                    self.assertEqual(self.recording(program), "None")
                    continue
                said = self.attach(program, "--inject", "--duration", "0", "--kept")
                self.assertIn("What keeps tensors:", said)
                self.assertEqual(self.recording(program), "None")
        if not can_call_functions():
            return
        until(lambda: not list(pathlib.Path(self.runtime, "vramtrack-attach").iterdir()), 10)
        done = self.box.run("attach", str(program.pid), "--inject", "--duration", "1s", "--kept", "--output", "job.pickle",
                            env={"XDG_RUNTIME_DIR": self.runtime})  # fmt: skip
        self.assertEqual(done.returncode, 1, done.stderr.decode())
        self.assertIn("train.py:88", done.stdout.decode())
        self.assertEqual(self.recording(program), "None")
        self.assertEqual([path for path in pathlib.Path(self.runtime).rglob("*.py")], [])


if __name__ == "__main__":
    unittest.main(verbosity=1)
