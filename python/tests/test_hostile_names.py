"""Every text that leaves the package, with hostile names in it. A new output that is not driven here fails the last test."""
import ast
import json
import pathlib
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree

import pytest
from plugin_options import plugin_options

import vramtrack
from vramtrack import explanation, optional_watch
from vramtrack import profiler as profiler_module
from vramtrack.evidence import write_evidence
from vramtrack.gate_evidence import GateEvidence
from vramtrack.memory_source import Site
from vramtrack.printable import printable, printable_values

MIB = 2**20
# ESC and BEL, DEL, C1, controls that turn the direction, separators of lines, and half a surrogate pair.
HOSTILE = "py\x1b[31m\x07\x7f\u009b2J\u0085\u202egpj.exe\u2066x\u2069\u200f\u061c\u2028y\udc80z"
HARMLESS = "py?[31m????2J??gpj.exe?x????y"
BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
DRIVEN = set()


def clean(output, text, expected="gpj.exe"):
    """`output` says where the package makes it: file and function."""
    DRIVEN.add(output)
    assert expected in text, f"{output} does not show the name"
    assert not BAD.search(text), output
    text.encode()


def strings_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from strings_of(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings_of(one)


def named(body):
    body.__name__ = HOSTILE
    return body


def test_what_is_printable_stays_as_it_is():
    for text in ("", "train.py:7 in step", "naïve – 学習 🙂", "a b"):
        assert printable(text) == text
    assert printable("a\nb\tc") == "a b c"
    assert printable_values({"a\x1b": ["x\ny\x07", 1, None, (HOSTILE,)]}) == {"a?": ["x\ny?", 1, None, [printable(HOSTILE)]]}


def test_a_line_that_grows():
    clean("memory_source.py __str__", str(Site(HOSTILE, HOSTILE, 7, 1, 1)))


def test_a_profiled_call(profiler):
    result = profiler.profile_function(named(lambda: None))
    clean("profiler.py __repr__", repr(result))
    with profiler.profile_context(HOSTILE) as result:
        pass
    clean("profiler.py __repr__", repr(result))
    made = profiler_module.ProfileResult(HOSTILE, 1.0, result.memory_before, result.memory_after, result.memory_peak)
    clean("profiler.py __repr__", repr(made))
    for finding in vramtrack.MemoryAnalyzer().analyze_memory_patterns([made] * 20):
        assert not BAD.search(str(finding))


def watched(device, folder):
    now = [1_750_000_000.0]
    watch = vramtrack.Watch(device, clock=lambda: now[0], directory=str(folder))
    device.allocate(4 * 2**30)
    for n in range(2400):
        if n > 900:
            device.allocate(8 * MIB)
        now[0] += 1
        watch.mark(HOSTILE.replace("\u0085", "").replace("\u2028", ""))  # marks have no blanks
        watch.sample()
    return watch


def test_a_verdict_and_the_evidence_of_an_end(device, tmp_path):
    device.name = HOSTILE
    watch = watched(device, tmp_path)
    verdict = watch.verdict()
    assert verdict.leak and verdict.growth_per
    clean("verdict.py __str__", str(verdict))
    clean("verdict.py _repr_html_", verdict._repr_html_())
    clean("verdict.py _repr_svg_", verdict._repr_svg_(), "svg")
    clean("verdict.py to_json", verdict.to_json(), "vramtrack.analysis.v1")
    path = write_evidence(watch, MIB, 0)
    text = pathlib.Path(path).read_text()
    clean("evidence.py json.dump", text)
    for one in strings_of(json.loads(text)):
        assert not BAD.search(one.replace("\n", ""))


def test_the_warning_of_a_worker(capsys):
    from vramtrack.workers import _reporter

    verdict = type("Verdict", (), {"because": HOSTILE})()
    _reporter(0)(verdict)
    clean("workers.py print", capsys.readouterr().err, "cuda:0")


def test_a_gate_that_fails(device):
    with pytest.raises(vramtrack.LeakError) as failed:
        vramtrack.gate.check(lambda: device.allocate(2 * MIB), limit=f"0.2 MiB/{HOSTILE}", source=device)
    clean("gate.py __str__", str(failed.value))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        vramtrack.gate.run_gate(lambda: None, iterations=2, source=device)
    assert not BAD.search(str(told[0].message))
    DRIVEN.add("gate.py warnings.warn")
    with pytest.raises(ValueError) as refused:
        vramtrack.gate.check(lambda: None, limit=HOSTILE, source=device)
    assert not BAD.search(str(refused.value))


def test_the_lines_of_a_gated_program(device, tmp_path):
    evidence = GateEvidence(str(tmp_path), "")
    space = {"device": device}
    exec(compile(f"def grow():\n    device.allocate({2 * MIB})", HOSTILE.replace("\u2028", ""), "exec"), space)
    for _ in range(64):
        space["grow"]()
        evidence.mark(HOSTILE, device)
    clean("gate_evidence.py file.write", (tmp_path / "main.sites").read_text())


def test_pytest_names_the_test(tmp_path):
    (tmp_path / "test_leaks.py").write_text(
        "import pytest, vramtrack\n"
        "device = vramtrack.SimulatedDevice(capacity_bytes=2**34)\n"
        f"@pytest.mark.parametrize('x', [1], ids=[{ascii(HOSTILE[:-2])}])\n"
        "@pytest.mark.limit_gpu_leaks('0.2 MiB/iter', source=device)\n"
        "def test_grows(x):\n    device.allocate(2**21)\n"
    )
    run = subprocess.run([sys.executable, "-m", "pytest", *plugin_options(), "--vramtrack", "-q", "-p", "no:cacheprovider", "--junitxml=leaks.xml", "test_leaks.py"],
                         cwd=tmp_path, capture_output=True, check=False)  # fmt: skip
    summary = run.stdout.decode().partition("GPU memory leaks (vramtrack)")[2]
    clean("pytest_plugin.py terminalreporter.write_line", summary, "test_grows")
    assert "LEAKS" in summary
    xml.etree.ElementTree.parse(tmp_path / "leaks.xml")


def test_the_warning_of_a_callback(monkeypatch):
    def refuse():
        raise vramtrack.NoDeviceError(f"no {HOSTILE}")

    monkeypatch.setattr(vramtrack.watch, "default_source", refuse)
    with pytest.warns(UserWarning) as told:
        assert optional_watch.watch_or_warn({}) is None
    clean("optional_watch.py warnings.warn", str(told[0].message))


def test_what_memory_consists_of(device):
    clean("breakdown.py __str__", str(vramtrack.Watch(device).breakdown()), "allocated")  # it has sizes and numbers only


def test_what_filled_the_memory(capsys):
    error = RuntimeError(f"CUDA out of memory. Tried to allocate 2.00 GiB {HOSTILE}")
    clean("explanation.py __str__", str(explanation.explain(error)), "2.00 GiB")
    explanation.print_explanation(error)
    clean("explanation.py print", capsys.readouterr().err, "2.00 GiB")


def test_what_memory_is():
    found = vramtrack.Categories((vramtrack.Label(4096, 512, "weights", HOSTILE, 0),), 1024, 0.0)
    clean("categories.py __str__", str(found), "weights")  # it has categories and sizes only
    clean("categories.py _repr_html_", found._repr_html_(), "weights")


def test_the_module_as_a_program(monkeypatch, capsys):
    from vramtrack import __main__ as module

    with vramtrack.use_source(vramtrack.SimulatedDevice(name=HOSTILE)):
        module.main([])
    clean("__main__.py print", capsys.readouterr().out)
    monkeypatch.setattr(module, "program", lambda: None)  # an installed package has one, which would take this process's place
    module.main([HOSTILE])
    clean("__main__.py sys.stderr.write", capsys.readouterr().err, "not in PATH")  # it repeats no argument


def test_the_magic_of_a_notebook(capsys):
    from vramtrack.jupyter import _magic

    shell = type("Shell", (), {"run_cell": lambda self, code: self, "raise_error": lambda self: None})()
    with vramtrack.use_source(vramtrack.SimulatedDevice(name=HOSTILE)):
        _magic(shell)("", HOSTILE)
    clean("jupyter.py print", capsys.readouterr().out, "GPU memory")  # it repeats no code


def outputs_of(path):
    """Where a file of the package makes text that leaves it."""
    text_methods = {"__str__", "__repr__", "to_json", "to_html", "__format__"}
    calls = {"print", "file.write", "sys.stderr.write", "sys.stdout.write", "warnings.warn", "json.dump", "terminalreporter.write_line"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and (node.name in text_methods or node.name.startswith("_repr_")):
            yield f"{path.name} {node.name}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) in calls:
            yield f"{path.name} {ast.unparse(node.func)}"


#: Binary data that the allocator made; read by `vramtrack snapshot`, which has its own test.
NOT_TEXT = {"evidence.py file.write"}


def test_what_a_source_has(tmp_path, capsys):
    from vramtrack import check_command

    path = tmp_path / f"a{HOSTILE}.py"
    text = HOSTILE.replace("\udc80", "")
    path.write_text(f"import torch\nseen = []\ndef f(model, x):\n    seen.append((model(x), '{text}'))\n", encoding="utf-8")
    for form in ("text", "json"):
        check_command.main(["--format", form, str(path), str(path) + "no"])
        told = capsys.readouterr()
        clean("check_command.py sys.stdout.write", told.out, "seen.append")
        clean("check_command.py sys.stderr.write", told.err, "No such file")


def test_what_has_no_name_in_it():
    from vramtrack.mark_series import growth_of_epochs

    clean("mark_series.py __str__", str(growth_of_epochs([MIB] * 4)), "MiB per epoch")


def test_what_keeps_tensors():
    keeper = vramtrack.Keeper(HOSTILE, 1, MIB, 0, made_at=HOSTILE)
    kept = vramtrack.Kept((keeper,), 1, MIB, 0.1, True)
    clean("referrers.py __str__", str(keeper))
    clean("referrers.py __str__", str(kept))
    clean("referrers.py _repr_html_", kept._repr_html_())


def test_what_a_notebook_shows(monkeypatch):
    from vramtrack.jupyter import CellMemory

    with vramtrack.use_source(vramtrack.SimulatedDevice(name=HOSTILE)) as device:
        profiler = vramtrack.GPUMemoryProfiler(source=device)
        for _ in range(40):
            with profiler.profile_context(HOSTILE) as result:
                device.allocate(30 * MIB)
        watch = vramtrack.Watch(device, driver_library=None, ranks=False)
        watch.sample()
    clean("profiler.py _repr_html_", profiler._repr_html_())
    analyzer = vramtrack.MemoryAnalyzer(profiler)
    pattern = vramtrack.MemoryPattern("memory_leak", HOSTILE, "critical", [HOSTILE], {}, [HOSTILE])
    monkeypatch.setattr(analyzer, "analyze_memory_patterns", lambda results=None: [pattern])
    clean("analyzer.py _repr_html_", analyzer._repr_html_())
    monkeypatch.setattr(vramtrack.Watch, "sites", property(lambda self: [vramtrack.Site(HOSTILE, HOSTILE, 1, MIB, MIB)]))
    clean("watch.py _repr_html_", watch._repr_html_())
    left = vramtrack.Kept((vramtrack.Keeper(HOSTILE, 1, MIB, 0),), 1, MIB, 0.1, True)
    clean("jupyter.py _repr_html_", CellMemory(result, left, False)._repr_html_())
    clean("jupyter.py __repr__", repr(CellMemory(result, left, False)))


def test_every_output_is_driven(request):
    ran = {item.name for item in request.session.items if item.module.__name__ == __name__}
    if not {name for name in globals() if name.startswith("test_")} <= ran:
        pytest.skip("needs the whole file")
    package = pathlib.Path(vramtrack.__file__).resolve().parent
    made = {output for path in package.glob("*.py") for output in outputs_of(path)}
    assert made - NOT_TEXT == DRIVEN
