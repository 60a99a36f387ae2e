"""`vramtrack trace live` on memory that no library was asked for: below.py BINARY KEEPER

The ioctls are those of a double of NVIDIA's kernel module (ioctl_keeper.c); its device file is /dev/null under another name, in a mount
namespace of the test's own.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from programs import Traced, main

BINARY, KEEPER = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
del sys.argv[1:3]
DEVICE = pathlib.Path("/dev/nvidiactl")


class Below(Traced):
    binary = BINARY

    def setUp(self):
        super().setUp()
        if DEVICE.exists():
            self.skipTest("this machine has NVIDIA's driver: its device file is not replaced")
        self.private = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /dev && exec "$@"']
        folder = tempfile.TemporaryDirectory()  # a separate /dev
        self.addCleanup(folder.cleanup)
        for name, minor in (("null", 3), ("zero", 5), ("nvidiactl", 3)):
            subprocess.run(["mknod", pathlib.Path(folder.name) / name, "c", "1", str(minor)], check=True)
        self.private.append(folder.name)

    def keeper(self):
        return self.start(*self.private, KEEPER, DEVICE)

    def below(self, program, *commands, options=("--nvidia-ioctls",)):
        """(MiB below, MiB held) by the line for the program; None: there is no line."""
        self.before = self.private
        tracer = self.attach("--pid", program.pid, *options)
        program.do("k1", *commands)
        _, out, _ = self.detach(tracer)
        found = re.search(rf"pid {program.pid}: ([\d.]+) MiB below the libraries: according to NVIDIA's ioctls, it holds ([\d.]+) MiB more", out)
        return found and tuple(map(float, found.groups()))

    def test_what_no_library_was_asked_for_is_below_them(self):
        self.assertEqual(self.below(self.keeper(), "h10", "r20", "k9"), (20, 30))  # of a MiB and nine
        said = subprocess.run([BINARY, "trace", "report", self.trace], capture_output=True, text=True, timeout=60).stdout
        self.assertIn("  20.0 MiB besides what is tracked, by the driver's figure", said, "the trace has it, too")

    def test_what_was_freed_is_not(self):
        program = self.keeper()
        program.do("h50")  # before anybody looks
        self.assertEqual(self.below(program, "f", "h10", "f", "r20", "f", "h7"), (6, 7))
        self.assertIsNone(self.below(program, "h10", "r20", "c"))

    def test_only_memory_of_the_device_that_the_driver_gave_counts(self):
        self.assertEqual(self.below(self.keeper(), "v100", "x100", "o100", "h8"), (7, 8))

    def test_is_off_unless_it_is_asked_for(self):
        self.assertIsNone(self.below(self.keeper(), "h10", options=()))

    def test_says_that_there_is_no_driver(self):
        done = subprocess.run([BINARY, "trace", "live", "--all", "--nvidia-ioctls", "--output", self.trace], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("the NVIDIA driver has no device file here (such as /dev/nvidiactl)", done.stderr)


main(BINARY)
