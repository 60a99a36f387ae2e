"""What keeps PyTorch's memory, found by `vramtrack run` in a program that is as it was."""
import json
import os
import re
import subprocess
import sys

import pytest

from started import BUILD, HERE


def report_of(tmp_path, program, *arguments):
    own = {name: str(tmp_path) for name in ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    tmp_path.chmod(0o700)
    environment = {**os.environ, **own, "VRAMTRACK_FAKE_GPU_STATE": f"{tmp_path}/state"}
    trace = tmp_path / "trace"
    command = [BUILD / "vramtrack", "run", "--output", trace, "--probe", BUILD / "probe", "--", sys.executable, program, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    read = subprocess.run([BUILD / "vramtrack", "trace", "report", "--format", "json", trace], env=environment, capture_output=True, text=True)
    report = json.loads(read.stdout)
    assert not any("<vramtrack" in site["site"] for site in report["sites"])
    return report


def test_the_variable_that_keeps_a_leak_is_named(tmp_path):
    program = HERE / "programs/local_leak.py"
    (finding, *_) = report_of(tmp_path, program, "150")["findings"]
    line = next(number for number, text in enumerate(program.read_text().splitlines(), 1) if "# THE KEEPER" in text)
    assert re.fullmatch(rf"losses \(list, \d+ items\), local of train\(\) at local_leak.py:{line}", finding["kept_by"]["words"]), finding
    assert finding["site"].split()[0].endswith("local_leak.py:16"), finding


@pytest.mark.parametrize(
    "way, keeper",
    [
        ("local", "total, local of local() at carried_graph.py:"),
        ("attribute", "Meter.total, attribute of meter, local of attribute() at carried_graph.py:"),
        ("state", "hidden, local of state() at carried_graph.py:"),
    ],
)
def test_the_variable_that_carries_the_graphs_of_all_steps_is_named(tmp_path, way, keeper):
    (finding, *_) = report_of(tmp_path, HERE / "programs/carried_graph.py", way, "150")["findings"]
    assert finding["kept_by"]["words"].startswith(keeper), finding


def test_what_is_detached_carries_nothing(tmp_path):
    assert not report_of(tmp_path, HERE / "programs/carried_graph.py", "detached", "150")["findings"]
