"""The socket for `vramtrack attach`, in this process. The program itself is driven in tests/cli/attach.py."""
import ast
import os
import pathlib
import pickle
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import vramtrack
from vramtrack import attach_socket

FOLDER = pathlib.Path(vramtrack.__file__).parent
#: in the order of cmake/embed_python.cmake
EMBEDDED = ("recorder", "units", "referrers", "safe_point", "attach_socket")


@pytest.fixture
def runtime(monkeypatch):
    path = tempfile.mkdtemp(prefix="va-")  # the path of a socket is short
    monkeypatch.setenv("XDG_RUNTIME_DIR", path)
    attach_socket._close()
    yield pathlib.Path(path)
    attach_socket._close()
    shutil.rmtree(path)


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def in_new_process(code, **environment):
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


WHAT_THERE_IS = "import threading, os, vramtrack; print(threading.active_count(), vramtrack.attach_socket._open_socket is not None)"


def test_an_import_installs_nothing(runtime):
    assert in_new_process(WHAT_THERE_IS) == ["1", "False"]
    assert list(runtime.iterdir()) == []


@pytest.mark.parametrize("variable", ["VRAMTRACK_ATTACHABLE", "VRAMTRACK_PROBE_DIR"])
def test_the_environment_asks_for_it(runtime, variable):
    assert in_new_process(WHAT_THERE_IS, **{variable: "1"}) == ["2", "True"]


def test_a_program_that_cannot_have_it_runs(runtime):
    (runtime / "vramtrack-attach").write_text("a file")
    assert in_new_process(WHAT_THERE_IS, VRAMTRACK_ATTACHABLE="1") == ["1", "False"]
    with pytest.raises(OSError, match="must be a folder of yours"):
        vramtrack.allow_attach()


def test_a_watch_opens_it(runtime, device):
    watch = vramtrack.Watch(driver_library=None, ranks=False).start()
    try:
        assert attach_socket._open_socket is not None and attach_socket._open_socket.is_open
        assert vramtrack.allow_attach() == str(runtime / "vramtrack-attach" / str(os.getpid()))
    finally:
        watch.stop()


def connect():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(attach_socket._open_socket.path)
    connection.settimeout(30)
    return connection


def ask(connection, line, *descriptors):
    socket.send_fds(connection, [line.encode() + b"\n"], descriptors)
    return connection.recv(1 << 16).decode()


def test_a_session(runtime, torch, tmp_path):
    vramtrack.allow_attach()
    torch.cuda.is_initialized = lambda: True
    with connect() as connection:
        assert ask(connection, "hello").startswith(f"ok pid={os.getpid()} python=3.")
        assert ask(connection, "record 60") == "ok\n"
        assert torch.recording == "all" and torch.history[-1] == ("all", "all", "python")
        with open(tmp_path / "snapshot", "wb") as file:
            answer = ask(connection, "snapshot", file.fileno())
        assert answer.startswith("ok ")
        assert pickle.loads((tmp_path / "snapshot").read_bytes()) == torch.taken
        assert ask(connection, "stop") == "ok\n"
        assert torch.recording is None
        ask(connection, "record 60")
    until(lambda: torch.recording is None)


def test_a_watch_that_records_meanwhile_goes_on(runtime, torch):
    vramtrack.allow_attach()
    torch.cuda.is_initialized = lambda: True
    source = vramtrack.default_source()
    source.start_stacks()
    with connect() as connection:
        assert ask(connection, "record 60") == "ok recording by the program itself\n"
        assert ask(connection, "stop") == "ok\n"
        assert torch.recording == "state"
    source.stop_stacks()
    assert torch.recording is None


def test_an_error_of_pytorch_is_told(runtime, torch):
    vramtrack.allow_attach()
    torch.cuda.is_initialized = lambda: True
    torch.cuda.memory._record_memory_history = lambda **options: 1 / 0
    with connect() as connection:
        assert ask(connection, "record 60") == "error: ZeroDivisionError: division by zero\n"
        assert ask(connection, "hello").startswith("ok")


def test_a_socket_for_one_session(runtime):
    path = attach_socket._open(once=True)
    with connect() as connection:
        ask(connection, "hello")
    until(lambda: not os.path.exists(path))
    assert not attach_socket._open_socket.is_open
    assert os.path.exists(vramtrack.allow_attach())


def test_a_forked_child_has_no_socket(runtime):
    path = vramtrack.allow_attach()
    child = os.fork()
    if child == 0:
        os._exit(0 if attach_socket._open_socket is None and os.path.exists(path) else 1)
    assert os.waitpid(child, 0)[1] == 0
    with connect() as connection:
        assert ask(connection, "hello").startswith("ok")


def test_what_is_brought_along_needs_nothing_else():
    """`vramtrack attach` runs these modules as one in a program without the package."""
    names = {}
    text = "from __future__ import annotations\n"
    for module in EMBEDDED:
        lines = (FOLDER / f"{module}.py").read_text().splitlines()
        known = {f"from vramtrack.{other} import" for other in EMBEDDED[: EMBEDDED.index(module)]}
        for line in lines:
            if line.startswith("from vramtrack."):
                assert any(line.startswith(one) for one in known), f"{module}: {line}"
        text += "\n".join(line for line in lines if not line.startswith(("from __future__", "from vramtrack."))) + "\n"
        for node in ast.parse("\n".join(lines)).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                assert node.name not in names, f"{node.name} is in {names.get(node.name)} and {module}"
                names[node.name] = module
    namespace = {"__name__": "vramtrack_attach"}
    exec(compile(text, "<vramtrack attach>", "exec"), namespace)
    assert threading.active_count() >= 1 and callable(namespace["_open"])
