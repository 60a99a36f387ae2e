#!/usr/bin/env python3
"""Real programs of others under the probe, on pocl and lavapipe: pyopencl and wgpu from PyPI, in a virtual environment of
their own in build/apis.

    third_party.py [--build BUILD]

Exits with 77, and says why, where they are not available.
"""
import argparse
import hashlib
import os
import pathlib
import re
import subprocess
import sys

import running
from running import HERE, MIB, SKIPPED, Case

LANE = HERE.parents[2] / "build/apis"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
PROGRAMS = HERE / "programs"


def install():
    """None, or why not."""
    wanted = (HERE / "requirements.txt").read_bytes()
    state, marker = hashlib.sha256(wanted).hexdigest() + " " + sys.version.split()[0], LANE / "complete"
    if marker.exists() and marker.read_text() == state:
        return None
    LANE.mkdir(parents=True, exist_ok=True)
    marker.unlink(missing_ok=True)
    made = subprocess.run([PYTHON, "-m", "venv", "--clear", LANE / "venv"], capture_output=True, text=True)
    if made.returncode:
        return f"no virtual environment: {made.stderr or made.stdout}"
    done = subprocess.run([LANE / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
                           "--only-binary=:all:", "--require-hashes", "-r", HERE / "requirements.txt"], capture_output=True, text=True)
    if done.returncode:
        return "pyopencl and wgpu could not be installed: " + (done.stderr.strip().splitlines() or ["no output"])[-1]
    marker.write_text(state)
    return None


def program(name, what, probed=True, **options):
    command = [LANE / "venv/bin/python", PROGRAMS / name, what]
    if probed:
        return running.run(command, **options)
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


class ThirdParty(Case):
    def run_named(self, name, what, **options):
        outcome = program(name, what, **options)
        if outcome.status == SKIPPED:
            self.skipTest(outcome.output.strip())
        self.assertEqual(outcome.status, 0, outcome.output + outcome.errors)
        return outcome

    def function_of(self, outcome, record):
        """The first frame of the program's own code."""
        frames = outcome.ring.stacks[record.number]
        return next((frame.function for frame in frames if frame.python and pathlib.Path(frame.file).parent == PROGRAMS), None)

    def by_function(self, outcome, **wanted):
        """What is held at the end: function -> sizes."""
        held = {}
        for record in outcome.ring.live(**wanted).values():
            held.setdefault(self.function_of(outcome, record), []).append(record.bytes)
        return held


class PyOpenCL(ThirdParty):
    def test_each_buffer_and_its_release_is_seen_and_named(self):
        outcome = self.run_named("pyopencl_buffers.py", "buffers")
        self.assertEqual(self.by_function(outcome), {"leak": [3 * MIB] * 10, "buffers": [8 * MIB]}, "a sub-region holds its buffer")
        self.assertEqual(sorted(record.bytes for record in outcome.ring.of("alloc")),
                         sorted([MIB] * 10 + [3 * MIB] * 10 + [8 * MIB, 16 * MIB]))

    def test_a_pool_holds_what_it_says(self):
        outcome = self.run_named("pyopencl_buffers.py", "arrays")
        pool = int(re.search(r"pool (\d+)", outcome.output)[1])
        self.assertEqual(outcome.ring.live_bytes(), pool)

    def test_a_limit_is_its_memory_error_and_it_goes_on_after_a_release(self):
        outcome = self.run_named("pyopencl_buffers.py", "full", limit_bytes=10 * MIB)
        self.assertEqual(outcome.output.splitlines(), ["MemoryError -4", f"again {6 * MIB}", "live 0"])
        # pyopencl collects garbage and asks again before it gives up.
        self.assertEqual([record.bytes for record in outcome.ring.of("refused")], [6 * MIB] * 2)


class Wgpu(ThirdParty):
    def test_each_buffer_and_texture_is_a_block_and_named(self):
        outcome = self.run_named("wgpu_buffers.py", "buffers")
        held = self.by_function(outcome, level="block")
        self.assertEqual(held["leak"], [3 * MIB] * 10)
        self.assertEqual(held["buffers"], [MIB], "the texture")
        ended = [record.bytes for record in outcome.ring.of("free") if record.level == "block"]
        self.assertEqual((ended.count(MIB), ended.count(2 * MIB)), (10, 10), "destroyed, and dropped")
        # It takes its memory in large pieces: the blocks lie within.
        self.assertLess(outcome.ring.live_bytes(level="block"), outcome.ring.live_bytes())

    def test_a_limit_is_what_a_full_device_is_and_it_goes_on_after_a_release(self):
        limited = self.run_named("wgpu_buffers.py", "full", limit_bytes=700 * MIB)
        full = program("wgpu_buffers.py", "full_without_probe", probed=False)
        self.assertEqual(limited.output.splitlines(), full.stdout.splitlines())
        error, *rest = limited.output.splitlines()
        self.assertIn("Not enough memory left", error)
        self.assertEqual(rest, ["again True", "done"])
        self.assertEqual([record.bytes for record in limited.ring.of("refused")], [300 * MIB])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path)
    known, sys.argv[1:] = parser.parse_known_args()
    if known.build:
        os.environ["VRAMTRACK_BUILD"] = str(known.build.resolve())
    if reason := install():
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    running.main("pyopencl and wgpu")
