"""A real PyTorch program that leaks, seen live from outside: `watch`, `top`, the agent and the gate."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from started import HERE, start

#: A detector that decides within seconds: the judge wants minutes before it calls anything a leak.
QUICKLY = ["--source", "nvml", "--interval", "100ms", "--detector", "linear_trend", "--no-record", "--set", "minimum-duration-minutes=0",
           "--set", "minimum-samples=10"]  # fmt: skip
PROGRAM = HERE / "programs/leaky.py"
LIMIT_S = 120


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """The environment of everything that runs on one fake GPU of 64 GiB."""
    return {"VRAMTRACK_FAKE_GPU_STATE": str(tmp_path_factory.mktemp("gpu") / "state"), "VRAMTRACK_FAKE_GPU_MIB": "65536"}


@pytest.fixture(scope="module")
def job(machine):
    """Leaks about 80 MiB a second until the tests are over."""
    process = start("leaky.py", 100_000, "keep", 0.1, env=machine)
    assert process.stdout.readline() == "training\n"
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def options():
    return [*QUICKLY, "--set", f"sources.nvml-library={os.environ['VRAMTRACK_TORCH_LANE']}/libnvidia-ml.so.1"]


def test_watch_sees_it_grow_and_names_the_pid(box, machine, job, options):
    command = [box.binary, "watch", "--json", "--duration", f"{LIMIT_S}s", *options]
    watch = subprocess.Popen(command, cwd=box.work, env=box.environment(machine), stdout=subprocess.PIPE, text=True)
    lines = (json.loads(line) for line in watch.stdout)
    raised = {}
    for line in lines:
        if line["schema"] == "vramtrack.alert.v1" and line["event"] == "raised":
            raised[line["series"]["metric"]] = line
        if len(raised) == 2:
            break
    watch.send_signal(signal.SIGINT)
    watch.communicate()
    assert raised["process_used"]["series"]["pid"] == job.pid
    assert str(PROGRAM) in raised["process_used"]["series"]["command"]
    assert raised["device_used"]["because"].startswith(f"pid {job.pid} grows")
    assert raised["process_used"]["alert"]["oom_in_s"]["low"] > 0


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_top_shows_it(box, machine, job, options):
    from terminal import Terminal

    top = Terminal(box, "--no-agent", *options, size=(120, 40), env=machine)
    try:
        top.wait_for(rf"GPU 0[\s\S]*{job.pid} .*PyTorch .*(CRITICAL|WARNING)")
    finally:
        top.close()


def test_the_agent_lists_it(box, machine, job, options):
    from running import Agent, until

    with Agent(box, *options, env=machine, simulate=False) as agent:
        alert = until(lambda: [a for a in agent.get("/api/v1/alerts")["alerts"] if a["pid"] == job.pid], LIMIT_S, "an alert")[0]
        assert alert["finding"]["leak"]
        process = next(s for s in agent.get("/api/v1/view")["series"] if s["pid"] == job.pid)
        assert process["metric"] == "process_used" and str(PROGRAM) in json.dumps(process["process"]), process
        assert f'pid="{job.pid}"' in agent.ask("GET", "/metrics")[2].decode()


def gate(box, *arguments, env=None):
    """(exit code, words) of the gate around the program, with what the program itself needs."""
    needed = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "OMP_NUM_THREADS")}
    done = box.run("test", *arguments, env={**needed, **(env or {})}, timeout=300)
    return done.returncode, done.stderr.decode()


def test_the_gate_fails_it_and_names_the_line(box):
    code, words = gate(box, "--", sys.executable, str(PROGRAM), "200")
    assert code == 1, words
    assert re.search(r"LEAKS: GPU memory: grows 8\.\d+ MiB/step", words), words
    line = next(n for n, text in enumerate(PROGRAM.read_text().splitlines(), 1) if ".sin().sum()" in text)
    assert f"{PROGRAM}:{line}" in words or f"leaky.py:{line}" in words, words


def test_the_gate_passes_its_repaired_twin(box):
    code, words = gate(box, "--", sys.executable, str(PROGRAM), "200", "drop")
    assert code == 0, words


def test_two_programs_share_the_memory(tmp_path):
    """What one holds, the other lacks: and it says so in torch's own words."""
    env = {"VRAMTRACK_FAKE_GPU_STATE": str(tmp_path / "state"), "VRAMTRACK_FAKE_GPU_MIB": "1500"}
    first = start("holds.py", 500, env=env)
    try:
        assert first.stdout.readline() == "held\n"
        second = start("holds.py", 500, env=env)
        said = second.communicate()[0]
        assert second.returncode == 1 and f"Process {first.pid} has" in said, said
    finally:
        first.kill()
        first.wait()
