#!/usr/bin/env python3
"""PyTorch's reports to a profiler, in all forms, and opening libraries: reports.py CALLER RUNPATH PROBE...

test_probe.py of tests/torch has PyTorch itself; here each signature and each thing that an allocator may say is tried.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ring import rings  # noqa: E402

CALLER, RUNPATH, *PROBES = sys.argv[1:5]


def run(program, probe=None):
    """(standard output, ring or None)"""
    with tempfile.TemporaryDirectory() as folder:
        mine = {"LD_PRELOAD": probe, "VRAMTRACK_PROBE_DIR": folder} if probe else {}
        done = subprocess.run([program], env={**os.environ, **mine}, check=True, capture_output=True, text=True, timeout=60)
        assert done.stderr == "", done.stderr
        return done.stdout, next(iter(rings(folder)), None)


class Reports(unittest.TestCase):
    def test_the_real_function_gets_what_it_got(self):
        said, _ = run(CALLER)
        self.assertEqual(said.count("\n"), 13)
        for probe in PROBES:
            self.assertEqual(run(CALLER, probe)[0], said)

    def test_blocks_of_gpus_are_recorded_in_every_form(self):
        for probe in PROBES:
            _, ring = run(CALLER, probe)
            events = [(record.kind, record.call, record.device, record.address, record.bytes) for record in ring.of("alloc", "free")]
            self.assertEqual(events, [
                ("alloc", "torch_block", 0, 0x1000, 512), ("alloc", "torch_block", 1, 0x2000, 1024), ("alloc", "torch_block", 2, 0x3000, 2048),
                ("alloc", "torch_block", 0, 0x1000, 8192), ("free", "torch_block", 1, 0x2000, 1024)])  # fmt: skip
            self.assertEqual({record.level for record in ring.of("alloc")}, {"block"})

    def test_what_was_not_to_be_had_is_recorded(self):
        for probe in PROBES:
            failed = run(CALLER, probe)[1].of("failed")
            self.assertEqual([(record.call, record.bytes >> 20) for record in failed], [("torch_block", n) for n in (1, 2, 3)])

    def test_totals_are_told(self):
        for probe in PROBES:
            totals = {(record.device, record.address, record.bytes) for record in run(CALLER, probe)[1].of("totals")}
            self.assertLessEqual({(1, 1536, 4096), (2, 3584, 4096)}, totals)


class Opening(unittest.TestCase):
    def test_a_library_is_found_by_the_path_of_whoever_asks(self):
        for probe in (None, *PROBES):
            self.assertEqual(run(RUNPATH, probe), ("found\nno such thing\n", None))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
