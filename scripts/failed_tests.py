#!/usr/bin/env python3
"""Prints each failed test with the first lines that say why.

  scripts/failed_tests.py RESULTS [LINES]      RESULTS: the JUnit file of ctest; LINES: at most so many in all (40)
"""
import re
import sys
import xml.etree.ElementTree

BANNER = re.compile(r"Running main\(\)|Note: Google Test filter|^\[(=+|-+| RUN +)\]|^$|^-+$|^=+$|^Ran \d+ tests?")
TELLS = re.compile(r"Failure|FAIL|ERROR|Error|Traceback|Sanitizer|assert|Falsifiable|not ok|Timeout")


def reason(output, lines):
    """The first `lines` lines of what a test printed, from where it says that something is wrong."""
    told = [line.rstrip()[:200] for line in output.splitlines() if not BANNER.search(line)]
    first = next((n for n, line in enumerate(told) if TELLS.search(line)), 0)
    return told[first:first + lines]


def main(path, most=40):
    failed = [case for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase") if case.find("failure") is not None]
    if not failed:
        return
    each = max(2, most // len(failed) - 1)
    for case in failed[:most // 3]:
        print(f"FAILED {case.get('name')} ({case.find('failure').get('message') or 'failed'})")
        for line in reason(case.findtext("system-out") or "", each):
            print("    " + line)
    if len(failed) > most // 3:
        print(f"... and {len(failed) - most // 3} more: " + " ".join(case.get("name") for case in failed[most // 3:])[:1000])


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
