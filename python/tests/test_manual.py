"""The manual's examples run as they are printed, one after the other; and it names what there is."""
import os
import pathlib
import re

import pytest

import vramtrack

SOURCE = pathlib.Path(os.environ.get("VRAMTRACK_SOURCE_DIR", pathlib.Path(__file__).parents[2]))


def blocks(name):
    page = SOURCE / "docs" / name
    if not page.exists():
        pytest.skip("the documents are not here")
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    try:
        for block in blocks("python.md"):
            exec(compile(block, "docs/python.md", "exec"), namespace)
    finally:
        vramtrack.set_default_source(None)
    out = capsys.readouterr().out
    assert "save a checkpoint now, s left: Interval(low=" in out and "+480 MiB/min" in out and "+8.0 MiB per step" in out
    assert "LEAK (gradual leak)" in out and "memory_leak critical Memory grows by 1.9 GiB over 100 calls in" in out and "the limit is 0.20 MiB/iteration" in out


def test_the_gates_examples_are_python():
    for block in blocks("leak-gate.md"):
        compile(block, "docs/leak-gate.md", "exec")


def test_every_threshold_and_default_is_as_written():
    text = (SOURCE / "docs" / "leak-gate.md").read_text()
    assert "`(128, 1024)`" in text and vramtrack.gate.run_gate.__kwdefaults__["iterations"] == (128, 1024)
    assert vramtrack.gate.run_gate.__kwdefaults__["error_rate"] == 1e-4 and vramtrack.gate.run_gate.__kwdefaults__["caches"] == 4


def test_what_a_prediction_takes_is_as_written():
    least = re.search(r"at least .* samples and .* min$", vramtrack.detect([0, 1], [2**30, 2**30]).because)[0]
    assert least in (SOURCE / "docs" / "python.md").read_text()
