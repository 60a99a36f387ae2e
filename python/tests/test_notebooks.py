"""What a notebook shows of the package's objects, and of a cell."""
import builtins
import sys
import types
import xml.etree.ElementTree as ElementTree

import pytest

import vramtrack
from vramtrack.html_table import table
from vramtrack.jupyter import CellMemory, _magic

GIB, MIB = 2**30, 2**20


def words(html):
    """Its text; it has to be well formed."""
    assert "<script" not in html
    return " ".join(" ".join(ElementTree.fromstring(html).itertext()).split())


def cells(html):
    return [["".join(cell.itertext()) for cell in row] for row in ElementTree.fromstring(html).iter("tr")]


def test_a_table_escapes_and_cleans_what_it_shows():
    html = table("<b>\x1b", ("name", "size", "note."), [("a<b>&\x07", 5, "\u202e")], ["<i>"])
    assert words(html) == "<b>? name size note a<b>&? 5 ? <i>"
    assert html.count("text-align:right") == 2  # the figure and its heading


def test_a_watch_shows_its_verdict_and_the_lines(device, monkeypatch):
    watch = vramtrack.Watch(device, driver_library=None, ranks=False, clock=iter(range(10_000)).__next__)
    for _ in range(600):
        device.allocate(8 * MIB)
        watch.sample()
    site = vramtrack.Site("train", "a<b>.py", 12, 600 * MIB, 300 * MIB)
    monkeypatch.setattr(vramtrack.Watch, "sites", property(lambda self: [site]))
    html = watch._repr_html_()
    assert watch.verdict().because in words(html) and "<svg" in html
    assert ["a<b>.py:12 in train", "+300.0 MiB", "600.0 MiB"] in cells(html)


def test_a_profiler_shows_its_functions_the_worst_first(profiler, device):
    assert words(profiler._repr_html_()).startswith("0 profiled calls")

    def keeps():
        device.allocate(30 * MIB)

    def passes():
        device.free(device.allocate(50 * MIB))

    for function in (passes, keeps, keeps):
        profiler.profile_function(function)
    rows = cells(profiler._repr_html_())
    assert [row[:4] for row in rows] == [["function", "calls", "kept", "highest peak"], ["keeps", "2", "+60.0 MiB", "30.0 MiB"], ["passes", "1", "0 bytes", "50.0 MiB"]]


def test_an_analyzer_shows_its_score_and_findings(profiler, device):
    assert "No pattern was found" in words(vramtrack.MemoryAnalyzer(profiler)._repr_html_())

    def leaks():
        device.allocate(30 * MIB)

    for _ in range(40):
        profiler.profile_function(leaks)
    analyzer = vramtrack.MemoryAnalyzer(profiler)
    html = analyzer._repr_html_()
    assert "of 100" in words(html)
    assert [row[1] for row in cells(html)[1:]][:1] == ["memory leak"]
    assert len(cells(html)) - 1 == len(analyzer.analyze_memory_patterns()) + len(analyzer.generate_performance_insights())


def test_what_keeps_tensors_as_a_table():
    kept = vramtrack.Kept((vramtrack.Keeper("losses (list, 406 items)", 406, 3 * MIB, 406, made_at="train.py:16"),), 410, 5 * MIB, 0.5, False)
    html = kept._repr_html_()
    assert cells(html)[1] == ["losses (list, 406 items)", "406", "3.0 MiB", "406", "train.py:16"]
    assert "410 tensors of 5.0 MiB" in words(html) and "stopped after 0.5 s" in words(html) and ".detach()" in words(html)


def test_categories_as_a_table():
    found = vramtrack.Categories((vramtrack.Label(0, 3 * GIB, "weights", "a", 0), vramtrack.Label(1, 1 * GIB, "kv_cache", "b", 0)), 5 * GIB, 0.1)
    assert cells(found._repr_html_())[1:] == [["weights", "3.0 GiB", "60 %"], ["kv cache", "1.0 GiB", "20 %"], ["other", "1.0 GiB", "20 %"]]


class Shell:
    """As much of IPython's as the magic uses."""

    def __init__(self, names, failed=False):
        self.names, self.failed = names, failed

    def run_cell(self, code):
        exec(code, self.names)
        return types.SimpleNamespace(success=not self.failed, raise_error=lambda: None)


@pytest.fixture
def without_ipython(monkeypatch):
    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", lambda name, *a, **k: (_ for _ in ()).throw(ImportError(name)) if name.startswith("IPython") else real(name, *a, **k))


def test_a_cell_says_what_it_left_behind(device, capsys, monkeypatch, without_ipython):
    looks = [vramtrack.Kept((vramtrack.Keeper("old (list, 3 items)", 3, MIB, 0),), 3, MIB, 0.1, True),
             vramtrack.Kept((vramtrack.Keeper("losses (list, 9 items)", 9, 2 * MIB, 9), vramtrack.Keeper("old (list, 3 items)", 3, MIB, 0)), 12, 3 * MIB, 0.1, True)]
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    monkeypatch.setattr("vramtrack.jupyter.kept_by", lambda seconds: looks.pop(0))
    _magic(Shell({"device": device}))("", "device.allocate(30 * 2**20)")
    first, *left = capsys.readouterr().out.splitlines()
    assert first.startswith("GPU memory: +30.0 MiB kept")
    assert len(left) == 1 and left[0].startswith("  left behind: losses (list, 9 items) keeps 9 tensors of 2.0 MiB, +9 and +2.0 MiB")
    assert not looks


def test_a_cell_that_keeps_nothing_is_not_searched(device, capsys, monkeypatch, without_ipython):
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    asked = []
    monkeypatch.setattr("vramtrack.jupyter.kept_by", lambda seconds: asked.append(seconds))
    _magic(Shell({"device": device}))("", "device.free(device.allocate(30 * 2**20))")
    assert len(asked) == 1 and capsys.readouterr().out.count("\n") == 1


def test_a_cell_that_failed_or_whose_result_is_kept_is_told_how_to_free_it(device, profiler):
    with profiler.profile_context("cell") as result:
        device.allocate(5 * MIB)
    left = vramtrack.Kept((vramtrack.Keeper("Out (dict, 2 items) in __main__ globals", 1, 5 * MIB, 0),), 1, 5 * MIB, 0.1, True)
    memory = CellMemory(result, left, True)
    assert "sys.last_traceback = None" in repr(memory) and "%reset -f out" in repr(memory)
    assert "%reset -f out" in words(memory._repr_html_()) and cells(memory._repr_html_())[1][0].startswith("Out")
