"""The ranks of one job on real PyTorch: which grows, and which says nothing any more."""
import os
import signal
import subprocess
import sys

import pytest
from started import HERE

MACHINE = {"VRAMTRACK_FAKE_GPU_DEVICES": "2", "VRAMTRACK_FAKE_GPU_MIB": "81920,40960", "GLOO_SOCKET_IFNAME": "lo", "TORCHELASTIC_RUN_ID": "test"}
GROWS = "rank 1 of 2 grows by 600 MiB/min since 2025-06-15 15:2"


def test_under_torchrun_with_gloo(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2", "--master-addr=127.0.0.1", "--master-port=0",
               "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1", HERE / "programs/ranked.py", tmp_path, "360", "gloo"]  # fmt: skip
    machine = {**os.environ, **MACHINE, "VRAMTRACK_FAKE_GPU_STATE": str(tmp_path / "state")}
    done = subprocess.run(command, env=machine, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    words, rest = done.stdout.splitlines()
    assert words.startswith(GROWS) and words.endswith(" UTC; the other does not grow"), words
    assert rest == "['running', 'running'] 0 []"


@pytest.fixture
def job(tmp_path):
    """Two ranks without torch.distributed, with a launcher's variables alone."""
    started = []
    for rank in ("0", "1"):
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        machine = {**os.environ, **MACHINE, **variables, "VRAMTRACK_FAKE_GPU_STATE": str(tmp_path / "state")}
        started.append(subprocess.Popen([sys.executable, HERE / "programs/ranked.py", tmp_path, "360", "alone"], env=machine,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))  # fmt: skip
    for one in started:
        assert one.stdout.readline() == "done\n"
    yield started
    for one in started:
        one.kill()
        one.communicate()


def goes_on(one, steps):
    one.stdin.write(f"{steps}\n")
    one.stdin.flush()
    return one.stdout.readline().rstrip("\n"), one.stdout.readline().rstrip("\n")


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_that_was_killed_or_hangs_is_silent(job, end):
    words, rest = goes_on(job[0], 3)
    assert words.startswith(GROWS) and words.endswith("the other does not grow") and rest == "['running', 'running'] 0 []"
    os.kill(job[1].pid, end)
    words, rest = goes_on(job[0], 18)
    assert words.startswith(GROWS), "it grew when it was last seen"
    assert words.endswith("the other does not grow; rank 1 has been silent since 2025-06-15 15:36:40 UTC: killed or hung"), words
    assert rest == "['running', 'silent'] 0 []"
