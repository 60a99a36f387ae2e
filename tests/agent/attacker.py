"""What a hostile client of the agent does (hostile.py), in one file of the standard library alone: it runs as another user.

It opens many connections and asks nothing, sends requests a byte at a time, asks for the longest histories and reads nothing, opens streams,
asks without a pause, and connects and goes."""
import multiprocessing
import socket
import struct
import sys
import time


def connect(where, timeout=15):
    """`where`: the path of a socket, or host:port."""
    s = socket.socket(socket.AF_UNIX if where.startswith("/") else socket.AF_INET)
    # A limit of the kernel, not of Python: a connect() that may not wait fails where the queue of a Unix socket is full for a moment.
    limit = struct.pack("@ll", timeout, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    host, _, port = where.rpartition(":")
    s.connect(where if where.startswith("/") else (host, int(port)))
    return s


def request(path, close=True, headers=""):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}{'Connection: close' if close else 'X: y'}\r\n\r\n".encode()


def ask(where, path, headers="", timeout=15):
    """(status, seconds, bytes)"""
    began = time.monotonic()
    with connect(where, timeout) as s:
        s.sendall(request(path, headers=headers))
        out = b""
        while chunk := s.recv(65536):
            out += chunk
    return int(out.split(b" ", 2)[1]) if out else 0, time.monotonic() - began, out


# What the hostile client does, each in a process of its own until it is ended.

def forever(step):
    while True:
        try:
            step()
        except OSError:
            time.sleep(0.001)  # refused: once more


def hold(where, count, begin):
    """`count` connections that have sent `begin` and read nothing; whoever is dropped comes again."""
    held = []

    def step():
        while len(held) < count:
            s = connect(where, 2)
            s.sendall(begin)
            s.setblocking(False)
            held.append(s)
        for s in list(held):
            try:
                if s.recv(1, socket.MSG_PEEK) == b"":
                    raise ConnectionResetError
                if b"history" not in begin and b"events" not in begin:
                    s.send(b"X")  # a byte at a time
            except BlockingIOError:
                pass
            except OSError:
                s.close()
                held.remove(s)
        time.sleep(0.01)
    forever(step)


def hammer(where, path):
    def step():
        with connect(where, 5) as s:
            while True:
                s.sendall(request(path, close=False))
                if b" 200 " not in s.recv(1 << 20)[:20]:
                    return
    forever(step)


def come_and_go(where):
    forever(lambda: connect(where, 2).close())


def jobs_of(kind, history, where):
    return {"connections": [(hold, (where, 400, b"")), (hold, (where, 200, b"GET / HTTP/1.1\r\n")), (come_and_go, (where,))],
            "histories": [(hold, (where, 40, request(history)))],
            "streams": [(hold, (where, 100, request("/api/v1/events")))],
            "requests": [(hammer, (where, path)) for path in ("/api/v1/view", "/api/v1/alerts?limit=999")]}[kind]


def attack(kinds, history, where):
    """`kinds`: comma-separated keys of jobs_of; `history`: the path of a long one. Ends with standard input."""
    processes = [multiprocessing.Process(target=f, args=a, daemon=True) for kind in kinds.split(",") for w in where for f, a in jobs_of(kind, history, w)]
    for p in processes:
        p.start()
    print("attacking", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "attack":
        attack(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        print(ask(*sys.argv[2:])[0])
