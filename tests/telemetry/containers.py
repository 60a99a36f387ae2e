"""`vramtrack trace live` on programs in other roots, of other users, and that come and go: containers.py BINARY KEEPER LIBRARY

A container is made with unshare: a root, mounts and process numbers of its own, and a copy of the library with an inode of its own.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from programs import Program, Traced, is_probed, line_of, main, until

BINARY, KEEPER, LIBRARY = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
del sys.argv[1:4]
MIB = 1 << 20
LATE = """
import ctypes, sys
print("ready", flush=True)
for line in sys.stdin:
    ctypes.CDLL(sys.argv[1]).cuMemAlloc_v2(ctypes.byref(ctypes.c_ulonglong()), ctypes.c_size_t(1 << 20))
    print("done", flush=True)
"""


class Containers(Traced):
    binary = BINARY

    def container(self, name, *before):
        """The keeper in a root of its own, beside copies of its libraries; its process is numbered from 1 there."""
        root = self.folder / name
        listed = subprocess.run(["ldd", KEEPER], capture_output=True, text=True, check=True).stdout
        for path in (str(KEEPER), *re.findall(r"(/\S+)", listed)):
            (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path[1:])
        root.chmod(0o755)
        self.folder.chmod(0o755)
        program = self.start("unshare", "--mount", "--pid", "--fork", "--kill-child", "chroot", root, *before, KEEPER)
        program.pid = int(pathlib.Path(f"/proc/{program.process.pid}/task/{program.process.pid}/children").read_text().split()[0])
        return program

    def held(self, *programs):
        """What each of these holds by the trace. Others on this machine may use GPU libraries, too."""
        return [next((process["live_bytes"] / MIB for process in self.processes if process["pid"] == program.pid), None) for program in programs]

    def test_each_root_has_a_library_of_its_own(self):
        one, other, plain = self.container("one"), self.container("other"), self.start(KEEPER)
        inodes = {os.stat(f"/proc/{pid}/root{LIBRARY}").st_ino for pid in (one.pid, other.pid, plain.pid)}
        self.assertEqual(len(inodes), 3)
        tracer = self.attach("--pid", f"{one.pid},{other.pid},{plain.pid}")
        for count, program in ((10, one), (20, other), (5, plain)):
            program.do(*[f"k{count}", f"u{count}"] * 20)
        code, text, report = self.detach(tracer)
        self.assertEqual(self.held(one, other, plain), [200, 400, 100])
        self.assertEqual(code, 1, text)
        self.assertRegex(text, rf"LEAK: \S*keeper\.cpp:{line_of('keeper.cpp', 'allocate')} ")

    def test_what_forks_and_execs_in_a_container_is_followed(self):
        program = self.container("one")
        tracer = self.attach("--pid", program.pid)
        program.do("k2", "f7", "x")
        program.do("k3")
        self.detach(tracer)
        self.assertEqual(self.live_bytes, 12 * MIB)  # with what the child held at its end
        self.assertEqual(sorted(process["events"] for process in self.processes), [5, 7])

    def test_a_process_of_another_user(self):
        program = self.start_for_all(KEEPER, LIBRARY, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        contained = self.container("one")
        tracer = self.attach("--user", "nobody")
        program.do("k4")
        contained.do("k8")  # root's
        self.detach(tracer)
        self.assertEqual(self.held(program, contained), [4, None])

    def test_a_container_that_starts_later_is_found(self):
        first = self.start(KEEPER)
        tracer = self.attach("--all")
        later = self.container("one")
        self.assertTrue(until(lambda: is_probed(later, LIBRARY)))
        later.do("k3")
        first.do("k1")
        self.detach(tracer)
        self.assertEqual(self.held(first, later), [1, 3])

    def test_programs_that_come_and_go(self):
        stays = self.start(KEEPER)
        tracer = self.attach("--all")
        pids = {stays.pid}
        for _ in range(60):
            program = Program(KEEPER)
            pids.add(program.pid)
            program.do("k1", "u1")
            program.end()
        stays.do("k2")
        self.detach(tracer, r"^$|^vramtrack: \d+ allocations or frees are not in the trace")
        unseen = sum(map(int, re.findall(r"\d+", self.warning)))  # of those that lived for a few milliseconds only
        ours = [process for process in self.processes if process["pid"] in pids]
        self.assertEqual(sum(process["events"] for process in ours) + unseen, 2 + 60 * 3, self.warning)
        self.assertLess(unseen, 60 * 3)  # how many a busy machine looks at in time is not for us to say
        self.assertLessEqual(len(ours), 61)  # each once

    def test_a_library_that_is_loaded_late_is_found_at_once(self):
        """The first allocation right after it is seen too: the file is probed already, in another process."""
        stays = self.start(KEEPER)
        tracer = self.attach("--all")
        program = self.start("/usr/bin/python3", "-c", LATE, LIBRARY)
        program.do("k1")
        stays.do("k1")
        self.detach(tracer)
        self.assertEqual(self.held(program, stays), [1, 1])


main(BINARY)
