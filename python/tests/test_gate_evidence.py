"""The growing lines that `vramtrack test` asks for."""
import os
import subprocess
import sys

import pytest

from vramtrack.gate_evidence import GateEvidence

MIB = 2**20


def sites(folder, key="main"):
    with open(os.path.join(folder, f"{key}.sites")) as file:
        return file.read().splitlines()


def marks(evidence, device, number, leak=True):
    held = []
    for n in range(number):
        if held:
            device.free(held.pop())
        held.append(device.allocate(500 * MIB))  # replaced at each mark
        if leak:
            device.allocate(2 * MIB)  # leaks
        if n % 10 == 9:
            evidence.mark("epoch", device)
        evidence.mark("step", device)


@pytest.mark.parametrize("number, begin, end", [(60, 32, 48), (64, 32, 64), (100, 48, 96), (300, 128, 256)])
def test_the_leaking_line_over_the_latter_half(device, tmp_path, number, begin, end):
    evidence = GateEvidence(str(tmp_path), "")
    marks(evidence, device, number)
    first, line = sites(tmp_path)
    assert first == f"step {begin} {end}"
    assert line == f"{(end - begin) * 2 * MIB} {__file__}:{marks.__code__.co_firstlineno + 7} in marks"
    assert device.recording


def test_the_recorder_is_off_again(device, tmp_path):
    evidence = GateEvidence(str(tmp_path), "pid7")
    marks(evidence, device, 15)
    assert not device.recording
    marks(evidence, device, 1500)
    assert device.recording
    marks(evidence, device, 30)
    assert not device.recording and sites(tmp_path, "pid7")[0] == "step 768 1536"


def test_no_growth(device, tmp_path):
    marks(GateEvidence(str(tmp_path), ""), device, 100, leak=False)
    assert sites(tmp_path) == ["step 48 96"]


@pytest.mark.parametrize("broken", ["start_stacks", "snapshot", "growing_sites"])
def test_a_recorder_that_fails_is_left_alone(device, tmp_path, monkeypatch, broken):
    tried = []
    monkeypatch.setattr(device, broken, lambda *args: tried.append(1) or 1 / 0)
    evidence = GateEvidence(str(tmp_path), "")
    with pytest.raises(ZeroDivisionError):
        marks(evidence, device, 100)
    marks(evidence, device, 100)
    assert len(tried) == 1 and not device.recording and not os.listdir(tmp_path)


@pytest.mark.parametrize("folder", ["there", "nowhere/at/all", ""])
def test_mark_takes_it_where_it_is_asked_for(tmp_path, folder):
    """And continues where it cannot be written."""
    (tmp_path / "there").mkdir()
    reader, writer = os.pipe()
    code = ("import vramtrack\nd = vramtrack.SimulatedDevice()\nvramtrack.set_default_source(d)\n"
            "for _ in range(70):\n    d.allocate(2**20)\n    vramtrack.mark('step')\n")  # fmt: skip
    env = {**os.environ, "VRAMTRACK_MARK_FD": str(writer), "VRAMTRACK_TEST_EVIDENCE": folder and str(tmp_path / folder)}
    env.pop("RANK", None)
    subprocess.run([sys.executable, "-c", code], pass_fds=[writer], check=True, env=env, timeout=60)
    os.close(writer)
    with os.fdopen(reader) as lines:
        assert len(lines.read().splitlines()) == 70
    assert os.listdir(tmp_path / "there") == (["main.sites"] if folder == "there" else [])
    if folder == "there":
        assert sites(tmp_path / "there") == ["step 32 64", f"{32 * MIB} <string>:5 in <module>"]

