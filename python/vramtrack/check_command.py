"""vramtrack check: finds statements of Python programs that keep GPU memory, before they run. `python -m vramtrack check FILE ...`; the
program `vramtrack` contains the same code, and runs it with the python3 in PATH. It does not import or run the code it checks."""
from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import sys
import tokenize
import warnings
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from vramtrack.check_rules import Finding, check

SCHEMA = "vramtrack.check.v1"
NOTHING_FOUND, FOUND, FAILED = 0, 1, 2

_IGNORE = re.compile(r"#\s*vramtrack:\s*ignore\b(?:\[([\w\-, ]*)\])?")
_NOT_ENTERED = {"__pycache__", "node_modules", "site-packages"}
#: Cells that begin with one of these contain Python nevertheless.
_PYTHON_MAGICS = {"time", "timeit", "capture", "prun", "vramtrack", "snakeviz", "memray_flamegraph"}
_SHELL = re.compile(r"^(\s*)([\w., \[\]]+=\s*)?[%!](?!=)")  # %timeit f(), !pip install x, files = !ls


class Read(NamedTuple):
    """One file: its findings, or why it could not be read."""

    name: str
    findings: List[Finding]
    lines: List[str]
    error: str
    cells: List[Tuple[int, int]] = []  # for a notebook, for each line of its code: the cell, and the line within it

    def place(self, line: int) -> str:
        return f"{self.name}:cell {self.cells[line - 1][0]}:{self.cells[line - 1][1]}" if self.cells else f"{self.name}:{line}"


def python_files(path: str) -> Iterator[str]:
    """The file itself; for a folder, each *.py and *.ipynb below it, without hidden folders, installed packages, virtual environments."""
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in _NOT_ENTERED and not os.path.exists(os.path.join(folder, one, "pyvenv.cfg")))
        yield from (os.path.join(folder, one) for one in sorted(files) if one.endswith((".py", ".ipynb")))


def _text(path: str) -> str:
    if path == "-":
        data = sys.stdin.buffer.read()
    else:
        with open(path, "rb") as file:
            data = file.read()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding).read()  # line ends as Python reads them


def code_of_notebook(text: str) -> Tuple[str, List[Tuple[int, int]]]:
    """The code of all cells as one program, without IPython's syntax, and the position of each line. ValueError: it is not a notebook."""
    try:
        book = json.loads(text)
        cells = [(cell["cell_type"], cell["source"]) for cell in book["cells"]]
        language = book.get("metadata", {}).get("kernelspec", {}).get("language", "python")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("expected a notebook of Jupyter (format 4), with cells of code") from None
    lines: List[str] = []
    positions: List[Tuple[int, int]] = []
    number = 0
    for kind, source in cells:
        if kind != "code":
            continue
        number += 1
        its = ("".join(source) if isinstance(source, list) else str(source)).split("\n")
        magic = re.match(r"\s*%%(\w+)", its[0])
        if str(language).lower() != "python" or (magic and magic[1] not in _PYTHON_MAGICS):
            continue
        for i, line in enumerate(its):
            shell = _SHELL.match(line)
            if shell:
                line = f"{shell[1]}{shell[2] or ''}None"
            elif line.rstrip().endswith("?") or (i == 0 and magic):
                line = ""
            lines.append(line)
            positions.append((number, i + 1))
    return "\n".join([*lines, ""]), positions


def ignored_lines(text: str) -> Dict[int, Optional[Set[str]]]:
    """By line, the rules that a comment switches off there; None: all."""
    found: Dict[int, Optional[Set[str]]] = {}
    if "vramtrack:" not in text:
        return found
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        match = _IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
        if match:
            found[token.start[0]] = None if match[1] is None else {one.strip() for one in match[1].split(",")}
    return found


def _lines_of(node: ast.AST) -> Tuple[int, int]:
    """The first and last line of a statement; if it has a body, those of its head, including the decorators."""
    first: int = min(one.lineno for one in [node, *getattr(node, "decorator_list", [])])  # type: ignore[attr-defined]
    body = getattr(node, "body", None)
    last: int = max(node.lineno, body[0].lineno - 1) if isinstance(body, list) and body else node.end_lineno  # type: ignore[attr-defined]
    return first, last


def _is_ignored(finding: Finding, ignored: Dict[int, Optional[Set[str]]]) -> bool:
    first, last = _lines_of(finding.node)
    for line, rules in ignored.items():
        if first <= line <= last and (rules is None or finding.rule in rules):
            return True
    return False


def read(path: str) -> Read:
    """Checks one file. Never raises because of its contents."""
    name = "standard input" if path == "-" else path
    version = ".".join(map(str, sys.version_info[:2]))
    cells: List[Tuple[int, int]] = []
    try:
        text = _text(path)
        if path.endswith(".ipynb"):
            text, cells = code_of_notebook(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about an escape in a string, which concern whoever runs the program
            findings = check(text)
        ignored = ignored_lines(text)
    except OSError as error:
        return Read(name, [], [], f"{error.strerror or error}; give a Python file, or a folder that has some")
    except (SyntaxError, tokenize.TokenError) as error:
        line = getattr(error, "lineno", None)
        place = f"cell {cells[line - 1][0]}, line {cells[line - 1][1]}: " if line and line <= len(cells) else f"line {line}: " if line else ""
        return Read(name, [], [], f"{place}not Python {version}: {getattr(error, 'msg', error)}; check it with the Python that runs it: PYTHON -m vramtrack check")
    except (ValueError, LookupError) as error:
        return Read(name, [], [], f"not the text of a Python program: {error}")
    except (RecursionError, MemoryError):
        return Read(name, [], [], "nested too deeply to be read; leave it out")
    return Read(name, [one for one in findings if not _is_ignored(one, ignored)], text.split("\n"), "", cells)


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else " " if one == "\t" else "?" for one in text)


def _statement(one: Finding, lines: List[str]) -> str:
    """Its first line, without a trailing comment."""
    line, end = one.node.lineno, getattr(one.node, "end_lineno", None)  # type: ignore[attr-defined]
    text = lines[line - 1]
    if end == line:
        return text.encode()[:one.node.end_col_offset].decode().strip()  # type: ignore[attr-defined]
    return text.strip() if isinstance(getattr(one.node, "body", None), list) else f"{text.strip()} ..."


def as_json(files: List[Read]) -> str:
    def line_of(file: Read, one: Finding) -> Dict[str, int]:
        line: int = one.node.lineno  # type: ignore[attr-defined]
        return {"cell": file.cells[line - 1][0], "line": file.cells[line - 1][1]} if file.cells else {"line": line}

    found = [{"file": _printable(file.name), **line_of(file, one), "column": one.node.col_offset + 1, "rule": one.rule, "statement": _printable(_statement(one, file.lines)),  # type: ignore[attr-defined]
              "reason": _printable(one.reason), "fix": _printable(one.fix)} for file in files for one in file.findings]
    failed = [{"file": _printable(file.name), "reason": _printable(file.error)} for file in files if file.error]
    return json.dumps({"schema": SCHEMA, "files": len(files), "findings": found, "unread": failed}) + "\n"


def as_text(files: List[Read]) -> str:
    out: List[str] = []
    for file in files:
        for one in file.findings:
            place = file.place(one.node.lineno)  # type: ignore[attr-defined]
            out += [f"{place}: {_statement(one, file.lines)}", f"  why  {one.reason} ({one.rule})", f"  fix  {one.fix}", ""]
    count, number = sum(len(file.findings) for file in files), sum(not file.error for file in files)
    scanned = f"{number} file{'' if number == 1 else 's'}"
    if number:
        out.append(f"{count} finding{'' if count == 1 else 's'} in {scanned}; a comment `# vramtrack: ignore` on the line silences one" if count else f"nothing found in {scanned} that keeps GPU memory")
    return "".join(_printable(line) + "\n" for line in out)


def main(arguments: List[str], show: Callable[[str], None] = lambda words: None) -> int:
    """`show` is called with the progress, for each file, and with nothing before the first line is printed."""
    parser = argparse.ArgumentParser(prog="vramtrack check", description="Find the statements in Python programs that keep GPU memory, without running the programs.",
                                     epilog="Exit: 0 nothing found, 1 findings, 2 a file could not be read. docs/check.md lists the patterns.")
    parser.add_argument("files", metavar="FILE", nargs="+", help="Python files, notebooks (*.ipynb), and folders of them; - is standard input")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="print as: text (default), json")
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    options = parser.parse_args(arguments)
    paths = [(path, list(python_files(path))) for path in options.files]
    count = sum(len(below) for _, below in paths)
    files: List[Read] = []
    for path, below in paths:
        for one in below:
            show(f"{len(files)} of {count} files")
            files.append(read(one))
        if not below:
            files.append(Read(path, [], [], "no Python file (*.py, *.ipynb) in this folder"))
    show("")
    for file in files:
        if file.error:
            sys.stderr.write(_printable(f"vramtrack: check: {file.name}: {file.error}") + "\n")
    try:
        sys.stdout.write(as_json(files) if options.format == "json" else as_text(files))
        sys.stdout.flush()
    except BrokenPipeError:  # | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if any(file.error for file in files):
        return FAILED
    return FOUND if any(file.findings for file in files) else NOTHING_FOUND
