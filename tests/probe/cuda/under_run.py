"""What tests of `vramtrack run` on a fake CUDA driver have in common: NAME.py BINARY PROBE PROGRAMS ARCHIVE"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY, PROBE, PROGRAMS, ARCHIVE = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
HERE = pathlib.Path(__file__).resolve().parent
NAMES = HERE.parents[2] / "src/probe/cuda/symbols.txt"


class UnderRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.cache = self.folder / "cache"

    def driver(self, *names):
        path = self.folder / "libcuda.so.1"
        subprocess.run([sys.executable, HERE / "link_driver.py", ARCHIVE, NAMES, path, *(f"+{name}" for name in names)], check=True)
        return path

    def environment(self):
        return {**os.environ, "LD_LIBRARY_PATH": str(self.folder), "XDG_RUNTIME_DIR": str(self.runtime), "XDG_CONFIG_HOME": str(self.folder),
                "XDG_CACHE_HOME": str(self.cache), "VRAMTRACK_FAKE_GPU_DEVICES": "2"}  # fmt: skip

    def run_program(self, *command, options=(), **changes):
        return subprocess.run([BINARY, "run", "--probe", PROBE.parent, "--output", self.folder / "trace", *options, "--", *map(str, command)],
                              env={**self.environment(), **changes}, capture_output=True, text=True, timeout=120)  # fmt: skip

    def trace(self, verb, *options):
        """What `vramtrack VERB` says of the trace."""
        return subprocess.run([BINARY, *verb.split(), *options, self.folder / "trace"], capture_output=True, text=True, timeout=60)
