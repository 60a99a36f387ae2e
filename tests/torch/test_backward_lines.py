"""Memory of the backward pass has the line of the forward pass where PyTorch's anomaly detection gives it."""
import json
import subprocess
import sys

import pytest
from started import BUILD

PROGRAM = """
import sys, torch
torch.cuda.memory._record_memory_history(stacks=sys.argv[1])
def model(weights, x):
    h = x @ weights
    return h.relu().sum()
weights = torch.ones(512, 512, device="cuda", requires_grad=True)
x = torch.ones(512, 512, device="cuda")
with torch.autograd.set_detect_anomaly(sys.argv[2] == "anomaly", check_nan=False):
    loss = model(weights, x)
    loss.backward()
torch.cuda.memory._dump_snapshot(sys.argv[3])
"""


@pytest.mark.parametrize("stacks", ["python", "all"])
@pytest.mark.parametrize("anomaly", ["anomaly", "without"])
def test_the_line_of_a_gradient(tmp_path, stacks, anomaly):
    (tmp_path / "net.py").write_text(PROGRAM)
    taken = tmp_path / "taken.pickle"
    subprocess.run([sys.executable, tmp_path / "net.py", stacks, anomaly, taken], check=True, timeout=120)
    if anomaly == "anomaly" and b"forward_frames" not in taken.read_bytes():
        pytest.skip("this PyTorch does not write the frames of the forward pass")
    done = subprocess.run([BUILD / "vramtrack", "snapshot", "summary", "--json", taken], capture_output=True, text=True, timeout=60)
    (device,) = json.loads(done.stdout)["snapshots"][0]["devices"]
    sites = {site["site"].rpartition("/")[2]: site["bytes"] for site in device["sites"]}
    line = PROGRAM.splitlines().index("    h = x @ weights") + 1
    assert (f"net.py:{line} backward() of model" in sites) == (anomaly == "anomaly"), sites
    if anomaly == "anomaly":
        assert sites[f"net.py:{line} backward() of model"] == 512 * 512 * 4
