"""A CUDA driver newer than the probe, under `vramtrack run`: newer.py BINARY PROBE PROGRAMS ARCHIVE

What the probe does not know is found by dlsym and by programs that are linked with it, and the hooks work on."""
import pathlib
import subprocess
import sys
import unittest

from under_run import BINARY, PROBE, PROGRAMS, UnderRun

NOT_SUPPORTED = 801  # what the stubs of the fake driver return
SPARES = 256


class Newer(UnderRun):
    def called(self, *names, **changes):
        """What each function returns that a program finds by dlsym; None: it finds none."""
        program = f"import ctypes; d = ctypes.CDLL('libcuda.so.1'); print([getattr(d, n)() if hasattr(d, n) else None for n in {names}])"
        done = self.run_program(sys.executable, "-c", program, **changes)
        self.assertEqual(done.returncode, 0, done.stderr)
        return eval(done.stdout.splitlines()[0]), done.stderr

    def test_a_function_that_the_probe_does_not_know_is_found_by_name(self):
        self.driver("cuNewThing", "cuNewThing_v2", "cuMemAllocOnMoon_ptsz")
        codes, said = self.called("cuNewThing", "cuNewThing_v2", "cuMemAllocOnMoon_ptsz", "cuNeverHeardOf")
        self.assertEqual(codes, [NOT_SUPPORTED] * 3 + [None])
        self.assertNotIn("does not know", said)

    def test_a_program_that_is_linked_with_it_starts(self):
        driver = self.driver("cuNewThing_v2")
        source, program = self.folder / "linked.c", self.folder / "linked"
        source.write_text("int cuNewThing_v2(void); int main(void) { return cuNewThing_v2() == 801 ? 42 : 1; }\n")
        subprocess.run(["gcc", source, driver, "-Wl,-z,now", "-o", program], check=True)
        done = self.run_program(program)
        self.assertEqual((done.returncode, done.stdout), (42, ""), done.stderr)

    def preloaded(self):
        """The library that is loaded first; others may be loaded behind it."""
        return self.run_program("/bin/sh", "-c", "echo $LD_PRELOAD").stdout.strip().split(":")[0]

    def test_the_hooks_work_on(self):
        self.driver("cuNewThing")
        loaded = self.preloaded()
        self.assertEqual(pathlib.Path(loaded).parents[2], self.cache, "a copy is used")
        manifest, = pathlib.Path(loaded).parent.glob("cuda/*.json")
        self.assertIn(pathlib.Path(loaded).name, manifest.read_text())
        with_new = self.run_program(PROGRAMS / "probe_cuda_linked", "plain")
        self.assertEqual(with_new.returncode, 0, with_new.stderr)
        report = self.trace("trace report")
        self.assertIn("::plain()", report.stdout, report.stderr)

    def test_processes_that_outlive_the_run_load_it_still(self):
        self.driver("cuNewThing")
        process = subprocess.Popen([BINARY, "run", "--quiet", "--probe", PROBE.parent, "--", "sh", "-c", "(read line; exec true) 3<&0 <&3 >&2 &"],
                                   env=self.environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertEqual(process.communicate("go on\n", timeout=60)[1], "", "the loader found it")

    def test_where_no_copy_can_be_the_program_starts_and_it_is_said(self):
        self.driver("cuNewThing")
        self.cache, temporary = self.folder / "a blank", self.folder / "a:colon"
        temporary.mkdir()
        codes, said = self.called("cuNewThing", TMPDIR=str(temporary), XDG_CACHE_HOME=str(self.cache))
        self.assertEqual(codes, [None])
        self.assertIn("does not know (cuNewThing), and no folder can hold a copy of the probe that has them", said)
        self.assertIn("a space, a colon or '$'", said)

    def test_a_driver_without_its_sections_is_said(self):
        driver = self.driver()
        data = bytearray(driver.read_bytes())
        data[0x28:0x30], data[0x3C:0x40] = bytes(8), bytes(4)  # the loader does without; e_shoff, e_shnum and e_shstrndx
        driver.write_bytes(data)
        done = self.run_program("true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("functions that are new in this CUDA driver may not be found by name", done.stderr)

    def test_a_run_within_a_run(self):
        for names in ((), ("cuNewThing",)):
            self.driver(*names)
            inner = [BINARY, "run", "--probe", PROBE.parent, "--output", self.folder / "inner", "--", PROGRAMS / "probe_cuda_linked", "plain"]
            done = self.run_program(*inner)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = subprocess.run([BINARY, "trace", "report", self.folder / "inner"], capture_output=True, text=True, timeout=60)
            self.assertIn("::plain()", report.stdout, report.stderr)

    def test_more_than_there_is_room_for_is_said(self):
        names = [f"cuNew{number}" for number in range(SPARES + 3)]
        self.driver(*names)
        codes, said = self.called(*names)
        self.assertEqual((codes.count(NOT_SUPPORTED), codes.count(None)), (SPARES, 3))
        self.assertIn("exports 3 functions that this version of vramtrack does not know", said)

    def test_a_name_that_is_too_long_is_said(self):
        long = "cuThe" + "VeryLong" * 12 + "Name"
        self.driver("cuNewThing", long)
        codes, said = self.called("cuNewThing", long)
        self.assertEqual(codes, [NOT_SUPPORTED, None])
        self.assertIn(f"exports 1 function that this version of vramtrack does not know ({long})", said)

    def test_of_a_driver_that_it_knows_no_copy_is_made(self):
        self.driver()
        self.assertEqual(self.preloaded(), str(PROBE))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
