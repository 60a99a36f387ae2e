#!/usr/bin/env python3
"""Builds and runs the unit tests of the files that differ from the main branch, and of the modules that depend on them directly.

  scripts/quick.py BUILD_DIR [--jobs N] [--changed FILE]... [--plan]

--changed   files to use instead of those of scripts/changed.sh
--plan      print what would be built and run, then stop

A module is a folder of src/; CMake records which others link it (BUILD_DIR/modules.txt). For the page, its types and functions are
tested; for the Python package, the files of python/tests that name the changed module, or one that imports it.
It lists what it omits: `make test` runs everything.
"""
import argparse
import collections
import dataclasses
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNTESTED = re.compile(r"^(docs|contrib|LICENSE|VERSION|\.github|CHANGELOG|README|CONTRIBUTING)")  # no unit test reads these


@dataclasses.dataclass
class Modules:
    folders: dict   # from a folder of src/ to its module
    dependents: dict  # from a module to those that link it
    programs: dict  # from a folder of tests/unit/ to (the test program, the name of its tests)
    others: dict    # page and python, if they are built: their targets


def read_modules(path):
    """Reads modules.txt: lines "module NAME FOLDER WHAT-IT-LINKS...", "tests FOLDER PROGRAM NAME" and "other FOLDER TARGET"."""
    modules = Modules({}, collections.defaultdict(set), {}, {})
    for kind, *words in map(str.split, path.read_text().splitlines()):
        if kind == "module":
            name, folder, *links = words
            modules.folders[folder] = name
            for link in links:
                modules.dependents[link].add(name)
        elif kind == "tests":
            folder, program, name = words
            modules.programs[folder] = (program, name)
        else:
            folder, target = words
            modules.others[folder] = target
    return modules


def python_names():
    """For each module of the package: the names that tests and other modules use for it, and the modules that import it."""
    package = ROOT / "python/vramtrack"
    exported = (package / "__init__.py").read_text()
    names, importers = {}, collections.defaultdict(set)
    for file in package.glob("*.py"):
        listed = re.search(rf"^from vramtrack\.{file.stem} import (\([^)]*\)|.*)$", exported, re.MULTILINE)
        names[file.stem] = {file.stem, *re.findall(r"\w+", listed[1] if listed else "")}
        for imported in re.findall(r"vramtrack\.(\w+)", file.read_text()):
            if file.stem != "__init__":
                importers[imported].add(file.stem)
    return names, importers


def python_tests(changed):
    """The names of the tests (python/tests/test_NAME.py) for changed files of python/."""
    tests = {path.stem.removeprefix("test_"): path.read_text() for path in (ROOT / "python/tests").glob("test_*.py")}
    names, importers = python_names()
    chosen = {pathlib.PurePath(path).stem.removeprefix("test_") for path in changed if path.startswith("python/tests/")} & set(tests)
    stems = {pathlib.PurePath(path).stem for path in changed if not path.startswith("python/tests/")}
    for stem in stems | {importer for stem in stems for importer in importers[stem]}:
        told = re.compile(rf"\b(?:vramtrack\.|import (?:\w+, )*)(?:{'|'.join(sorted(names.get(stem, {stem})))})\b")
        chosen |= {name for name, text in tests.items() if name == stem or told.search(text)}
    return sorted(chosen)


@dataclasses.dataclass
class Plan:
    modules: list
    targets: list
    tests: list  # names of tests in ctest
    left_out: list


def plan_for(changed, modules):
    touched, folders, page, python, left_out = set(), set(), False, [], []
    for path in changed:
        parts = pathlib.PurePath(path).parts
        within = ["/".join(parts[1:end]) for end in range(len(parts) - 1, 1, -1)]  # the file's folders, the longest first
        if parts[0] == "src" and (folder := next((f for f in within if f in modules.folders), None)):
            touched.add(modules.folders[folder])
        elif parts[:2] == ("tests", "unit") and len(parts) > 3 and parts[2] in modules.programs:
            folders.add(parts[2])
        elif parts[0] == "page" and "page" in modules.others:
            page = True
        elif parts[0] == "python" and "python" in modules.others and path.endswith((".py", ".pyi", ".cpp", ".hpp")):
            python.append(path)
        elif not UNTESTED.match(path):
            left_out.append(path)
    with_dependents = touched | {name for module in touched for name in modules.dependents[module]}
    folders |= with_dependents & set(modules.programs)
    targets = [modules.programs[folder][0] for folder in sorted(folders)]
    tests = [rf"{modules.programs[folder][1]}\.[0-9]+" for folder in sorted(folders)]
    if page:
        targets.append(modules.others["page"])
        tests += ["dashboard_types", "dashboard_unit"]
    if python:
        targets.append(modules.others["python"])
        tests += [rf"python\.{name}" for name in python_tests(python)]
    return Plan(sorted(with_dependents), targets, [test.replace("unit.", r"unit\.") for test in tests], left_out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--changed", action="append")
    parser.add_argument("--plan", action="store_true")
    args = parser.parse_args()
    changed = args.changed
    if changed is None:
        done = subprocess.run([ROOT / "scripts/changed.sh"], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            return 1
        changed = sorted(set(done.stdout.splitlines()))
    plan = plan_for(changed, read_modules(args.build / "modules.txt"))
    print(f"quick: {len(changed)} file{'s differ' if len(changed) != 1 else ' differs'} from the main branch" +
          (f"; modules: {' '.join(plan.modules)}" if plan.modules else ""))
    if plan.left_out:
        print(f"quick: not tested: {' '.join(plan.left_out[:8])}{f' and {len(plan.left_out) - 8} more' if len(plan.left_out) > 8 else ''}; "
              "make test runs every test")
    if not plan.targets:
        print("quick: no unit test to run")
        return 0
    if args.plan:
        print(f"build: {' '.join(plan.targets)}\nrun: {' '.join(plan.tests)}")
        return 0
    sys.stdout.flush()
    done = subprocess.run([ROOT / "scripts/compile.sh", args.build, "-j", str(args.jobs), "--target", *plan.targets], cwd=ROOT)
    if done.returncode:
        return done.returncode
    # The tests of single files in the Python package are run only here: in ctest they belong to the configuration "quick".
    return subprocess.run([ROOT / "scripts/run_tests.sh", args.build, "-C", "quick", "-j", str(args.jobs + 1), "--no-tests=error",
                           "-R", f"^({'|'.join(plan.tests)})$"], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
