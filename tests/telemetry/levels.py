"""`vramtrack trace live` on programs of HIP, OpenCL, Vulkan and Level Zero: levels.py BINARY FOLDER DOUBLE

`FOLDER`: of the programs; `DOUBLE`: of a double of Vulkan's loader. OpenCL runs on pocl and Vulkan on lavapipe, where they are installed.
"""
import os
import pathlib
import subprocess
import sys

from programs import Traced, is_probed_at, main, until

BINARY, FOLDER, DOUBLE = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
del sys.argv[1:4]
MIB = 1 << 20


class Levels(Traced):
    binary = BINARY

    def start_api(self, name, **environment):
        program = FOLDER / f"traced_{name}"
        if not program.exists():
            self.skipTest(f"{program.name} was not built: no library of it to link with (scripts/setup.sh devices)")
        return self.start(program, env={**os.environ, **environment})

    def opened(self, program):
        """Of a program that runs on whatever device there is."""
        if (answer := program.ask("o")) != "done":
            self.skipTest(answer)
        return program

    def held(self, report):
        """MiB by call and site."""
        return sorted((site["call"], site["live_bytes"] / MIB, site["live_count"]) for site in report["sites"] if site["live_bytes"])

    def assert_line(self, text, source):
        self.assertRegex(text, rf"LEAK: \S*{source}:\d+ ")

    def test_opencl_names_the_line(self):
        program = self.opened(self.start_api("opencl"))
        program.do("k20")  # before anybody looks
        code, text, report = self.traced(program, *["k10", "u10"] * 20, "l")
        self.assertEqual(code, 1, text)
        self.assert_line(text, "opencl_keeper.c")
        self.assertEqual(self.held(report), [("clCreateBuffer", 200, 200)])

    def test_opencl_memory_lives_as_long_as_its_last_owner(self):
        program = self.opened(self.start_api("opencl"))
        self.traced(program, "r")
        self.assertEqual(self.live_bytes, 6 * MIB)

    def test_each_kind_of_opencl(self):
        program = self.opened(self.start_api("opencl"))
        _, _, report = self.traced(program, "a")
        self.assertEqual(self.held(report), [("clCreateBuffer", 3, 1), ("clCreateBuffer (host)", 1, 1), ("clCreateImage", 2, 1), ("clSVMAlloc", 7, 1)])

    def test_what_one_call_frees_beyond_what_is_followed_is_counted_as_lost(self):
        program = self.opened(self.start_api("opencl"))
        tracer = self.attach("--pid", program.process.pid)
        program.do("m")
        _, _, report = self.detach(tracer, r"vramtrack: 4 allocations or frees came too fast, or too many in one call, and were lost")
        self.assertEqual(self.held(report), [("clSVMAlloc", 4, 4)])

    def test_vulkan_through_the_loader(self):
        program = self.opened(self.start_api("vulkan"))
        code, text, report = self.traced(program, *["k10", "u10"] * 20)
        self.assertEqual(code, 1, text)
        self.assert_line(text, "vulkan_keeper.c")
        self.assertEqual(self.held(report), [("vkAllocateMemory", 200, 200)])

    def test_vulkan_functions_that_a_program_looks_up(self):
        """They are the driver's, which has no names for them."""
        program = self.opened(self.start_api("vulkan"))
        tracer = self.attach("--pid", program.process.pid)
        functions = [int(each, 16) for each in program.ask("f").split()]
        self.assertEqual(program.process.stdout.readline(), "done\n")
        self.assertTrue(until(lambda: all(is_probed_at(program, each) for each in functions)))
        program.do(*["d10", "e10"] * 20)
        code, text, report = self.detach(tracer)
        self.assertEqual(code, 1, text)
        self.assert_line(text, "vulkan_keeper.c")
        self.assertEqual(self.held(report), [("vkAllocateMemory", 200, 200)])

    def test_vulkan_memory_of_the_host(self):
        program = self.start_api("vulkan", LD_LIBRARY_PATH=str(DOUBLE))
        _, _, report = self.traced(program, "o", "k2", "h3", "u1")
        self.assertEqual(self.held(report), [("vkAllocateMemory", 2, 2), ("vkAllocateMemory (host)", 3, 3)])

    def test_hip(self):
        program = self.start_api("hip")
        code, text, report = self.traced(program, *["k10", "u10"] * 20)
        self.assertEqual(code, 1, text)
        self.assert_line(text, "hip_keeper.c")
        self.assertEqual(self.held(report), [("hipMalloc", 200, 200)])
        _, _, report = self.traced(program, "a")
        self.assertEqual(self.held(report), [("hipHostMalloc", 2, 1), ("hipMalloc", 3, 1)])
        rows = subprocess.run([BINARY, "trace", "export", "--format", "csv", self.trace], capture_output=True, text=True, timeout=60).stdout
        self.assertRegex(rows, rf"(?m)^1,\d+,\d+,alloc,\d+,{3 * MIB},")

    def test_hips_other_functions_and_its_reset(self):
        program = self.start_api("hip")
        _, _, report = self.traced(program, "m")
        self.assertEqual(self.held(report), [("hipHostMalloc", 4, 1), ("hipMalloc", 1, 1), ("hipMallocAsync", 2, 1)])
        program = self.start_api("hip")
        _, _, report = self.traced(program, "k3", "m", "r1")
        self.assertEqual(self.held(report), [("hipHostMalloc", 4, 1), ("hipMalloc", 3, 3)])  # of device 0, and the host's

    def test_hips_physical_memory_lives_as_long_as_it_is_mapped(self):
        program = self.start_api("hip")
        _, _, report = self.traced(program, "p")
        self.assertEqual(self.held(report), [("hipMemCreate", 1, 1)])

    def test_level_zero(self):
        program = self.start_api("level_zero")
        code, text, report = self.traced(program, *["k10", "u10"] * 20)
        self.assertEqual(code, 1, text)
        self.assert_line(text, "level_zero_keeper.c")
        self.assertEqual(self.held(report), [("zeMemAllocDevice", 200, 200)])
        program = self.start_api("level_zero")
        _, _, report = self.traced(program, "a")
        self.assertEqual(self.held(report), [("zeMemAllocDevice", 1, 1), ("zeMemAllocHost", 4, 1), ("zeMemAllocShared", 2, 1)])


main(BINARY)
