"""Runs programs under the probe, as `vramtrack run` does, and reads their rings."""
import functools
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import ring  # noqa: E402

MIB = 1 << 20
SKIPPED = 77


def build_folder():
    """The one that ctest names, or the quick one."""
    return pathlib.Path(os.environ.get("VRAMTRACK_BUILD", HERE.parents[2] / "build/quick"))


def probe():
    """The library for machines with a CUDA driver holds the same hooks: VRAMTRACK_PROBE_NAME names it."""
    return build_folder() / "probe" / f"lib{os.environ.get('VRAMTRACK_PROBE_NAME', 'vramtrack_probe')}.so"


def manifest_folder():
    return build_folder() / "probe" / ("cuda" if probe().stem.endswith("_cuda") else "")


def environment(folder, **more):
    """What `vramtrack run` sets; docs/trace-apis.md."""
    return {**os.environ, "LD_PRELOAD": str(probe()), "VRAMTRACK_PROBE_DIR": str(folder), "OPENCL_LAYERS": str(probe()),
            "VRAMTRACK_PROBE_VULKAN": "1", "VK_INSTANCE_LAYERS": "VK_LAYER_VRAMTRACK_probe", "VK_ADD_LAYER_PATH": str(manifest_folder()),
            "LVP_POISON_MEMORY": "0", **more}


@functools.lru_cache
def symbols(program):
    """The program's functions: (first byte in the file, bytes, name)."""
    listed = subprocess.run(["nm", "-S", "--defined-only", program], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [(int(row[0], 16), int(row[1], 16), row[3]) for row in rows if len(row) == 4 and row[2] in "tT"]


class Outcome:
    def __init__(self, folder, done):
        self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr
        self.rings = ring.rings(folder)
        self.ring = max(self.rings, key=lambda one: len(one.of("alloc", "refused", "device")), default=None)

    def functions(self, record, program):
        """The program's own functions in the stack of a record, innermost first."""
        modules = [module for module in self.ring.of("module") if self.ring.texts[module.number] == str(pathlib.Path(program).resolve())]
        found = []
        for frame in self.ring.stacks.get(record.number, ()):
            for module in modules:
                # The return address is behind the call; what a linker lays out has its code at the same place in file and memory.
                at = (frame.address or 0) - 1 - module.address + module.a
                if 0 <= (frame.address or 0) - 1 - module.address < module.bytes:
                    found += [name for begin, size, name in symbols(program) if begin <= at < begin + size]
        return found

    def live_sizes(self, **wanted):
        return sorted(record.bytes for record in self.ring.live(**wanted).values())


def run(command, limit_bytes=None, env=(), timeout_s=120):
    with tempfile.TemporaryDirectory() as folder:
        variables = environment(folder, **dict(env))
        if limit_bytes is not None:
            variables["VRAMTRACK_PROBE_LIMIT_BYTES"] = str(limit_bytes)
        done = subprocess.run([str(part) for part in command], env={key: value for key, value in variables.items() if value is not None},
                              capture_output=True, text=True, timeout=timeout_s)
        return Outcome(folder, done)


class Case(unittest.TestCase):
    maxDiff = None

    def run_program(self, command, **options):
        outcome = run(command, **options)
        if outcome.status == SKIPPED:
            self.skipTest(outcome.output.strip())
        self.assertEqual(outcome.status, 0, outcome.output + outcome.errors)
        return outcome


def main(what):
    """Runs the tests; exits with 77, which ctest counts as skipped, when each of them was."""
    result = unittest.main(exit=False, verbosity=1).result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun and len(result.skipped) == result.testsRun:
        print(f"skipped: {what}: {result.skipped[0][1]}")
        sys.exit(SKIPPED)

