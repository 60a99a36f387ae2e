"""A socket through which the user of this process, and nobody else, can record its allocations for a while (`vramtrack attach`).

A connection is a session. It sends one line at a time and gets one back, "ok ..." or "error: ...":

    hello               "ok pid=4242 python=3.11.2 torch=2.9.1 recording=no"
    record SECONDS      switches PyTorch's recorder on; off again when the session ends, and at the latest after so long
    snapshot            with a descriptor: PyTorch's snapshot is written into it
    kept                what keeps tensors: "ok COUNT", then this many lines
    kept since          the same, of what has grown since the last `kept`
    stop                switches the recorder off

This module and those it imports use only the standard library: for Python 3.14 and newer, the program `vramtrack` brings them along and
runs them in a process that does not have the package vramtrack.
"""
from __future__ import annotations

import array
import atexit
import bisect
import os
import pickle
import socket
import stat
import struct
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from vramtrack.recorder import Recorder
from vramtrack.referrers import Kept, kept_by
from vramtrack.safe_point import MarkClock, at_safe_point

LONGEST_RECORD_S = 3600.0
_LONGEST_LINE = 256
_IDLE_S = 60.0  # a session that neither records nor sends a request for this long has ended
_KEPT_S = 5.0  # the longest time that the program may have to wait for a requested look
_KEPT_LIMIT = 1000

_open_socket: Optional["AttachSocket"] = None
_lock = threading.Lock()


class Refused(Exception):
    """Why a request is refused, in words for the user."""


def folder() -> str:
    """The folder of the sockets, which only this user can enter; it is created if missing. OSError: somebody else created it."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    path = os.path.join(runtime, "vramtrack-attach") if runtime else os.path.join(tempfile.gettempdir(), f"vramtrack-attach-{os.getuid()}")
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise OSError(f"{path}: it must be a folder of yours that others cannot enter; remove it, or set XDG_RUNTIME_DIR")
    return path


class AttachSocket:
    """Listens in a daemon thread until close(). A forked child has neither the thread nor the socket."""

    def __init__(self, once: bool = False) -> None:
        self.path = os.path.join(folder(), str(os.getpid()))
        self._once = once  # it closes itself after one session, or after a minute without one
        self.is_open = True
        self._pid = os.getpid()
        try:
            os.unlink(self.path)  # left by an earlier process with this pid
        except FileNotFoundError:
            pass
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        os.chmod(self.path, 0o600)
        self._listener.listen(4)
        self._thread = threading.Thread(target=self._run, name="vramtrack-attach", daemon=True)
        self._thread.start()

    def stay(self) -> None:
        """Keeps the socket open, although it was opened for one session only."""
        self._once = False

    def close(self) -> None:
        """A running session ends with its recording."""
        self.is_open = False
        if self._pid != os.getpid():
            self._listener.close()
            return
        try:
            os.unlink(self.path)
        except OSError:
            pass
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                self._listener.settimeout(_IDLE_S if self._once else None)
                connection, _ = self._listener.accept()
            except socket.timeout:
                if self._once:
                    break
                continue
            except OSError:  # closed
                break
            with connection:
                if _is_of_user(connection):
                    try:
                        Session(connection).serve()
                    except Exception:  # any exception: the program continues
                        pass
            if self._once:
                break
        self.close()


def _is_of_user(connection: socket.socket) -> bool:
    pid, uid, gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return uid in (0, os.getuid())


class Session:
    """One connection, from its first line to its end. When serve() returns or raises, the recorder that it switched on is off."""

    def __init__(self, connection: socket.socket, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection = connection
        self._clock = clock
        self._marks = MarkClock()
        self._recorder: Optional[Recorder] = None
        self._until: Optional[float] = None
        self._before: Optional[Kept] = None
        self._buffer = b""
        self._descriptors: List[int] = []

    def serve(self) -> None:
        try:
            self._marks.begin()
            while True:
                line = self._line()
                if line is None:
                    return
                try:
                    answer = self._answer(line)
                except Refused as reason:
                    answer = f"error: {reason}"
                except Exception as error:
                    answer = f"error: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
                self._close_descriptors()
                self._connection.settimeout(_IDLE_S)
                self._connection.sendall(answer.encode("utf-8", "replace") + b"\n")
        except OSError:  # the other side has gone or sends nothing
            return
        finally:
            self._marks.end()
            self._close_descriptors()
            self._stop()

    def _line(self) -> Optional[str]:
        """None: the session is over."""
        while b"\n" not in self._buffer:
            left = _IDLE_S if self._until is None else self._until - self._clock()
            if left <= 0 or len(self._buffer) > _LONGEST_LINE:
                return None
            self._connection.settimeout(left)
            data, ancillary, _, _ = self._connection.recvmsg(_LONGEST_LINE, socket.CMSG_SPACE(4 * struct.calcsize("i")), socket.MSG_CMSG_CLOEXEC)
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    received = array.array("i")
                    received.frombytes(content[: len(content) - len(content) % received.itemsize])
                    self._descriptors += received
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode("utf-8", "replace")

    def _close_descriptors(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []

    def _answer(self, line: str) -> str:
        word, _, rest = line.partition(" ")
        if word == "hello":
            torch = sys.modules.get("torch")
            recording = "none" if torch is None else "yes" if Recorder(torch).is_on() else "no"
            version = getattr(torch, "__version__", "none")
            return f"ok pid={os.getpid()} python={sys.version.split()[0]} torch={version} recording={recording}"
        if word == "record":
            return self._record(rest)
        if word == "snapshot":
            return self._snapshot()
        if word == "kept" and rest in ("", "since"):
            return self._kept(rest == "since")
        if word == "stop":
            self._stop()
            return "ok"
        raise Refused("expected hello, record SECONDS, snapshot, kept, kept since or stop")

    def _record(self, text: str) -> str:
        try:
            seconds = float(text)
        except ValueError:
            raise Refused("record needs a number of seconds") from None
        if not 0 < seconds <= LONGEST_RECORD_S:
            raise Refused(f"record takes at most {LONGEST_RECORD_S:.0f} seconds")
        if self._recorder is None:
            recorder = Recorder(_torch())
            was_on = recorder.is_on()
            recorder.start("all", "all")
            self._recorder = recorder
        else:
            was_on = False
        self._until = self._clock() + seconds
        return "ok recording by the program itself" if was_on else "ok"

    def _stop(self) -> None:
        self._until = None
        if self._recorder is not None:
            recorder, self._recorder = self._recorder, None
            recorder.stop()

    def _snapshot(self) -> str:
        if len(self._descriptors) != 1:
            raise Refused("snapshot needs the descriptor of a file")
        torch = _torch()
        taken, where = at_safe_point(torch.cuda.memory._snapshot, self._marks)
        with os.fdopen(os.dup(self._descriptors[0]), "wb") as file:
            pickle.dump(taken, file)
        return f"ok {where}"

    def _kept(self, since: bool) -> str:
        site_of = _sites(_torch()) if self._recorder is not None else None
        found, where = at_safe_point(lambda: kept_by(None, _KEPT_LIMIT, _KEPT_S, site_of), self._marks)
        before, self._before = self._before, found
        if since and before is not None:
            found = found.since(before)
        lines = [" ".join(str(keeper).split()) for keeper in found.keepers]
        if not found.is_complete:
            lines.append(f"stopped after {found.seconds:.1f} s, with tensors left")
        return "\n".join([f"ok {len(lines)} {where}", *lines])


def _torch() -> Any:
    """PyTorch, if this process uses a GPU with it. It is never imported here."""
    torch = sys.modules.get("torch")
    if torch is None:
        raise Refused("the program has not imported PyTorch; to see what it allocates, start it with: vramtrack run -- PROGRAM")
    try:
        is_used = torch.cuda.is_initialized()
    except AttributeError:
        is_used = False
    if not is_used:
        raise Refused("the program has not used a GPU through PyTorch yet")
    return torch


def _sites(torch: Any) -> Callable[[int, int], str]:
    """The first line of the program itself that allocated the block at (device, address), as long as blocks have frames."""
    starts: Dict[int, List[Tuple[int, int, str]]] = {}
    theirs = os.path.dirname(getattr(torch, "__file__", None) or "/torch/torch")
    try:
        segments = torch.cuda.memory._snapshot().get("segments", [])
    except Exception:
        return lambda device, address: ""
    for segment in segments:
        at = segment.get("address", 0)
        for block in segment.get("blocks", []):
            frames = block.get("frames") or [f for one in block.get("history", [])[:1] for f in one.get("frames", [])]
            begin = block.get("address", at)
            at = begin + block["size"]
            line = next((f"{frame['filename']}:{frame['line']}" for frame in frames
                         if frame["filename"].endswith(".py") and not frame["filename"].startswith(theirs)
                         and "-packages/" not in frame["filename"]), "")  # fmt: skip
            if line:
                starts.setdefault(segment.get("device", 0), []).append((begin, at, line))
    for blocks in starts.values():
        blocks.sort()

    def site_of(device: int, address: int) -> str:
        blocks = starts.get(device, [])
        i = bisect.bisect_right(blocks, (address, sys.maxsize, "")) - 1
        return blocks[i][2] if i >= 0 and blocks[i][0] <= address < blocks[i][1] else ""

    return site_of


def allow_attach() -> str:
    """Opens the socket for `vramtrack attach` until the process ends, and returns its path. Costs one daemon thread and one socket that
    only this user can use, and nothing else until somebody attaches. Further calls change nothing. OSError: there is no folder for the
    socket."""
    return _open(once=False)


def _open(once: bool) -> str:
    global _open_socket
    with _lock:
        if _open_socket is None or not _open_socket.is_open:
            _open_socket = AttachSocket(once)
        elif not once:
            _open_socket.stay()
        return _open_socket.path


def _close() -> None:
    global _open_socket
    opened, _open_socket = _open_socket, None
    if opened is not None:
        opened.close()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_close)


def open_if_asked() -> None:
    """Called when the package is imported: opens the socket if the user has asked for it in the environment, and does nothing otherwise. If
    it cannot be opened, the program runs as usual."""
    if os.environ.get("VRAMTRACK_ATTACHABLE") == "1" or os.environ.get("VRAMTRACK_PROBE_DIR"):
        try:
            allow_attach()
        except OSError:
            pass
