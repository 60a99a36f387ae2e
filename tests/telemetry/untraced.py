#!/usr/bin/env python3
"""A build without the tracer states the reason wherever it is asked for, and the unit of systemd grants what the tracer needs and no more.

    untraced.py PROGRAM

PROGRAM is vramtrack as it is built where clang is missing.
"""
import configparser
import pathlib
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)
ROOT = pathlib.Path(__file__).resolve().parents[2]
REASON = "it was built without clang"


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


class Untraced(unittest.TestCase):
    def test_doctor_states_why(self):
        shown = run("doctor").stdout
        self.assertIn(f"this build cannot trace programs that are already running: {REASON}", " ".join(shown.split()))

    def test_trace_live_states_why(self):
        done = run("trace", "live", "--pid", "1", "--seconds", "1s")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(REASON, done.stderr)


class Unit(unittest.TestCase):
    def test_it_grants_what_the_tracer_needs(self):
        unit = configparser.ConfigParser(strict=True, interpolation=None)
        unit.optionxform = str
        unit.read_string((ROOT / "contrib/systemd/telemetry.conf").read_text(encoding="utf-8"))
        self.assertEqual(unit.sections(), ["Service"])
        self.assertEqual(dict(unit["Service"]), {"Environment": "VRAMTRACK_TELEMETRY_ENABLED=true", "AmbientCapabilities": "CAP_BPF CAP_PERFMON",
                                                 "CapabilityBoundingSet": "CAP_BPF CAP_PERFMON", "SystemCallFilter": "bpf perf_event_open", "MemoryMax": "1G"})


if __name__ == "__main__":
    unittest.main()
