"""`vramtrack trace live` on PyTorch that is already running: each tensor, by its Python line. Needs the right to load BPF programs (root)."""
import json
import re
import signal
import subprocess
import sys

import pytest
from started import BUILD, HERE

BINARY = BUILD / "vramtrack"
PROGRAM = HERE / "programs/asked.py"


def why_not():
    """Why no program can be traced here, by what doctor finds; None if it can."""
    said = subprocess.run([BINARY, "doctor"], capture_output=True, text=True).stdout
    line = re.search(r"(?m)^(\w+) +tracing .*", said)
    return None if line[1] == "ok" else line[0]


pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"{why_not()}")


def line_of(word):
    return next(n for n, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.endswith(f"# {word}"))


@pytest.fixture
def program():
    started = subprocess.Popen([sys.executable, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout.readline() == "ready\n"
    yield started
    started.stdin.close()
    assert started.wait(60) == 0


def allocated_after(program, steps):
    program.stdin.write(f"{steps}\n")
    program.stdin.flush()
    return int(program.stdout.readline())


def test_the_line_is_named_and_each_tensor_counted(program, tmp_path):
    before = allocated_after(program, 5)
    trace = tmp_path / "live.trace"
    tracer = subprocess.Popen([BINARY, "trace", "live", "--pid", str(program.pid), "--output", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert tracer.stdout.readline().startswith("tracing "), tracer.communicate()
    for _ in range(30):
        after = allocated_after(program, 5)
    tracer.send_signal(signal.SIGINT)
    text, errors = tracer.communicate(timeout=60)
    assert tracer.returncode == 1, errors
    assert re.search(rf"LEAK: \S*asked\.py:{line_of('STEP')} step", text), text
    assert f"'vramtrack attach {program.pid} --kept' does" in text
    done = subprocess.run([BINARY, "trace", "report", "--format", "json", trace], capture_output=True, text=True, timeout=60)
    report = json.loads(done.stdout)
    kept = [site for site in report["sites"] if f"asked.py:{line_of('STEP')}" in site["site"]]
    frames = [(frame["file"].rsplit("/", 1)[-1], frame["line"]) for frame in kept[0]["frames"]]
    assert ("asked.py", line_of("KEEP")) in frames
    assert sum(site["live_bytes"] for site in report["sites"] if site["call"] == "PyTorch") == after - before, report["sites"]
