"""Nothing that waits for a network ignores the first Ctrl-C, and nothing that was not read is called free of leaks."""
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import unittest

from patience import patience
from sandbox import Sandbox, drm_machine, leak_log

BINARY = os.path.abspath(sys.argv.pop(1))
SOON_S = patience(4)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Rogue:
    """A server on loopback that does to each connection what `conduct(connection, request)` says; `asked` is set by the first."""

    def __init__(self, conduct):
        self.asked = threading.Event()
        self.closing = threading.Event()
        self.conduct = conduct
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                request = connection.recv(65536)
                self.asked.set()
                self.conduct(self, connection, request)
            except OSError:
                pass

    def close(self):
        self.closing.set()
        self.socket.close()


def silent(server, connection, request):
    server.closing.wait()


def drips(server, connection, request):
    connection.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
    while not server.closing.wait(0.05):
        connection.sendall(b" ")


def drips_headers(server, connection, request):
    connection.sendall(HEAD + b"X: ")
    while not server.closing.wait(0.05):
        connection.sendall(b"y")


def never_ends(server, connection, request):
    connection.sendall(HEAD + b"\r\n")
    while not server.closing.is_set():
        connection.sendall(b" " * 65536)


def names_then(conduct):
    """Answers what is asked before samples are read, as a server that has two GPUs; then does as `conduct`."""
    def both(server, connection, request):
        path = request.split(b" ")[1]
        data = None
        if b"query_range" in path and b"no_such_metric" in request:
            data = b'{"resultType":"matrix","result":[]}'
        elif path.startswith(b"/api/v1/label/__name__/"):
            data = b'["DCGM_FI_DEV_FB_USED"]'
        elif path.startswith(b"/api/v1/label/Hostname/"):
            data = b'["node1","node2"]'
        elif path.startswith((b"/api/v1/label/", b"/api/v1/series")):
            data = b"[]"
        if data is None:
            return conduct(server, connection, request)
        body = b'{"status":"success","data":' + data + b"}"
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    return both


class Interrupts(unittest.TestCase):
    def setUp(self):
        box = Sandbox(BINARY)
        self.environment = box.__enter__().environment()
        self.addCleanup(box.__exit__, None, None, None)

    def ends_soon(self, arguments, asked, signals=(signal.SIGINT, signal.SIGTERM)):
        for number in signals:
            asked.clear()
            process = subprocess.Popen([BINARY, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            try:
                self.assertTrue(asked.wait(patience(30)), "nothing was asked")
                process.send_signal(number)
                out, err = process.communicate(timeout=SOON_S)  # raises if it ignored the signal
            finally:
                process.kill()
                process.wait()
            self.assertNotIn(b"No leak", out)
            yield process.returncode, out, err

    def rogue(self, conduct):
        server = Rogue(conduct)
        self.addCleanup(server.close)
        return server

    def test_a_scan_of_a_server_that_does_not_answer_to_the_end(self):
        for name, conduct in (("silent", silent), ("drips", drips), ("headers", drips_headers), ("never ends", never_ends)):
            with self.subTest(name):
                server = self.rogue(conduct)
                for code, _, err in self.ends_soon(["fleet", "scan", "--url", server.url], server.asked):
                    if name == "never ends":  # its size limit may come first: the signal may then reach a program that is ending
                        self.assertIn(code, (2, -signal.SIGINT, -signal.SIGTERM), err)
                        continue
                    self.assertEqual(code, 2, err)
                    self.assertIn(b"interrupted", err)

    def test_a_scan_whose_samples_do_not_come(self):
        for name, conduct in (("silent", silent), ("drips", drips), ("never ends", never_ends)):
            with self.subTest(name):
                begun = threading.Event()

                def samples(server, connection, request, conduct=conduct, begun=begun):
                    begun.set()
                    conduct(server, connection, request)
                server = self.rogue(names_then(samples))
                for code, out, err in self.ends_soon(["fleet", "scan", "--url", server.url, "--read-by", "query-range"], begun):
                    self.assertNotIn(b"0 GPUs", out)
                    if name == "never ends":
                        self.assertIn(code, (2, -signal.SIGINT, -signal.SIGTERM), err)
                        continue
                    self.assertEqual(code, 2, err)
                    self.assertIn(b"interrupted", out + err)

    def test_a_watch_of_a_fleet(self):
        server = self.rogue(drips)
        for code, _, err in self.ends_soon(["fleet", "watch", "--url", server.url, "--listen", "127.0.0.1:0"], server.asked):
            self.assertEqual(code, 0, err)
            self.assertNotIn(b"trying again", err)

    def test_nothing_that_was_not_read_is_free_of_leaks(self):
        def broken(server, connection, request):
            connection.sendall(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")
        server = self.rogue(names_then(broken))
        done = subprocess.run([BINARY, "fleet", "scan", "--url", server.url, "--read-by", "query-range"], env=self.environment, capture_output=True,
                              timeout=patience(60))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertNotIn(b"No leak", done.stdout)
        self.assertNotIn(b"0 GPUs", done.stdout)
        self.assertIn(b"No GPU was read", done.stdout)
        self.assertNotIn(b"0 machines", done.stdout + done.stderr)
        self.assertIn(b"Not read: 2 machines of node1, node2", done.stdout)

    def test_a_process_that_is_told_by_its_group(self):
        """As a terminal does: the whole group gets SIGINT."""
        server = self.rogue(silent)
        process = subprocess.Popen([BINARY, "fleet", "scan", "--url", server.url], env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True)
        try:
            self.assertTrue(server.asked.wait(patience(30)))
            os.killpg(process.pid, signal.SIGINT)
            process.communicate(timeout=SOON_S)
        finally:
            process.kill()
            process.wait()
        self.assertEqual(process.returncode, 2)


class FirstByte(unittest.TestCase):
    """SIGINT as soon as the first byte is printed, many times; the commands are started as a shell starts them in the background: SIGINT is ignored
    until they ask for it, so one that comes too early is lost and they continue for ever."""

    TIMES = 30

    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def starts(self, arguments, ignored=True):
        def begin():
            signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.SIG_DFL)
        read, write = os.pipe()
        process = subprocess.Popen([BINARY, *arguments], env=self.box.environment(), cwd=self.box.work, stdin=subprocess.DEVNULL, stdout=write, stderr=write,
                                   preexec_fn=begin)
        os.close(write)
        return process, read

    def ends(self, *arguments, status=0, ignored=True, times=TIMES):
        for _ in range(times):
            process, read = self.starts(arguments, ignored)
            try:
                first = os.read(read, 1)
                self.assertNotEqual(first, b"", "it printed nothing")
                process.send_signal(signal.SIGINT)
                said = first
                drain = threading.Thread(target=lambda: [None for _ in iter(lambda: os.read(read, 65536), b"")])
                drain.start()
                code = process.wait(timeout=SOON_S)  # raises if it ignored the signal
                drain.join(SOON_S)
            finally:
                process.kill()
                process.wait()
                os.close(read)
            self.assertEqual(code, status, said)

    def test_fleet_watch(self):
        server = Rogue(silent)
        self.addCleanup(server.close)
        self.ends("fleet", "watch", "--url", server.url, "--listen", "127.0.0.1:0")

    def test_watch(self):
        self.ends("watch", "--no-record", *drm_machine())

    def test_agent(self):
        self.ends("agent", "--scenario", "leaking_training", "--listen", "127.0.0.1:0", "--set", "agent.socket=" + str(self.box.path / "s"))

    def test_actuate(self):
        self.box.write("actuate.toml", '[[policy]]\nname = "a"\nsteps = [{ do = "drain" }]\n')
        self.ends("actuate", "--policy", "actuate.toml", "--state", str(self.box.work / "s"), "--set", 'actuate.agent-hosts=["localhost"]', "--listen",
                  "127.0.0.1:0")

    def test_simulate_and_replay(self):
        self.ends("simulate", "leaking_training", "--speed", "1")
        self.box.write("gpu.csv", leak_log())
        self.ends("replay", "--speed", "1", "gpu.csv")

    def test_run_and_watch(self):
        program = ["sh", "-c", "echo; exec sleep 600"]
        self.ends("run", "--watch", *drm_machine()[:2], "--", *program, status=128 + signal.SIGINT, ignored=False)

    def test_top(self):
        for _ in range(self.TIMES):
            pid, master = pty.fork()
            if pid == 0:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                os.chdir(self.box.work)
                os.execve(BINARY, [BINARY, "top", "--scenario", "leaking_training"], self.box.environment())
            timer = threading.Timer(SOON_S, os.kill, (pid, signal.SIGKILL))
            try:
                self.assertNotEqual(os.read(master, 1), b"")
                os.kill(pid, signal.SIGINT)
                timer.start()
                try:
                    while os.read(master, 65536):
                        pass
                except OSError:  # it has closed its terminal
                    pass
                _, status = os.waitpid(pid, 0)
            finally:
                timer.cancel()
                os.close(master)
            self.assertEqual(os.waitstatus_to_exitcode(status), 0)


if __name__ == "__main__":
    unittest.main()
