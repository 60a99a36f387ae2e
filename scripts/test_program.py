#!/usr/bin/env python3
"""Runs a piece of a GoogleTest program in one process and, if that fails, reruns the tests that did not pass, each in a process of its own.

  scripts/test_program.py PROGRAM [--piece 2/4] [--filter PATTERN] [--limit SECONDS]

--piece    which piece of how many: 2/4 is every fourth test from the second one on (default: 1/1, all of them)
--filter   the tests to run, as in GoogleTest's --gtest_filter
--limit    seconds after which a test that has not ended counts as hung (default: 900)

Prints how many tests passed and which took longest. After a failure it prints, for each test that did not pass, FAILED with its name and
its output when run alone; for a test that then passes, it prints its output among the others. Exits with 1: a test that passes only when
run alone depends on those before it, or fails now and then.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

MOST_LINES = 40  # of a failed test's output
ENDED = re.compile(r"\[ {7}OK \] (\S+?),? .*?\((\d+) ms\)|\[  SKIPPED \] (\S+?),? .*?\((\d+) ms\)")
BEGUN = re.compile(r"\[ RUN {6}\] (\S+)")
BEGUN_OR_ENDED = re.compile(r"\[ (?:RUN     |      OK| SKIPPED| FAILED ) \] ")


class Run:
    """One run of the program, from start to end."""

    def __init__(self, program, limit_s, environment):
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen([program, "--gtest_color=no"], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                       env={**os.environ, **environment}, start_new_session=True)
            self.hung = not self._wait(process, output, limit_s)
            output.seek(0)
            self.text = output.read().decode(errors="replace")
        self.status = process.returncode
        ended = [(ok or skipped, int(ok_ms or skipped_ms)) for ok, ok_ms, skipped, skipped_ms in ENDED.findall(self.text)]
        self.milliseconds = dict(ended)
        self.skipped = len(re.findall(r"^\[  SKIPPED \] \S+ \(", self.text, re.MULTILINE))
        # A test that calls exit(0) ends the other tests, too.
        self.complete = re.search(r"^\[=+\] \d+ tests? from \d+ test suites? ran\.", self.text, re.MULTILINE) is not None
        self.passed = self.status == 0 and self.complete

    @staticmethod
    def _wait(process, output, limit_s):
        """Returns False if a test did not end within `limit_s`. The program and its children are ended, even if this script is ended."""
        read, since = 0, time.monotonic()
        try:
            while time.monotonic() - since <= limit_s:
                try:
                    process.wait(timeout=min(1, limit_s))
                    return True
                except subprocess.TimeoutExpired:
                    length = os.fstat(output.fileno()).st_size
                    if BEGUN_OR_ENDED.search(os.pread(output.fileno(), length - read, read).decode(errors="replace")):
                        since = time.monotonic()
                    read = length
            return False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def said_of(self, name):
        """The output printed while the test ran."""
        begin = self.text.rfind(f"[ RUN      ] {name}\n")
        if begin < 0:
            return ""
        after = BEGUN.search(self.text, begin + 1)
        return self.text[begin:after.start() if after else len(self.text)]

    def why(self):
        if self.hung:
            return "a test did not end in time"
        if self.status < 0:
            return f"ended by {signal.Signals(-self.status).name}"
        if not self.complete:
            return f"a test ended the program with exit status {self.status}"
        return f"exit status {self.status}"


def names_of(program, pattern):
    """The tests that would run, in GoogleTest's order."""
    done = subprocess.run([program, "--gtest_list_tests"], env={**os.environ, "GTEST_FILTER": pattern}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"test_program: {program} --gtest_list_tests failed ({done.returncode}): {done.stderr.strip()[:500]}")
    suite, names = "", []
    for line in done.stdout.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith("  ") and suite:
            names.append(suite + word)
        elif word.endswith("."):
            suite = word
    return [name for name in names if not re.search(r"(^|/|\.)DISABLED_", name)]


def told(text):
    lines = [line.rstrip()[:300] for line in text.splitlines() if line.strip() and not re.match(r"\[=+\]|\[-+\]|Note: ", line)]
    return "\n".join("    " + line for line in lines[:MOST_LINES])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--piece", default="1/1")
    parser.add_argument("--filter", default="*")
    parser.add_argument("--limit", type=float, default=900)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    place, count = map(int, args.piece.split("/"))
    program = args.program.resolve()
    if not program.is_file():
        sys.exit(f"test_program: there is no program {program}; build it: cmake --build {program.parent} --target {program.name}")

    begun = time.monotonic()
    whole = Run(program, args.limit, {"GTEST_FILTER": args.filter, "GTEST_TOTAL_SHARDS": str(count), "GTEST_SHARD_INDEX": str(place - 1)})
    piece = f"{program.name}, piece {place} of {count}"
    if whole.passed:
        longest = sorted(whole.milliseconds.items(), key=lambda test: -test[1])[:3]
        print(f"{piece}: {len(whole.milliseconds) - whole.skipped} tests passed, {whole.skipped} skipped in {time.monotonic() - begun:.1f} s")
        for name, ms in longest:
            print(f"{ms / 1000:8.1f} s  {name}")
        return 0

    mine = names_of(program, args.filter)[place - 1::count]
    wrong = [name for name in mine if name not in whole.milliseconds]
    print(f"{piece}: {whole.why()}; {len(wrong)} of {len(mine)} tests did not pass and are run again, each by itself")
    failed = 0
    # Each test passed but the program failed: something at its end, such as a leak.
    for name in wrong or mine:
        alone = Run(program, args.limit, {"GTEST_FILTER": name})
        if not alone.passed:
            print(f"FAILED {name} ({alone.why()})\n{told(alone.said_of(name) if alone.complete else alone.text)}", flush=True)
            failed += 1
        elif said := whole.said_of(name):
            print(f"FAILED {name} (passes by itself: it depends on the tests before it, or fails now and then)\n{told(said)}", flush=True)
            failed += 1
    if not failed:
        print(f"FAILED {program.name} (each test passes by itself)\n{told(whole.text[-4000:])}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
