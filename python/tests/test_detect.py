import json
import math
import os
import pathlib
import re
import subprocess
import threading
from array import array

import pytest

import vramtrack

np = pytest.importorskip("numpy")
GIB = 2**30
MIB = 2**20


def leak(n=3600, mib_per_s=2.0, noise=20.0, seed=1):
    t = np.arange(n, dtype=float)
    return t, 8 * GIB + mib_per_s * MIB * t + np.random.default_rng(seed).normal(0, noise * MIB, n)


class Column:
    """As a table's column: no array, but it can give one."""

    def __init__(self, values):
        self.values, self.dtype, self.ndim, self.flags = values, values.dtype, 1, None

    def to_numpy(self):
        return self.values


def test_columns_of_tables_are_read():
    numpy = pytest.importorskip("numpy")
    times, used = numpy.arange(600.0), numpy.arange(600) * 2**20 + 2**33
    whole = vramtrack.detect(times, used, capacity_bytes=2**35)
    assert vramtrack.detect(Column(times), Column(used), capacity_bytes=2**35).raw == whole.raw


def test_a_leak(capsys):
    t, used = leak()
    verdict = vramtrack.detect(t, used, 24 * GIB)
    assert verdict.leak and verdict.state == "leaking" and verdict.pattern == "gradual_leak"
    assert verdict.growth_bytes_per_s.mid == pytest.approx(2 * MIB, rel=0.05)
    low, mid, high = verdict.oom_in_s
    assert low <= (24 * GIB - used[-1]) / (2 * MIB) <= high and low <= mid <= high
    assert verdict.samples == 3600 and verdict.capacity_bytes == 24 * GIB and verdict.start is None
    assert verdict.alerts and verdict.alerts[0].raised_s < 3600 and verdict.alerts[0].ended == "standing"
    assert "LEAK (gradual leak)" in str(verdict)
    dissent = [f.detector for f in verdict.dissent]
    assert {"linear_trend", "spike"} <= set(dissent) and verdict.detector not in dissent


def test_every_field_of_the_contract_is_an_attribute():
    """docs/formats/analysis.md, except what says which series of which file it is."""
    t, used = leak()
    verdict = vramtrack.detect(t, used, 24 * GIB, explain=True)
    line = json.loads(verdict.to_json())
    assert line["schema"] == "vramtrack.analysis.v1"
    for name in line["verdict"]:
        assert hasattr(verdict, name), name
    for name in set(line) - {"schema", "files", "series", "verdict", "skipped_lines"}:
        assert hasattr(verdict, name), name
    for name in line["alerts"][0]:
        assert hasattr(verdict.alerts[0], name), name
    for name in line["verdict"]["dissent"][0]:
        assert hasattr(verdict.dissent[0], name), name
    assert verdict.explain


def test_a_steady_series_and_dates():
    t = 1_750_000_000.0 + np.arange(600.0)
    verdict = vramtrack.detect(t, np.full(600, 5.0 * GIB), 24 * GIB)
    assert not verdict.leak and verdict.state == "steady" and verdict.oom_in_s is None
    assert verdict.start == "2025-06-15T15:06:40Z"


def test_no_samples_is_no_error():
    verdict = vramtrack.detect([], [])
    assert verdict.state == "too_short" and verdict.samples == 0 and str(verdict)
    assert verdict._repr_html_()


@pytest.mark.parametrize("convert", [
    list, tuple, lambda a: array("d", a), lambda a: a.astype("float32").astype("float64")[::1], lambda a: np.repeat(a, 2)[::2],
    lambda a: a.astype("int64"),
])  # fmt: skip
def test_other_sequences_are_converted(convert):
    t = np.arange(600.0)
    used = np.floor(8 * GIB + 5 * MIB * t)
    expected = vramtrack.detect(t, used, 24 * GIB)
    assert vramtrack.detect(convert(t), convert(used), 24 * GIB) == expected


def test_missing_values_are_no_samples():
    t, used = leak()
    used[::7] = math.nan
    verdict = vramtrack.detect(t, used, 24 * GIB)
    assert verdict.leak and verdict.samples == 3600 - len(t[::7])
    assert vramtrack.detect([0, 1, 2], [5, None, 6]).samples == 2


@pytest.mark.parametrize("times, used, capacity, words", [
    ([0, 1], [1, 2, 3], None, "times_s has 2 values and used_bytes 3"),
    ([0, 2, 1], [1, 2, 3], None, r"times_s\[2\] is 1, earlier than the one before it \(2\)"),
    ([0, math.nan], [1, 2], None, r"times_s\[1\] is nan"),
    ([0, 1], [1, -5], None, r"used_bytes\[1\] is -5"),
    ([0, 1], [1, 2], 0, "capacity_bytes is 0"),
    ([0, 1], [1, 2], math.nan, "capacity_bytes is nan"),
    ("ab", [1, 2], None, "times_s is str"),
    (np.zeros((2, 2)), [1, 2], None, "2 dimensions"),
])  # fmt: skip
def test_errors_say_what_and_where(times, used, capacity, words):
    with pytest.raises(ValueError, match=words):
        vramtrack.detect(times, used, capacity)


def test_settings_are_those_of_the_configuration():
    t, used = leak()
    assert vramtrack.detect(t, used, 24 * GIB, settings={"detection.detector": "linear_trend"}).detector == "linear_trend"
    with pytest.raises(ValueError, match="leak-prior"):
        vramtrack.detect(t, used, settings={"detection.leak-prio": 0.2})
    with pytest.raises(ValueError, match="unknown metric 'vram'"):
        vramtrack.detect(t, used, metric="vram")


def test_the_arrays_are_not_copied():
    """A float64 array is read where it lies: the converted column is the array itself."""
    from vramtrack.verdict import column

    t = np.arange(10.0)
    assert column(t, "times_s") is t


def test_the_gil_is_free_meanwhile():
    t, used = leak(1_000_000, 0.001)
    ticks = []
    done = threading.Event()

    def run():
        vramtrack.detect(t, used, 80 * GIB)
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not done.is_set():
        ticks.append(done.wait(0.001))
    thread.join()
    assert len(ticks) > 3, "this thread ran while the other was in the core"


def test_the_same_verdict_as_the_command_line(tmp_path):
    binary = pathlib.Path(os.environ.get("VRAMTRACK_BUILD_DIR", "")) / "vramtrack"
    if not binary.is_file():
        pytest.skip("the vramtrack binary was not built")
    t = np.arange(1200.0)
    used = (8 * GIB + 3 * MIB * t) // MIB * MIB
    rows = "\n".join(f"{int(a)},{int(b)}" for a, b in zip(t, used))
    (tmp_path / "log.csv").write_text("time_s,used_bytes\n" + rows + "\n")
    done = subprocess.run([binary, "analyze", "--format", "json", "--capacity", str(24 * GIB), tmp_path / "log.csv"],
                          capture_output=True, text=True, env={**os.environ, "HOME": str(tmp_path)})  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    theirs = json.loads(done.stdout)["verdict"]
    ours = vramtrack.detect(t, used, 24 * GIB).raw["verdict"]
    assert {k: theirs[k] for k in ("leak", "state", "pattern", "growth_bytes_per_s", "oom_in_s", "because")} == {
        k: ours[k] for k in ("leak", "state", "pattern", "growth_bytes_per_s", "oom_in_s", "because")
    }


def test_figures_that_are_no_bytes_are_doubted():
    times = range(100)
    with pytest.raises(ValueError, match=r"^used_bytes reaches 1.0 GiB, above capacity_bytes=24; give both in bytes$"):
        vramtrack.detect(times, [2**30] * 100, capacity_bytes=24)
    assert vramtrack.detect(times, [1.005 * 2**30] * 100, capacity_bytes=2**30).warnings == (), "they do not count quite alike"
    verdict = vramtrack.detect(times, [8.0 + t for t in times])
    assert verdict.warnings == ("used_bytes never exceeds 107; give it in bytes",) and verdict.warnings[0] in str(verdict)
    assert vramtrack.detect(times, [0] * 100).warnings == ()


@pytest.mark.parametrize("samples, interval_s", [(5, 1), (81, 1), (400, 1), (4000, 1), (2000, 600)])
@pytest.mark.parametrize("capacity_bytes", [None, 200 * 2**30])
def test_no_option_of_the_command_line_is_advised(samples, interval_s, capacity_bytes):
    for mib in (0, 2, 40):
        used = [8 * 2**30 + mib * 2**20 * t for t in range(samples)]
        verdict = vramtrack.detect([interval_s * t for t in range(samples)], used, capacity_bytes)
        # What is quoted is a command to run.
        words = re.sub(r"'vramtrack [^']*'", "", str(verdict) + verdict.to_json() + repr(verdict.told))
        assert not re.search(r"--(interval|capacity|format|metric|set|settings|detector)\b", words), words


def test_arguments_are_advised():
    short = vramtrack.detect([0, 1, 2, 3, 4], [8 * 2**30] * 5)
    assert "pass capacity_bytes, for example capacity_bytes=24 * 2**30" in str(short)
    assert short.told.next == "record for longer, or sample more often (interval_s of a Watch)" and short.told.next in str(short)
