"""vramtrack check: which statements of a program keep GPU memory."""
import ast
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from vramtrack import check_command as check
from vramtrack import check_rules

ROOT = pathlib.Path(os.environ.get("VRAMTRACK_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PROGRAMS = ROOT / "tests" / "fixtures" / "check"

TRAINING = """import torch
def train(model, loader, optimizer):
    losses = []
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {}
"""


def lines(text):
    return [one.node.lineno for one in check_rules.check(text)]


def rules(text):
    return [one.rule for one in check_rules.check(text)]


def test_there_are_sixty_programs():
    assert len(list(PROGRAMS.glob("leaks/*.py"))) == len(list(PROGRAMS.glob("healthy/*.py"))) == 30


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("leaks/*.py")), ids=lambda path: path.stem)
def test_the_line_that_keeps_is_the_one_finding(path):
    text = path.read_text()
    assert lines(text) == [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# LEAK")]


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("healthy/*.py")), ids=lambda path: path.stem)
def test_a_healthy_program_is_silent(path):
    assert check_rules.check(path.read_text()) == []


@pytest.mark.parametrize("statement, expected", [
    ("losses.append(loss)", ["kept-graph"]),
    ("losses.append(loss.cpu())", ["kept-graph"]),  # cpu() copies the values and keeps the graph
    ("losses += [loss]", ["kept-graph"]),
    ("losses.append((1, loss))", ["kept-graph"]),
    ("losses.append(loss.item())", []),
    ("losses.append(loss.detach())", []),
    ("losses.append(float(loss))", []),
    ("losses.append(loss.argmax())", []),
    ("losses.append(f'{loss:.3f}')", []),
    ("losses.append(len(x))", []),
    ("losses.append(loss); losses = losses[-10:]", []),
    ("losses.append(loss); losses.clear()", []),
])
def test_what_an_expression_holds(statement, expected):
    assert rules(TRAINING.format(statement)) == expected


def test_without_a_framework_nothing_is_said():
    assert rules(TRAINING.format("losses.append(loss)").replace("import torch", "import numpy as torch")) == []


def test_gradients_that_every_caller_switches_off():
    text = """import torch
def predict(model, loader):
    model.eval()
    found = []
    for x in loader:
        found.append(model(x))
    return found
"""
    assert rules(text) == ["kept-graph"]
    assert rules(text + "with torch.no_grad():\n    predict(net, data)\n") == []
    assert rules(text + "with torch.no_grad():\n    predict(net, data)\npredict(net, data)\n") == ["kept-graph"]


def test_a_comment_silences_a_line(tmp_path):
    path = tmp_path / "train.py"
    for comment, count in (("", 1), ("  # vramtrack: ignore", 0), ("  # vramtrack: ignore[kept-graph]", 0), ("  # vramtrack: ignore[hook]", 1), ("  # ignore", 1)):
        path.write_text(TRAINING.format("losses.append(loss)" + comment))
        assert len(check.read(str(path)).findings) == count, comment
    path.write_text(TRAINING.format("losses.append(\n            loss)  # vramtrack: ignore"))
    assert not check.read(str(path)).findings


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src" / ".hidden").mkdir(parents=True)
    (tmp_path / "src" / "venv").mkdir()
    (tmp_path / "src" / "venv" / "pyvenv.cfg").touch()
    for place in ("src", "src/.hidden", "src/venv"):
        (tmp_path / place / "train.py").write_text(TRAINING.format("losses.append(loss)  # of each step"))
    (tmp_path / "src" / "plain.py").write_text("print(1)\n")
    assert check.main(["src"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("src/train.py:9: losses.append(loss)\n  why  `losses` lives longer than the loop of line 4")
    assert "1 finding in 2 files" in out
    assert check.main(["src/plain.py"]) == 0
    assert capsys.readouterr().out == "nothing found in 1 file that keeps GPU memory\n"
    assert check.main(["--json", "src"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["files"], document["unread"]) == (check.SCHEMA, 2, [])
    assert {key: document["findings"][0][key] for key in ("file", "line", "column", "rule", "statement")} == {
        "file": "src/train.py", "line": 9, "column": 9, "rule": "kept-graph", "statement": "losses.append(loss)"}


@pytest.mark.parametrize("content, words", [
    (b"def f(:\n", "line 1: not Python 3"),
    (b"print 'two'\n", "line 1: not Python 3"),
    (b"x = 1\0\n", "null bytes"),
    (b"# coding: no-such\n", "unknown encoding"),
    (b"x = '\xff'\n", "encoding|utf-8"),
    (b"(" * 5000, "not Python|nested too deeply"),
], ids=["syntax", "python2", "null", "encoding", "bytes", "deep"])
def test_what_cannot_be_read_is_named_and_the_rest_is_checked(tmp_path, capsys, content, words):
    bad, good = tmp_path / "bad.py", tmp_path / "good.py"
    bad.write_bytes(content)
    good.write_text(TRAINING.format("losses.append(loss)"))
    assert check.main([str(bad), str(good), str(tmp_path / "none.py")]) == 2
    out, err = capsys.readouterr()
    assert "good.py:9" in out
    first, second = err.splitlines()
    assert str(bad) in first and re.search(words, first), first
    assert "none.py: No such file or directory; give a Python file" in second


def notebook(*cells, language="python"):
    made = [{"cell_type": "markdown", "source": ["# text, no code\n"]}]
    made += [{"cell_type": "code", "source": text.splitlines(True), "outputs": []} for text in cells]
    return json.dumps({"cells": made, "metadata": {"kernelspec": {"language": language}}, "nbformat": 4, "nbformat_minor": 5})


def test_a_notebook_is_checked_as_one_program(tmp_path, capsys):
    body = TRAINING.format("losses.append(loss)")
    train = body[body.index("def train"):]
    path = tmp_path / "explore.ipynb"
    path.write_text(notebook("%matplotlib inline\n!pip install torch\nimport torch\nfiles = !ls\ntorch.nn?\nawait ready()", "%%bash\nrm -rf losses.append(loss)", "%%time\n" + train))
    assert check.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"{path}:cell 3:9: losses.append(loss)\n")
    assert check.main(["--json", str(tmp_path)]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["cell"], found["line"], found["statement"]) == (3, 9, "losses.append(loss)")
    path.write_text(notebook("x = (", "import torch"))
    assert check.main([str(path)]) == 2
    assert ": cell 1, line " in capsys.readouterr().err
    path.write_text(notebook("library(torch)\nx <- 1 ->", language="R"))
    assert check.main([str(path)]) == 0
    for text in ("{}", "[]", "not JSON", '{"cells": [{"cell_type": "code"}]}'):
        path.write_text(text)
        assert check.main([str(path)]) == 2
        assert "expected a notebook of Jupyter" in capsys.readouterr().err


def test_names_that_steer_a_terminal(tmp_path, capsys):
    path = tmp_path / "a\x1b[31m.py"
    path.write_text(TRAINING.format("losses.append(loss)"))
    assert check.main([str(path)]) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_each_rule_is_documented_and_found():
    documented = set(re.findall(r"^\| `([a-z-]+)` \|", (ROOT / "docs" / "check.md").read_text().split("## JSON")[0], re.MULTILINE))
    found = {rule for path in PROGRAMS.glob("leaks/*.py") for rule in rules(path.read_text())}
    assert found == documented


def test_the_example_of_the_manual(tmp_path, monkeypatch, capsys):
    example = re.search(r"```\n(train\.py:.*?)```", (ROOT / "docs" / "check.md").read_text(), re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text((PROGRAMS / "leaks" / "losses_list.py").read_text())
    assert check.main(["train.py"]) == 1
    assert capsys.readouterr().out == example


def test_python_m_vramtrack_check_needs_no_program(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TRAINING.format("losses.append(loss)"))
    result = subprocess.run([sys.executable, "-m", "vramtrack", "check", str(path)], capture_output=True, text=True, check=False, env={**os.environ, "PATH": str(tmp_path)})
    assert result.returncode == 1 and "train.py:9" in result.stdout, result.stderr


def test_nothing_is_run(tmp_path, capsys):
    path = tmp_path / "harmful.py"
    path.write_text(f"import torch\nopen({str(tmp_path / 'trace')!r}, 'w')\n")
    assert check.main([str(path)]) == 0
    assert not (tmp_path / "trace").exists()


def test_its_own_sources_are_for_python_3_8():
    for path in (ROOT / "python" / "vramtrack").glob("check*.py"):
        ast.parse(path.read_text(), feature_version=(3, 8))


FAILING = """import sys, torch, traceback
KEPT = []
def serve(model, x):
    try:
        return model(x.cuda())
    except RuntimeError as error:
        {}
"""


@pytest.mark.parametrize("body, expected", [
    ("KEPT.append(error.__traceback__)", ["kept-exception"]),
    ("KEPT.append((1, error.__traceback__.tb_frame))", ["kept-exception"]),
    ("KEPT.append(sys.exc_info()[2])", ["kept-exception"]),
    ("KEPT.append(sys.exc_info()[-1])", ["kept-exception"]),
    ("KEPT.append(sys.exc_info()[1])", ["kept-exception"]),
    ("tb = sys.exc_info()[2]; KEPT.append(tb)", ["kept-exception"]),
    ("kind, value, tb = sys.exc_info(); KEPT.append({'tb': tb})", ["kept-exception"]),
    ("kept = error; print(error.__traceback__); KEPT.append(kept)", ["kept-exception"]),
    ("KEPT.append(error.with_traceback(error.__traceback__))", ["kept-exception"]),
    ("KEPT.append(error.__context__)", ["kept-exception"]),
    ("for frame, line in traceback.walk_tb(error.__traceback__): KEPT.append(frame)", ["kept-exception"]),
    ("error.__traceback__ = None; KEPT.append(error)", []),
    ("KEPT.append(error.with_traceback(None))", []),
    ("error.with_traceback(None); KEPT.append(error)", []),
    ("traceback.clear_frames(error.__traceback__); KEPT.append(error)", []),
    ("tb = error.__traceback__; error.__traceback__ = None; KEPT.append(tb)", ["kept-exception"]),
    ("KEPT.append(sys.exc_info()[0])", []),
    ("kind, value, tb = sys.exc_info(); KEPT.append(kind)", []),
    ("KEPT.append(error.__traceback__.tb_lineno)", []),
    ("KEPT.append(traceback.format_exc())", []),
    ("KEPT.append(str(error.__traceback__))", []),
])  # fmt: skip
def test_what_refers_to_the_frames_of_a_failed_step(body, expected):
    assert rules(FAILING.format(body)) == expected


HOOKED = """import functools, torch
KEPT = []
class Taps:
    def __init__(self):
        self.seen, self.last, self.shapes = [], None, []
    def tap(self, module, inputs, output):
        self.seen.append(output)
    def newest(self, module, inputs, output):
        self.last = output
    def shape(self, module, inputs, output):
        self.shapes.append(tuple(output.shape))
    def __call__(self, module, inputs, output):
        self.seen.append(output)
    @staticmethod
    def fixed(module, inputs, output):
        KEPT.append(output)
    def install(self, model):
        model.fc.register_forward_hook(self.tap)
def make(store):
    def hook(module, inputs, output):
        store.append(output)
    return hook
def named(store, name, module, inputs, output):
    store.append((name, output))
def train(model, loader, optimizer):
    kept, taps = [], Taps()
    {}
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TAP, NAMED = "self.seen.append(output)", "store.append((name, output))"


HERE = "the line itself"


@pytest.mark.parametrize("body, expected", [
    ("model.fc.register_forward_hook(lambda module, inputs, output: KEPT.append(output))", [HERE]),
    ("model.fc.register_forward_hook(lambda m, i, o: (kept.append(o.detach()), None)[1])", [HERE]),
    ("tap = lambda m, i, o: kept.append(o); model.fc.register_forward_hook(tap)", [HERE]),
    ("model.fc.register_forward_hook(make(kept))", ["store.append(output)"]),
    ("model.fc.register_forward_hook(hook=make(store=KEPT))", ["store.append(output)"]),
    ("hook = make(KEPT); model.fc.register_forward_hook(hook)", ["store.append(output)"]),
    ("model.fc.register_forward_hook(functools.partial(named, kept, 'fc'))", [NAMED]),
    ("model.fc.register_forward_hook(taps)", [TAP]),
    ("model.fc.register_forward_hook(Taps())", [TAP]),
    ("model.fc.register_forward_hook(Taps.fixed)", ["KEPT.append(output)"]),
    ("model.fc.register_full_backward_hook(lambda m, i, o: KEPT.append(i[0]))", [HERE]),
    ("model.fc.weight.register_hook(KEPT.append)", [HERE]),
    ("model.fc.weight.register_hook(lambda grad: kept.append(grad))", [HERE]),
    ("model.fc.register_forward_hook(lambda m, i, o: KEPT.append(o.norm().item()))", []),
    ("model.fc.register_forward_hook(lambda m, i, o: KEPT.append(o.shape))", []),
    ("model.fc.register_forward_hook(lambda m, i, o: KEPT.append(str(m)))", []),
    ("model.fc.register_forward_hook(lambda m, i, o: [].append(o))", []),
    ("model.fc.register_forward_hook(taps.newest)", []),
    ("model.fc.register_forward_hook(taps.shape)", []),
    ("model.fc.register_forward_hook(make([]))", []),
    ("handle = model.fc.register_forward_hook(make(KEPT)); model(loader); handle.remove()", []),
    ("model.fc.register_forward_hook(make(kept)); model(loader); kept.clear()", []),
    ("model.fc.weight.register_hook(lambda grad: KEPT.append(grad.norm().item()))", []),
])  # fmt: skip
def test_hooks_are_followed_to_what_runs(body, expected):
    text = HOOKED.format(body)
    named = [HERE if body in line else line.strip() for line in text.splitlines()]
    assert [named[line - 1] for line in lines(text)] == [TAP, *expected], "install() registers a bound method"
    text = text.replace("self.tap)", "self.newest)")
    assert [named[line - 1] for line in lines(text)] == expected


def test_features_that_are_collected_without_gradients_are_wanted():
    text = """import torch
def features(model, loader):
    found = []
    model.fc.register_forward_hook(lambda module, inputs, output: found.append(output))
    {}:
        for x in loader:
            model(x)
    return torch.cat(found)
"""
    assert rules(text.format("with torch.no_grad()")) == []
    assert rules(text.format("if True")) == ["kept-graph"]


def test_what_runs_once_in_a_run_does_not_add_up():
    text = """import torch
class Average:
    def __init__(self, device="cuda"):
        self.device, self.kept = device, []
    def {}(self, model):
        for param in model.parameters():
            self.kept.append(param.detach().clone().to(self.device))
"""
    for name, expected in (("on_train_begin", []), ("on_fit_start", []), ("setup", []), ("configure_model", []), ("on_step_end", ["kept-tensor"]), ("on_train_epoch_start", ["kept-tensor"])):
        assert rules(text.format(name)) == expected, name


def test_the_default_of_a_device_says_where_it_is():
    text = """import torch
class Average:
    def __init__(self, device="{}"):
        self.device, self.kept = device, []
    def on_step_end(self, value):
        self.kept.append(value.to(self.device))
"""
    assert rules(text.format("cuda")) == ["kept-tensor"]
    assert rules(text.format("cpu")) == []
