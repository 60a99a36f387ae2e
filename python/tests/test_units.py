"""Sizes in words: one formatter for the whole package, with the rule of the program's format_size()."""
from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import vramtrack
from vramtrack.units import GIB, KIB, MIB, format_change, format_rate, format_size

PACKAGE = Path(vramtrack.__file__).parent
#: a sentence that repeats the user's own number, with the unit that it lacks
REPEATS_THE_USER = {("gate.py", "limit")}


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
    (12.4 * MIB / 60, "12.4 MiB/min"), (250 * MIB / 60, "250 MiB/min"), (-0.3 * MIB / 60, "-0.30 MiB/min"), (1, "0 MiB/min"), (2048 * MIB / 60, "2048 MiB/min"),
])  # fmt: skip
def test_rates_are_those_of_the_program(bytes_per_s: float, words: str) -> None:
    assert format_rate(bytes_per_s) == words


def test_no_other_code_of_the_package_writes_a_size() -> None:
    found = []
    for path in sorted(PACKAGE.glob("*.py")):
        text = path.read_text()
        if path.name == "units.py":
            continue
        found += [f"{path.name}: {match.group()}" for match in re.finditer(r"2 ?\*\* ?[1234]0\b", text)]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.JoinedStr):
                for value, after in zip(node.values, node.values[1:]):
                    if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant) and re.match(r" ?[KMGT]iB", str(after.value)):
                        if (path.name, getattr(value.value, "id", "")) not in REPEATS_THE_USER:
                            found.append(f"{path.name}:{node.lineno}")
    assert not found, "sizes in words are made by format_size(), format_change() and format_rate() of vramtrack.units"
