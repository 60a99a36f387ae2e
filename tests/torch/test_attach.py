"""`vramtrack attach` and kept_by() on PyTorch's own recorder and tensors."""
import gc
import os
import re
import subprocess
import sys
import weakref

import pytest
from started import BUILD, HERE

MIB = 2**20
PROGRAM = HERE / "programs/attachable.py"


def line_of(word):
    return next(n for n, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.endswith(f"# {word}"))


@pytest.fixture
def program(tmp_path):
    environment = {**os.environ, "VRAMTRACK_ATTACHABLE": "1", "XDG_RUNTIME_DIR": "", "TMPDIR": "/tmp",
                   "VRAMTRACK_FAKE_GPU_DEVICES": "1", "VRAMTRACK_FAKE_GPU_MIB": "65536", "VRAMTRACK_FAKE_GPU_STATE": f"{tmp_path}/state"}  # fmt: skip
    started = subprocess.Popen([sys.executable, PROGRAM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout.readline() == "ready\n"
    yield started
    started.stdin.close()
    assert started.wait(60) == 0


def is_recording(program):
    program.stdin.write("?\n")
    program.stdin.flush()
    return program.stdout.readline() == "True\n"


def attach(program, folder, *arguments):
    return subprocess.run([BUILD / "vramtrack", "attach", str(program.pid), *arguments], cwd=folder, capture_output=True, text=True, timeout=300)


def test_the_lines_and_what_keeps_them(program, tmp_path):
    assert not is_recording(program)
    done = attach(program, tmp_path, "--duration", "6s", "--kept", "--output", "job.pickle")
    assert done.returncode == 1, done.stderr + done.stdout
    assert not is_recording(program)
    assert f"attachable.py:{line_of('LOSS') - 3}" in done.stdout or f"attachable.py:{line_of('LOSS')}" in done.stdout
    kept = done.stdout.partition("What keeps more tensors than at the beginning:\n")[2].splitlines()
    assert re.match(r"  losses \(list, [\d,]+ items\) in attachable.py module globals keeps [\d,]+ tensors", kept[0]), done.stdout
    assert "grad_fn" in kept[0] and f"attachable.py:{line_of('LOSS')}" in kept[0]
    history = next(line for line in kept if line.startswith("  Trainer.history (list, "))
    assert "attribute of trainer in attachable.py module globals" in history and f"made at {PROGRAM}:{line_of('HISTORY')}" in history
    assert not any("batch" in line or "weights" in line for line in kept)
    assert sorted(path.name for path in tmp_path.glob("*.pickle")) == ["job-1.pickle", "job-2.pickle", "job-3.pickle"]


def test_nothing_is_kept_by_the_look():
    import torch

    import vramtrack

    holder = {"layer": torch.nn.Linear(64, 64, device="cuda"), "views": []}
    base = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
    holder["views"] += [base[:100], base[100:200]]
    seen = [weakref.ref(base), *map(weakref.ref, holder["views"])]
    kept = vramtrack.kept_by(seconds=30)
    paths = {keeper.path: keeper for keeper in kept.keepers}
    views = next(keeper for path, keeper in paths.items() if path.startswith("['views'] (list, 2 items) of holder"))
    assert (views.tensors, views.bytes) == (2, 8 * MIB), "the storage, once"
    assert any("Linear._parameters" in path or "Linear.weight" in path or "'weight'" in path for path in paths), paths
    assert kept.is_complete and kept.seconds < 10
    gc.disable()
    try:
        holder.clear()
        del base
        assert [one() for one in seen] == [None] * 3
    finally:
        gc.enable()
