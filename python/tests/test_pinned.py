"""Pinned host memory as a series of a Watch."""
import json

import pytest

import vramtrack
from vramtrack import pinned_series

MIB, GIB = 2**20, 2**30


def run(device, mib_per_s, seconds=2400, **options):
    """A quiet quarter of an hour, and growth from then on."""
    now = [1_750_000_000.0]
    watch = vramtrack.Watch(device, clock=lambda: now[0], evidence=False, **options)
    device.allocate(4 * GIB)
    device.pinned_bytes = 512 * MIB
    for second in range(seconds):
        device.pinned_bytes += int(mib_per_s * MIB) if second >= 900 else 0
        now[0] += 1
        watch.step()
        watch.sample()
    return watch


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    monkeypatch.setattr(pinned_series, "host_memory_bytes", lambda: 64 * GIB)


def test_a_leak_of_pinned_memory(device):
    watch = run(device, 8)
    verdict = watch.verdict("host_pinned")
    assert verdict.leak and verdict.metric == "host_pinned" and verdict.capacity_bytes == 64 * GIB
    assert verdict.growth_bytes_per_s.mid == pytest.approx(8 * MIB, rel=0.02)
    assert verdict.headline.startswith("pinned host memory: LEAK (gradual leak), +480 MiB/min") and "GPU" not in verdict.headline
    assert "pinned host memory" in verdict._repr_svg_() and "<svg" in verdict._repr_html_()
    assert json.loads(verdict.to_json())["series"]["metric"] == "host_pinned"
    assert verdict.growth_per == {}, "that is of the device's memory"
    (said,) = [line for line in watch.advice() if "pinned" in line]
    assert said.startswith("pinned host memory grows by 480 MiB/min")
    assert not watch.verdict().leak, "the device has no leak"


def test_none_where_it_stands_still(device):
    watch = run(device, 0)
    assert not watch.verdict("host_pinned").leak
    assert not any("pinned" in line for line in watch.advice())


def test_where_it_is_not_counted(device):
    watch = vramtrack.Watch(device, clock=lambda: 0.0)
    watch.sample()
    verdict = watch.verdict("host_pinned")
    assert (verdict.samples, verdict.leak, verdict.metric) == (0, False, "host_pinned")
    assert "nothing was pinned yet" in str(verdict)


def test_it_cannot_be_confirmed(device):
    watch = run(device, 8)
    verdict = watch.verdict("host_pinned", confirm=True)
    assert verdict.leak and "not confirmed: unknown metric 'host_pinned'" in verdict.because


def test_where_host_memory_ends(tmp_path, monkeypatch):
    monkeypatch.undo()
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (cgroup / "job").mkdir(parents=True)
    assert pinned_series.host_memory_bytes(str(proc), str(cgroup)) is None
    (proc / "meminfo").write_text("MemTotal:       65536 kB\nMemFree: 1 kB\n")
    assert pinned_series.host_memory_bytes(str(proc), str(cgroup)) == 64 * MIB
    (proc / "self/cgroup").write_text("0::/job\n")
    for limit, expected in (("max", 64), (str(16 * MIB), 16), (str(99 * MIB), 64)):
        (cgroup / "job/memory.max").write_text(limit + "\n")
        assert pinned_series.host_memory_bytes(str(proc), str(cgroup)) == expected * MIB
