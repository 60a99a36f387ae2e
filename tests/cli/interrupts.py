"""Nothing that waits for a network ignores the first Ctrl-C, and nothing that was not read is called free of leaks."""
import os
import signal
import socket
import subprocess
import sys
import threading
import unittest

from patience import patience
from sandbox import Sandbox

BINARY = sys.argv.pop(1)
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
        elif path.startswith(b"/api/v1/label/"):
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
                out, err = process.communicate(timeout=SOON_S)  # raises: it ignored the signal
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
                    if name == "never ends":  # its limit of size may come first: then the signal may meet a program that is ending
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


if __name__ == "__main__":
    unittest.main()
