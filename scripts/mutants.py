#!/usr/bin/env python3
"""Applies each mutation of tests/mutations.txt to a copy of the sources and runs the test that must fail on it.

    scripts/mutants.py [--preset quick] [--jobs 2] [--only TEXT] [--changed] [FILE]

The copy is build/mutants/; the working tree is not changed. Exits with 1 if a mutation survives, does not compile or no longer
fits its file. The format is described at the top of tests/mutations.txt.
"""
import argparse
import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPY = ROOT / "build/mutants"
LONGEST_TEST_S = 120  # a mutant that never ends is killed, too


@dataclasses.dataclass
class Mutation:
    line: int
    path: str = ""
    anchor: str = ""
    before: str = ""
    after: str = ""
    program: str = ""
    test_filter: str = ""

    def __str__(self):
        return f"{self.path}: {self.before.strip()} -> {self.after.strip() or 'nothing'}"

    def applied_to(self, text):
        """The mutated text. The line after the anchor that contains `before` is changed; without an anchor, it must be the only such line."""
        start = 0
        if self.anchor:
            if text.count(self.anchor) != 1:
                raise ValueError(f"'{self.anchor}' occurs {text.count(self.anchor)} times")
            start = text.index(self.anchor)
        elif text.count(self.before) != 1:
            raise ValueError(f"'{self.before}' occurs {text.count(self.before)} times")
        at = text.find(self.before, start)
        if at < 0:
            raise ValueError(f"'{self.before}' does not occur after '{self.anchor}'")
        return text[:at] + self.after + text[at + len(self.before):]


def read_mutations(path):
    out = []
    current = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("#"):
            continue
        if not line.strip():
            current = None
            continue
        if current is None:
            current = Mutation(number, path=line.strip())
            out.append(current)
        elif line.startswith("@ "):
            current.anchor = line[2:]
        elif line.startswith("- "):
            current.before = line[2:]
        elif line.startswith("+"):
            current.after = line[2:]
        else:
            current.program, _, current.test_filter = line.strip().partition(" ")
    for m in out:
        if not (m.path and m.before and m.program and m.test_filter):
            sys.exit(f"{path}:{m.line}: expected a file, '- ' what is there, '+ ' what becomes of it, a test program and a filter")
    return out


def changed_files():
    done = subprocess.run([ROOT / "scripts/changed.sh", "--or-recent"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip() + "; leave out --changed")
    return set(done.stdout.splitlines())


def copy_sources():
    """Writes only the files that differ, so that a later run builds little."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\0")
    names = {n for n in names if n and (ROOT / n).is_file()}
    for name in names:
        target = COPY / name
        if target.is_file() and target.read_bytes() == (ROOT / name).read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    for folder in ("src", "tests"):
        for file in (COPY / folder).rglob("*"):
            if file.is_file() and str(file.relative_to(COPY)) not in names:
                file.unlink()


def quiet(command, **kwargs):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **kwargs)


class Build:
    def __init__(self, preset, jobs):
        self.folder = COPY / "build" / preset
        self.jobs = jobs
        options = ["-DVRAMTRACK_TESTS=ON", "-DVRAMTRACK_PAGE=OFF", "-DVRAMTRACK_PYTHON=OFF", f"-DVRAMTRACK_TESTS_SOURCE={ROOT}"]
        built = ROOT / "build" / preset
        if (built / "fake_nvml").is_dir():
            options.append(f"-DVRAMTRACK_TESTS_BUILD={built}")
        done = quiet(["cmake", "--preset", preset, *options], cwd=COPY)
        if done.returncode:
            sys.exit(done.stdout)

    def compile(self, programs):
        return quiet(["cmake", "--build", self.folder, "-j", str(self.jobs), "--target", *programs])

    def run(self, program, test_filter):
        """Returns (whether all passed, how many ran)."""
        try:
            done = quiet([self.folder / program, f"--gtest_filter={test_filter}"], timeout=LONGEST_TEST_S)
        except subprocess.TimeoutExpired:
            return False, 1
        ran = re.search(r"^\[==========\] (\d+) tests? from", done.stdout, re.MULTILINE)
        return done.returncode == 0, int(ran[1]) if ran else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="quick", help="how to build (default: quick, without optimization)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="only mutations whose file or change has this text")
    parser.add_argument("--changed", action="store_true", help="only mutations of files that have changed")
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=ROOT / "tests/mutations.txt")
    args = parser.parse_args()

    mutations = [m for m in read_mutations(args.file) if args.only in str(m)]
    if not mutations:
        sys.exit(f"no mutation has '{args.only}'")
    if args.changed:
        changed = changed_files()
        mutations = [m for m in mutations if m.path in changed]
        if not mutations:
            print("mutants: none of the changed files has a mutation")
            return 0
    copy_sources()
    build = Build(args.preset, args.jobs)
    done = build.compile(sorted({m.program for m in mutations}))
    if done.returncode:
        sys.exit(done.stdout)
    troubles = []
    for program, test_filter in sorted({(m.program, m.test_filter) for m in mutations}):
        passed, ran = build.run(program, test_filter)
        if not passed or ran == 0:
            sys.exit(f"{program} --gtest_filter='{test_filter}' " + ("fails without a mutation" if ran else "runs no test"))

    for m in mutations:
        begun = time.monotonic()
        file = COPY / m.path
        original = file.read_text()
        try:
            file.write_text(m.applied_to(original))
            done = build.compile([m.program])
            if done.returncode:
                outcome = "does not compile"
                print("\n".join(line for line in done.stdout.splitlines() if "error:" in line))
            else:
                outcome = "SURVIVED" if build.run(m.program, m.test_filter)[0] else "killed"
        except (ValueError, OSError) as error:
            outcome = f"does not fit: {error}"
        finally:
            file.write_text(original)
        print(f"{outcome:8} {time.monotonic() - begun:5.1f} s  {m}", flush=True)
        if outcome != "killed":
            troubles.append(m)
    print(f"mutants: {len(mutations) - len(troubles)} of {len(mutations)} killed")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
