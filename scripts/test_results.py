#!/usr/bin/env python3
"""Reports which tests of a run failed and which took longest.

  scripts/test_results.py failed RESULTS...      each failed test with the first lines that show why, in about 40 lines
  scripts/test_results.py longest RESULTS...     how many tests passed, and the ten longest with their times

RESULTS: the JUnit files of ctest (BUILD_DIR/tests.xml). The tests in a piece of a program (scripts/test_program.py) are reported by name.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree

MOST_LINES = 40
LONGEST = 10
BANNER = re.compile(r"Running main\(\)|Note: Google Test filter|^\[(=+|-+| RUN +)\]|^ *$|^-+$|^=+$|^Ran \d+ tests?")
TELLS = re.compile(r"Failure|FAIL|ERROR|Error|Traceback|Sanitizer|assert|Falsifiable|not ok|Timeout")
FAILED_IN_PIECE = re.compile(r"^FAILED (\S+) \((.*)\)$", re.MULTILINE)
PASSED_IN_PIECE = re.compile(r"^\S+, piece \d+ of \d+: (\d+) tests passed, (\d+) skipped in ", re.MULTILINE)
LONGEST_IN_PIECE = re.compile(r"^ *(\d+\.\d) s  (\S+)$", re.MULTILINE)


def cases(path):
    return list(xml.etree.ElementTree.parse(path).getroot().iter("testcase"))


def output(case):
    return case.findtext("system-out") or ""


def reason(text, lines):
    """The first `lines` lines of a test's output, from the first that reports an error."""
    told = [line.strip()[:200] for line in text.splitlines() if not BANNER.search(line.strip())]
    first = next((n for n, line in enumerate(told) if TELLS.search(line)), 0)
    return told[first:first + lines]


def failures(case):
    """(name, how it failed, its output) for each test in a failed case: those that a piece names, otherwise the case itself."""
    parts = FAILED_IN_PIECE.split(output(case))
    if len(parts) == 1:
        return [(case.get("name"), case.find("failure").get("message") or "failed", parts[0])]
    return list(zip(parts[1::3], parts[2::3], parts[3::3]))


def failed(paths):
    tests = [test for path in paths for case in cases(path) if case.find("failure") is not None for test in failures(case)]
    if not tests:
        return
    each = max(2, MOST_LINES // len(tests) - 1)
    for name, how, text in tests[:MOST_LINES // 3]:
        print(f"FAILED {name} ({how})")
        for line in reason(text, each):
            print("    " + line)
    if len(tests) > MOST_LINES // 3:
        print(f"... and {len(tests) - MOST_LINES // 3} more: " + " ".join(name for name, _, _ in tests[MOST_LINES // 3:])[:1000])


def longest(paths):
    taken = []
    for path in paths:
        build = pathlib.Path(path).parent.name
        passed = pieces = others = 0
        for case in cases(path):
            name = case.get("name")
            if told := PASSED_IN_PIECE.search(output(case)):
                pieces += 1
                passed += int(told[1])
                if inner := LONGEST_IN_PIECE.search(output(case)):
                    name += f" (of it {inner[1]} s {inner[2]})"
            elif case.find("failure") is None and case.find("skipped") is None:
                others += 1
            taken.append((float(case.get("time") or 0), build, name))
        print(f"{build}: {passed} tests passed in {pieces} pieces of programs, and {others} others")
    print(f"the {LONGEST} longest:")
    for seconds, build, name in sorted(taken, reverse=True)[:LONGEST]:
        print(f"{seconds:8.1f} s  {build}  {name}")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("failed", "longest"):
        sys.exit(__doc__)
    {"failed": failed, "longest": longest}[sys.argv[1]](sys.argv[2:])
