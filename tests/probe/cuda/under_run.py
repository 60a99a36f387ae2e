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

    def words(self, command, options):
        return [str(word) for word in (BINARY, "run", "--probe", PROBE.parent, "--output", self.folder / "trace", *options, "--", *command)]

    def run_program(self, *command, options=(), before=(), **changes):
        """`before`: a program and its arguments that run `vramtrack run`."""
        return subprocess.run([*before, *self.words(command, options)], env={**self.environment(), **changes}, capture_output=True, text=True,
                              timeout=120)  # fmt: skip

    def start_program(self, *command, options=()):
        process = subprocess.Popen(self.words(command, options), env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)  # fmt: skip

        def end():
            process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def trace(self, verb, *options):
        """What `vramtrack VERB` says of the trace."""
        return subprocess.run([BINARY, *verb.split(), *options, self.folder / "trace"], capture_output=True, text=True, timeout=60)
