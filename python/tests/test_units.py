"""Sizes in words: one formatter for the whole package, with the rule of the program's format_size()."""
from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import vramtrack
from vramtrack.units import GIB, KIB, MIB, format_change, format_rate, format_size

PACKAGE = Path(vramtrack.__file__).parent
#: A unit stands in these texts, and no size that we write: examples, a column's heading, a number of the user's own that is repeated as given,
#: a grade, an argument for the program.
WITHOUT_A_SIZE = {
    ("analyzer.py", "B"), ("gpu_wait.py", "B"), ("categories.py", "bytes"), ("jupyter.py", "bytes"), ("referrers.py", "bytes"),
    ("gate.py", "0.2 MiB/iter"), ("gate.py", '; expected, for example, "0.2 MiB/iter", or a number of bytes per iteration'),
    ("gate.py", ' bytes per iteration is too small to mean anything; write "'), ("gate.py", ' MiB/iter"'),
    ("pytest_plugin.py", "0.2 MiB/iter"), ("pytest_plugin.py", 'limit_gpu_leaks takes one limit, for example limit_gpu_leaks("0.2 MiB/iter"), and keyword arguments'),
    ("pytest_plugin.py", 'limit_gpu_leaks(limit="0.2 MiB/iter", *, error_rate, iterations, caches, collect): with --vramtrack, repeat the test and fail it if GPU memory grows '
     'by more than the limit with each repetition'),
    ("simulated.py", " bytes"), ("verdict.py", "; give both in bytes"), ("verdict.py", "; give it in bytes"),
}  # fmt: skip
UNIT = re.compile(r"(?:^|[^A-Za-z_]|%[-+ #0-9.*]*[a-z])([KMGTP]i?)?(B|bytes?)(?![A-Za-z])")


@pytest.mark.parametrize("bytes_, words", [
    (0, "0 bytes"), (1, "1 byte"), (90, "90 bytes"), (KIB, "1.0 KiB"), (7.8 * KIB, "7.8 KiB"), (1024 * KIB - 1, "1.0 MiB"), (45.6 * MIB, "45.6 MiB"),
    (12.3 * GIB, "12.3 GiB"), (2048 * GIB, "2.0 TiB"), (-MIB, "-1.0 MiB"), (-0.2, "0 bytes"), (float("nan"), "0 bytes"), (float("inf"), "0 bytes"),
])  # fmt: skip
def test_sizes_have_the_unit_that_suits_them(bytes_: float, words: str) -> None:
    assert format_size(bytes_) == words


@pytest.mark.parametrize("bytes_, words", [(12.3 * MIB, "+12.3 MiB"), (-KIB, "-1.0 KiB"), (0, "0 bytes"), (4, "+4 bytes")])
def test_changes_have_a_sign(bytes_: float, words: str) -> None:
    assert format_change(bytes_) == words


@pytest.mark.parametrize("bytes_per_s, words", [
    (12.4 * MIB / 60, "12.4 MiB/min"), (250 * MIB / 60, "250 MiB/min"), (-0.3 * MIB / 60, "-0.30 MiB/min"), (1, "0 MiB/min"), (2048 * MIB / 60, "2048 MiB/min"), (17 * GIB / 60, "17.0 GiB/min"),
])  # fmt: skip
def test_rates_are_those_of_the_program(bytes_per_s: float, words: str) -> None:
    assert format_rate(bytes_per_s) == words


def texts_of(tree: ast.AST) -> set[str]:
    """Every text in the code, also the parts of f-strings, except for docstrings."""
    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    described = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, scopes) and node.body and isinstance(node.body[0], ast.Expr)}
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described}


def test_no_other_code_of_the_package_writes_a_size() -> None:
    """Whoever writes a size writes its unit, however it is put together: so no other text of the package has one. The units themselves are
    no values of vramtrack.units that another file could join to a number."""
    found = set()
    for path in sorted(PACKAGE.glob("*.py")):
        if path.name != "units.py":
            code = path.read_text()
            found |= {(path.name, text) for text in texts_of(ast.parse(code)) if UNIT.search(text)}
            assert not re.search(r"\b2 ?\*\* ?[1234]0\b|\b1048576\b|\b1 ?<< ?[1234]0\b", code), f"{path.name}: KIB, MIB and GIB are those of vramtrack.units"
    assert found == WITHOUT_A_SIZE, "sizes in words are made by format_size(), format_change() and format_rate() of vramtrack.units"
    assert [name for name, value in vars(vramtrack.units).items() if not name.startswith("_") and isinstance(value, (str, list, tuple, dict))] == []


@pytest.mark.parametrize("code", [
    'f"{x / MIB:.1f} MiB"', '"%.1f MiB" % (x / MIB)', '"{:.1f} MiB".format(x / MIB)', 'str(x) + " MiB"', '" ".join((str(x), "MiB"))', '"".join([str(x), "MiB"])',
    'format(x, ".1f") + "GiB"', 'f"{x} bytes"', '"%dMB" % x', 'Template("$x KiB").substitute(x=x)', '["B", "KB", "MB"][i]', 'f"{x:.1f}" " GB"',
])  # fmt: skip
def test_a_size_is_seen_however_it_is_put_together(code: str) -> None:
    assert any(UNIT.search(text) for text in texts_of(ast.parse(code))), code
