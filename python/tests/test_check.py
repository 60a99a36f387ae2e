"""vramtrack check: which statements of a program keep GPU memory."""
import ast
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import symtable
import sys

import pytest

from vramtrack import check_command as check
from vramtrack import check_rules, check_scopes

ROOT = pathlib.Path(os.environ.get("VRAMTRACK_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PROGRAMS = ROOT / "tests" / "fixtures" / "check"

STEPS = """    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TRAINING = f"""import torch
def train(model, loader, optimizer):
    losses = []
{STEPS}        {{}}
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
    assert out.startswith("src/train.py:9: losses.append(loss)\n  why  `losses` lives longer than the loop on line 4")
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
""" + STEPS
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


# Names: a variable belongs to a scope, an attribute to a class.

FAILS = """import torch
class Runner:
    def __init__(self):
        self.errs = []
    def run(self, x):
        try:
            return self.model(x.cuda())
        except RuntimeError as e:
            self.errs.append(e)
"""


@pytest.mark.parametrize("more, expected", [
    ("", 1),
    ("def collect():\n    errs = []\n    return errs", 1),  # a local of that name
    ("def collect(errs):\n    errs.clear()", 1),
    ("errs = []\nerrs.clear()", 1),  # a variable of the module
    ("def collect():\n    return [errs.pop() for errs in [[1]]]", 1),
    ("class Other:\n    def reset(self):\n        self.errs = []", 1),  # an attribute of another class
    ("class Other:\n    errs = []\n    errs.clear()", 1),
    ("def collect():\n    other = Other()\n    other.errs.clear()\nclass Other:\n    pass", 1),
    ("import other\ndef collect():\n    other.errs.clear()", 1),  # a module
    ("    def reset(self):\n        self.errs = []", 0),
    ("    def reset(this):\n        this.errs.clear()", 0),
    ("    def reset(self):\n        errs = self.errs\n        errs.clear()", 0),  # the same list by another name
    ("    def reset(self):\n        for one in (self.errs, []):\n            one.clear()", 0),
    ("    def reset(self):\n        empty(self.errs)\ndef empty(errs):\n    errs.clear()", 0),
    ("class Limited(Runner):\n    def reset(self):\n        self.errs.clear()", 0),  # its object may be one of these
    ("def reset():\n    runner = Runner()\n    runner.errs.clear()", 0),
    ("def reset(runner):\n    runner.errs.clear()", 0),  # not known what it is
    ("def reset(runner: Runner):\n    runner.errs.clear()", 0),
    ("from other import runner\ndef reset():\n    runner.errs.clear()", 0),
])  # fmt: skip
def test_an_attribute_is_emptied_where_it_is_that_one(more, expected):
    assert rules(FAILS + more + "\n") == ["kept-exception"] * expected


SERVING = """import torch
KEPT = []
def serve(model, x):
    try:
        return model(x.cuda())
    except RuntimeError as error:
        KEPT.append(error)
{}
"""


@pytest.mark.parametrize("more, expected", [
    ("", 1),
    ("def other():\n    KEPT = []\n    KEPT.clear()", 1),
    ("def other(KEPT):\n    KEPT.clear()", 1),
    ("class Other:\n    KEPT = []\n    def other(self):\n        self.KEPT.clear()", 1),
    ("def other():\n    return [KEPT.clear() for KEPT in ([], [])]", 1),
    ("def other():\n    return lambda KEPT: KEPT.clear()", 1),
    ("def other():\n    KEPT = []\n    def inner():\n        nonlocal KEPT\n        KEPT = []", 1),
    ("def other():\n    import pool as KEPT\n    KEPT.clear()", 1),
    ("def other():\n    KEPT.clear()", 0),
    ("def other():\n    global KEPT\n    KEPT = []", 0),
    ("class Other:\n    KEPT = []\n    def other(self):\n        KEPT.clear()", 0),  # a method does not see the names of its class
    ("def other():\n    return [KEPT.clear() for _ in range(1)]", 0),
    ("def other():\n    def inner():\n        KEPT.clear()", 0),
    ("def other():\n    kept = KEPT\n    del kept[:]", 0),
])  # fmt: skip
def test_a_variable_of_the_module_is_emptied_where_it_is_that_one(more, expected):
    assert rules(SERVING.format(more)) == ["kept-exception"] * expected


@pytest.mark.parametrize("inner, expected", [
    ("def flush():\n            losses.clear()", 0),
    ("def flush(losses):\n            losses.clear()", 1),
    ("def flush():\n            losses = []", 1),
    ("def flush():\n            nonlocal losses\n            losses = losses[-10:]", 0),
])  # fmt: skip
def test_a_function_within_has_the_variables_of_those_around(inner, expected):
    text = TRAINING.format("losses.append(loss)").replace("    for x, y", f"    if True:\n        {inner}\n    for x, y")
    assert rules(text) == ["kept-graph"] * expected


def test_a_name_that_is_imported_in_one_function_is_not_known_in_another():
    text = "import torch\ndef one():\n    from torch import jit as fast\ndef train(loader, fast):\n    for x in loader:\n        f = fast.script(x)\n"
    assert rules(text) == []
    assert rules(text.replace("def train(loader, fast):\n", "def train(loader):\n    from torch import jit as fast\n")) == ["compile-in-loop"]


def test_a_function_is_the_one_that_its_scope_has():
    text = """import torch
def make(model):
    def predict(x):
        return model(x)
    return predict
def predict(x):
    return 1
def train(model, loader, optimizer):
    kept = []
    for x in loader:
        kept.append(predict(x))
        model(x).sum().backward()
"""
    assert rules(text) == []
    assert rules(text.replace("    return 1", "    return torch.nn.Linear(1, 1)(x)")) == ["kept-graph"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="comprehensions have no table of their own from there on")
@pytest.mark.parametrize("module", ["ast", "argparse", "dataclasses", "enum", "inspect", "typing", "asyncio.base_events", "collections", "statistics", "turtle"])
def test_scopes_are_those_of_the_compiler(module):
    path = pathlib.Path(importlib.util.find_spec(module).origin)
    count = compare_with_the_compiler(path.read_text())
    assert count > 300


def test_scopes_of_names_in_unusual_places():
    text = """
import a.b, c as d
from e import f
def outer(p, /, q, *r, s=lambda x: p, **t) -> "u":
    global g
    g = 1
    try:
        pass
    except OSError as h:
        pass
    def middle():
        nonlocal q
        q = [p for i in q if (w := i)] + [[p, j] for p in r for j in p]
        class Inner(f):
            k = q
            def method(self, k=k):
                return k, __class__, {n: k for n in (y for y in self)}
        return Inner, w, h
    with d as l, f() as (m, *o):
        del m
    async def late():
        async for z in o:
            await z
    return middle, late, g, a
class Top(metaclass=outer):
    values = [v for v in range(3)]
    later = lambda: values
"""
    assert compare_with_the_compiler(text) > 40


def compare_with_the_compiler(text):
    """Each name of each scope against Python's own symbol tables. The number of names."""
    scopes = check_scopes.Scopes(ast.parse(text))
    trees = {}
    for node in ast.walk(scopes.tree):
        kind = {ast.Lambda: "lambda", ast.ListComp: "listcomp", ast.SetComp: "setcomp", ast.DictComp: "dictcomp", ast.GeneratorExp: "genexpr"}.get(type(node), getattr(node, "name", ""))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, *check_scopes.COMPREHENSIONS)):
            trees.setdefault((kind, node.lineno), []).append(node)
    count = 0
    waiting = [symtable.symtable(text, "text", "exec")]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        found = [scopes.tree] if table.get_type() == "module" else trees.get((table.get_name(), table.get_lineno()), [])
        if len(found) != 1:  # several lambdas in one line
            continue
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if name.startswith((".", "__")) or name.startswith(f"_{table.get_name()}__") or re.match(r"_\w+__", name):
                continue
            owner = scopes.owner(name, found[0])
            count += 1
            if symbol.is_free():
                assert owner not in (None, scopes.tree, found[0]), (table, name)
            elif table.get_type() != "module" and symbol.is_global():
                assert owner in (None, scopes.tree), (table, name)
            elif symbol.is_local():
                assert owner is found[0], (table, name)
    return count


# What servers do on purpose.

def test_a_cache_by_shape_keeps_memory_if_tensors_are_in_it():
    text = "import torch, cute\nKERNELS = {{}}\ndef call(x):\n    KERNELS[x.shape] = {}\n"
    for value, expected in (
        ("torch.ones(x.shape, device='cuda')", 1), ("x.clone()", 1), ("torch.compile(run)", 1), ("torch.cuda.CUDAGraph()", 1),
        ("cute.compile(run)", 0), ("(64, 4)", 0), ("plan(x)", 0),
    ):  # fmt: skip
        assert rules(text.replace("(x)", "(x: torch.Tensor)", 1).format(value)) == ["unbounded-cache"] * expected, value


def test_a_part_of_a_tensor_is_no_entry_of_a_dict():
    text = "import torch\nclass Pool:\n    def __init__(self):\n        self.rows = []\n    def copy(self, at: torch.Tensor, x: torch.Tensor):\n        self.rows[0][{}] = x\n"
    assert rules(text.format("at")) == ["unbounded-cache"]
    assert rules(text.format(":, at")) == rules(text.format("1:")) == []


@pytest.mark.parametrize("annotation, target, expected", [
    ("Iterable[torch.Tensor]", "key", 1), ("list[tuple[torch.Tensor, int]]", "key, _", 1), ("Optional[List[Tuple[int, torch.Tensor]]]", "_, key", 1), ("list[torch.Tensor] | None", "key", 1),
    ("Iterable[tuple[int, tuple[torch.Tensor, str]]]", "_, (key, name)", 1),
    ("Iterable[tuple[str, torch.Tensor]]", "key, _", 0), ("dict[str, torch.Tensor]", "key", 0), ("Iterable[tuple[int, tuple[torch.Tensor, str]]]", "_, (name, key)", 0),
])  # fmt: skip
def test_the_part_of_a_type_that_a_loop_takes(annotation, target, expected):
    text = f"import torch\nCACHE = {{}}\ndef load(weights: {annotation}):\n    for {target} in weights:\n        CACHE[key] = name_of(1)\n"
    assert rules(text) == ["unbounded-cache"] * expected


def test_what_only_a_constructor_calls_runs_once():
    text = """import torch
class Buffers:
    def __init__(self, device="cuda"):
        self.device, self.kept = device, []
        {}
    def add(self):
        self.kept.append(torch.zeros(8, device=self.device))
{}
"""
    assert rules(text.format("pass", "")) == ["kept-tensor"]
    assert rules(text.format("self.add()", "")) == []
    assert rules(text.format("self.add()", "    def step(self):\n        self.add()")) == ["kept-tensor"]
    assert rules(text.format("while True: self.add()", "")) == ["kept-tensor"]
    assert rules(text.format("pass", "").replace("def add", "def init_graph_state")) == []


def test_a_loop_that_ends_by_what_it_makes_is_no_step():
    text = "import torch\nclass Lanes:\n    def get(self, n, caller):\n        stream = None\n        while {}:\n            {}\n"
    assert rules(text.format("True", "stream = torch.cuda.Stream()")) == ["made-per-step"]
    assert rules(text.format("stream is caller", "stream = torch.cuda.Stream()")) == []
    assert rules(text.format("len(self.lanes) < n", "self.lanes.append(torch.cuda.Stream())")) == []


def test_a_static_method_has_no_object_to_keep():
    text = "import functools, torch\nclass Filters:\n    {}@functools.cache\n    def get({}n):\n        return torch.zeros(n).to('cuda')\n"
    assert rules(text.format("", "self, ")) == ["unbounded-cache"]
    assert rules(text.format("@staticmethod\n    ", "")) == []


def test_what_is_written_into_a_tensor_is_not_kept():
    text = """import torch
class Pool:
    def __init__(self):
        self.made = MADE
    def put(self, at: torch.Tensor, x: torch.Tensor):
        self.madeELEMENT[at] = x
"""
    for made, element, expected in (
        ("{}", "", 1), ("[]", "[0]", 1), ("{0: torch.zeros(8)}", "", 1),
        ("torch.zeros(8)", "", 0), ("[torch.zeros(8) for _ in range(4)]", "[0]", 0), ("{0: torch.zeros(8)}", "[0]", 0),
    ):  # fmt: skip
        assert rules(text.replace("MADE", made).replace("ELEMENT", element)) == ["unbounded-cache"] * expected, made


def test_of_what_another_file_made_nothing_is_said():
    text = """import torch, pools
class Step:
    def __init__(self):
        self.pool = pools.Pool()
    def put(self, at: torch.Tensor, x: torch.Tensor):
        self.pool.rows[at] = x
{}"""
    assert rules(text.format("")) == []
    assert rules(text.format("class Other:\n    def __init__(self):\n        self.rows = {}\n")) == []
    own = "class Pool:\n    def __init__(self):\n        self.rows = {}\n"
    assert rules(text.format(own).replace("pools.Pool", "Pool")) == ["unbounded-cache"]


@pytest.mark.parametrize("body, expected", [
    ("stats = {'loss': []}\n    kept = stats['loss']\n    for x in loader:\n        loss = model(x).mean(); loss.backward()\n        kept.append(loss)", 1),  # an element is the same list
    ("kept = []\n    for x in loader:\n        loss = model(x).mean(); loss.backward()\n        kept.append(loss)\n        kept = kept[-9:]", 0),
    ("kept = []\n    def step(x):\n        loss = model(x).mean(); loss.backward()\n        kept.append(loss)\n    return step", 1),  # the caller has it, and calls it
    ("kept = []\n    def step(x):\n        kept.append(model(x))\n    step(loader)\n    return kept", 0),
    ("kept = []\n    def step(x):\n        kept.append(model(x))\n    def flush():\n        kept.clear()\n    return step, flush", 0),
    ("state = State()\n    for x in loader:\n        loss = model(x).mean(); loss.backward()\n        state.losses.append(loss)", 1),
    ("state = State()\n    for x in loader:\n        loss = model(x).mean(); loss.backward()\n        state.last.append(loss)", 0),
])  # fmt: skip
def test_a_container_by_another_name_or_in_another_scope(body, expected):
    text = f"""import torch
from collections import deque
from dataclasses import dataclass, field
@dataclass
class State:
    losses: list = field(default_factory=list)
    last: deque = field(default_factory=lambda: deque(maxlen=8))
def train(model, loader):
    {body}
"""
    assert rules(text) == ["kept-graph"] * expected


def test_the_sizes_of_a_shape_are_a_shape():
    text = "import torch\nMASKS = {}\ndef mask(x):\n    key = {}\n    if key not in MASKS:\n        made = {}\n        MASKS[key] = made\n"
    text = text.replace("= {}\n", "= {{}}\n", 1)
    for key in ("x.shape", "(x.shape[0], x.device)", "(x.size(0), 1)", "tuple(x.shape[1:])"):
        assert rules(text.format(key, "torch.ones(8)")) == ["unbounded-cache"], key
    assert rules(text.format("x.shape[0]", "torch.cuda.CUDAGraph()")) == ["unbounded-cache"]
    assert rules(text.format("x.shape[0]", "8")) == rules(text.format("x.dtype", "torch.ones(8)")) == []


@pytest.mark.parametrize("parameters, key, made, expected", [
    ("n", "n", "torch.ones(n, n, device='cuda')", 1),  # a mask for each length
    ("n, dtype", "(n, dtype)", "torch.ones(n, device='cuda').tril()", 1),
    ("request_id, x", "request_id", "model(x.cuda())", 1),
    ("self, key, x", "key", "model(x.cuda())", 0),  # what the keys are is not known
    ("name, x", "name", "model(x.cuda())", 0),
    ("dim", "dim", "torch.ones(dim, device='cuda')", 0),  # of a model
    ("layer_id: int", "layer_id", "torch.ones(layer_id, device='cuda')", 0),
    ("device", "device", "torch.ones(8, device=device)", 0),
    ("n", "n", "torch.ones(n)", 0),  # on the processor
    ("n", "n", "n + 1", 0),
])  # fmt: skip
def test_a_dict_keyed_by_what_callers_choose(parameters, key, made, expected):
    text = f"import torch\nmodel = torch.nn.Linear(3, 3).cuda()\nCACHE = {{}}\ndef get({parameters}):\n    if {key} not in CACHE:\n        CACHE[{key}] = {made}\n    return CACHE[{key}]\n"
    assert rules(text) == ["unbounded-cache"] * expected
    assert rules(text + "def end():\n    CACHE.clear()\n") == []


def test_a_dict_keyed_by_what_a_loop_over_data_gives():
    text = """import torch
model = torch.nn.Linear(3, 3).cuda()
CACHE = {}
def keep(key, x):
    CACHE[key] = model(x.cuda())
def train(loader):
    for i, x in enumerate(loader):
        keep(KEY)
"""
    assert rules(text.replace("KEY", "i, x")) == rules(text.replace("KEY", "x=x, key=(i, 3)")) == ["unbounded-cache"]
    assert rules(text.replace("KEY", "'last', x")) == []


def test_a_method_that_begins_anew_may_be_called_by_others_too():
    text = "import torch\nclass Run:\n    def __init__(self):\n        self.reset()\n    def reset(self):\n        self.kept = []\n    def add(self, model, x):\n        self.kept.append(model(x.cuda()))\n"
    assert rules(text) == []
    assert rules(text.replace("self.reset()", "self.kept = []").replace("def reset(self):\n        self.kept = []", "def other(self):\n        pass")) == ["kept-graph"]
