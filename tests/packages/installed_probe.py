#!/usr/bin/env python3
"""The probe is in what is installed: `vramtrack run` of an installation, and of the .deb, finds it and names the line that leaks.

    installed_probe.py BUILD      a build with the target `product`
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1]).resolve()
CACHE = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M))
CMAKE = pathlib.Path(CACHE["CMAKE_COMMAND"])
NAMED_LINE = HERE / "named_line.sh"


def done(*command, **options):
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", timeout=600, **options)
    if ran.returncode != 0:
        raise AssertionError(f"{command[0]}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        done(NAMED_LINE, "make", cls.folder / "leaking")

    def check(self, prefix):
        """A line is named by what lies below `prefix`, and by nothing of the build."""
        library = prefix / "lib/vramtrack"
        probes = {"libvramtrack_probe.so", "libvramtrack_probe_cuda.so"}
        self.assertLessEqual(probes, {path.name for path in library.iterdir()})
        manifests = {str(path.relative_to(library)): path for path in library.rglob("*.json")}
        if manifests:  # built with Vulkan's headers
            self.assertEqual(set(manifests), {"VkLayer_vramtrack_probe.json", "cuda/VkLayer_vramtrack_probe.json"})
        for manifest in manifests.values():
            named, = re.findall(r'"library_path": "(.*)"', manifest.read_text())
            self.assertTrue((manifest.parent / named).resolve().is_file(), f"{manifest} names {named}")
        for probe in probes:
            dynamic = done("readelf", "-d", library / probe)
            self.assertNotIn(str(BUILD), dynamic, "a path of the build is in it")
            self.assertLessEqual({name.partition(".so")[0] for name in re.findall(r"NEEDED.*\[(.*)\]", dynamic)},
                                 {"libc", "ld-linux-x86-64", "ld-linux-aarch64"})  # fmt: skip
        self.assertRegex(done(NAMED_LINE, "run", self.folder / "leaking", prefix / "bin/vramtrack"), r"LEAK at .*leak\.c:\d+ decode_frame")

    def test_an_installation(self):
        prefix = self.folder / "a prefix"  # a blank, which LD_PRELOAD cannot hold
        done(CMAKE, "--install", BUILD, "--prefix", prefix)
        self.check(prefix)

    def test_the_deb(self):
        if not shutil.which("dpkg-shlibdeps") or not shutil.which("dpkg-deb"):
            self.skipTest("dpkg-shlibdeps and dpkg-deb are needed (dpkg-dev)")
        if CACHE.get("VRAMTRACK_SANITIZE"):
            self.skipTest("a sanitized build is no package")
        packed = self.folder / "packed"
        done(CMAKE.with_name("cpack"), "-G", "DEB", "-B", packed, "--config", BUILD / "CPackConfig.cmake", cwd=BUILD)
        package, = packed.glob("*.deb")
        root = self.folder / "root"
        done("dpkg-deb", "-x", package, root)
        self.check(root / "usr")
        depends = re.split(r",\s*", done("dpkg-deb", "-f", package, "Depends").strip())
        if CACHE.get("VRAMTRACK_SYMBOLS", "ON") == "ON":
            # Without it a frame would be an offset in its module.
            self.assertTrue(any(re.match(r"libdw1(t64)?( |$)", one) for one in depends), depends)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
