"""What keeps PyTorch's memory, found by `vramtrack run` in a program that is as it was."""
import json
import os
import re
import subprocess
import sys

from started import BUILD, HERE

PROGRAM = HERE / "programs/local_leak.py"


def test_the_variable_that_keeps_a_leak_is_named(tmp_path):
    own = {name: str(tmp_path) for name in ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    tmp_path.chmod(0o700)
    environment = {**os.environ, **own, "VRAMTRACK_FAKE_GPU_STATE": f"{tmp_path}/state"}
    trace = tmp_path / "trace"
    command = [BUILD / "vramtrack", "run", "--output", trace, "--probe", BUILD / "probe", "--", sys.executable, PROGRAM, "150"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    read = subprocess.run([BUILD / "vramtrack", "trace", "report", "--format", "json", trace], env=environment, capture_output=True, text=True)
    (finding, *_) = json.loads(read.stdout)["findings"]
    line = next(number for number, text in enumerate(PROGRAM.read_text().splitlines(), 1) if "# THE KEEPER" in text)
    assert re.fullmatch(rf"losses \(list, \d+ items\), local of train\(\) at local_leak.py:{line}", finding["kept_by"]["words"]), finding
    assert finding["site"].split()[0].endswith("local_leak.py:16"), finding
    assert not any("<vramtrack" in site["site"] for site in json.loads(read.stdout)["sites"])
