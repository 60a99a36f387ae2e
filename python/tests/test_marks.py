"""mark() towards `vramtrack test`: to its pipe and to nothing else, and each process by itself."""
import os
import subprocess
import sys

import pytest

MARK = ("import vramtrack\nd = vramtrack.SimulatedDevice()\nvramtrack.set_default_source(d)\nd.allocate(123)\n"
        "vramtrack.mark('step')\n")  # fmt: skip
ALONE = {name: value for name, value in os.environ.items() if name not in ("RANK", "LOCAL_RANK")}


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    yield reader, writer
    os.close(reader)
    os.close(writer)


def variables(pipe, gate=None):
    """What `vramtrack test` passes to its child; `gate`: its process."""
    status = os.fstat(pipe[1])
    path = f"/proc/{os.getpid()}/fd/{pipe[1]}"
    if gate is not None:
        path = f"/proc/{gate}/fd/{pipe[1]}"
    return {"VRAMTRACK_MARK_FD": str(pipe[1]), "VRAMTRACK_MARK_PIPE": f"{status.st_dev}:{status.st_ino}:{path}"}


def run(code, pipe, env, **options):
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60, env={**ALONE, **env}, **options)
    try:
        return os.read(pipe[0], 65536).decode()
    except BlockingIOError:
        return ""


def test_the_process_that_the_gate_has_started_needs_no_key(pipe):
    assert run(MARK, pipe, variables(pipe), pass_fds=[pipe[1]]) == "step 123\n"


@pytest.mark.parametrize("env, expected", [({"RANK": "3", "LOCAL_RANK": "1"}, "rank3-pid"), ({"LOCAL_RANK": "1"}, "rank1-pid"),
                                           ({}, None)])  # fmt: skip
def test_a_rank_is_its_processes_key(pipe, env, expected):
    line = run(MARK, pipe, {**variables(pipe), **env}, pass_fds=[pipe[1]])
    assert line == "step 123\n" if expected is None else line.startswith(f"step 123 {expected}")


def test_each_forked_child_is_a_series(pipe):
    code = MARK + ("import os\nkids = []\nfor _ in range(2):\n    kids.append(os.fork())\n    if kids[-1] == 0:\n"
                   "        vramtrack.mark('step')\n        os._exit(0)\n    os.waitpid(kids[-1], 0)\nprint(*kids)\n")  # fmt: skip
    lines = run(code, pipe, variables(pipe), pass_fds=[pipe[1]]).splitlines()
    assert lines[0] == "step 123" and len(set(lines)) == 3
    assert all(line.startswith("step 123 pid") for line in lines[1:])


def test_a_launcher_that_closes_descriptors(pipe):
    assert run(MARK, pipe, variables(pipe), close_fds=True) == "step 123\n", "by its path"


def files_of_its_own(number):
    return ("import os\nfiles = [os.open(os.path.join(%r, str(n)), os.O_CREAT | os.O_RDWR) for n in range(30)]\n"
            f"assert {number} in files\n")  # fmt: skip


@pytest.mark.parametrize("gate, known", [(None, True), (1 << 22, True), (None, False)])
def test_files_with_the_pipes_number_are_left_alone(pipe, tmp_path, gate, known):
    """The variable is inherited where the descriptor is not."""
    env = variables(pipe, gate)
    if not known:
        del env["VRAMTRACK_MARK_PIPE"]
    said = run(files_of_its_own(pipe[1]) % str(tmp_path) + MARK, pipe, env, close_fds=True)
    assert said == ("step 123\n" if gate is None and known else "")
    assert {file.read_bytes() for file in tmp_path.iterdir()} == {b""}


def test_a_pipe_of_the_programs_own_is_left_alone(pipe):
    env = {**variables(pipe, 1 << 22), "VRAMTRACK_MARK_FD": "0"}
    mine = os.pipe()
    try:
        assert run(MARK, pipe, env, stdin=mine[1]) == ""
        os.set_blocking(mine[0], False)
        with pytest.raises(BlockingIOError):
            os.read(mine[0], 100)
    finally:
        os.close(mine[0])
        os.close(mine[1])


def test_a_number_that_is_closed_and_used_again_is_left_alone(pipe, tmp_path):
    code = MARK + f"import os\nos.close({pipe[1]})\n" + files_of_its_own(pipe[1]) % str(tmp_path) + "vramtrack.mark('step')\n"
    assert run(code, pipe, variables(pipe), pass_fds=[pipe[1]]) == "step 123\n", "once"
    assert {file.read_bytes() for file in tmp_path.iterdir()} == {b""}


def test_figures_that_cannot_be_read_do_not_end_the_training(pipe):
    code = MARK + "d.counters = lambda: 1 / 0\nvramtrack.mark('step')\n"
    assert run(code, pipe, variables(pipe), pass_fds=[pipe[1]]) == "step 123\n"
