"""`vramtrack trace live` on programs in other roots, of other users, and that come and go: containers.py BINARY KEEPER LIBRARY

A container is made with unshare: a root, mounts and process numbers of its own, and a copy of the library with its own inode.
"""
import os
import pathlib
import random
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
        """The keeper in its own root, beside copies of its libraries; its process is numbered from 1 there."""
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
        for options in (("--all",), ("--pid", os.getpid())):  # and its children: of one that has ended nobody knows whose it was
            with self.subTest(options=options):
                tracer = self.attach(*options)
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
        """The first allocation right after it is seen too: the file is already probed, in another process."""
        stays = self.start(KEEPER)
        tracer = self.attach("--all")
        program = self.start("/usr/bin/python3", "-c", LATE, LIBRARY)
        program.do("k1")
        stays.do("k1")
        self.detach(tracer)
        self.assertEqual(self.held(program, stays), [1, 1])

    def start_in(self, group):
        """The keeper in a control group of this path, named as container engines and Slurm name theirs."""
        root = pathlib.Path("/sys/fs/cgroup")
        if not (root / "cgroup.procs").exists():
            root /= "cpu"  # version 1: a hierarchy for each controller
        made = [root / folder for folder in (group, *pathlib.Path(group).parents) if str(folder) != "." and not (root / folder).exists()]
        for folder in reversed(made):
            try:
                folder.mkdir()
            except OSError as error:
                self.skipTest(f"no control group can be made: {error}")
            self.addCleanup(lambda folder=folder: until(lambda: self.is_gone(folder), 5))
        program = self.start(KEEPER)
        (root / group / "cgroup.procs").write_text(str(program.pid))
        return program

    def is_gone(self, folder):
        try:
            folder.rmdir()
        except OSError:
            return not folder.exists() or any(each.is_dir() for each in folder.iterdir())  # another test's lie within
        return True

    def of_group(self, programs, *options):
        """What these hold of what each allocates while only those of a group are traced."""
        tracer = self.attach(*options)
        for number, program in enumerate(programs, 1):
            program.do(f"k{number}")
        self.detach(tracer)
        self.assertEqual(len(self.processes), len([held for held in self.held(*programs) if held is not None]))
        return self.held(*programs)

    def test_the_processes_of_a_container_are_traced_and_no_others(self):
        ids = ["".join(random.choices("0123456789abcdef", k=64)) for _ in range(2)]
        programs = [*(self.start_in(f"docker/{each}") for each in ids), self.start(KEEPER)]
        for options, held in ((("--container", ids[0][:12]), [1, None, None]), (("--container", ids[1]), [None, 2, None])):
            with self.subTest(options=options):
                self.assertEqual(self.of_group(programs, *options), held)

    def test_the_processes_of_a_job_are_traced_and_no_others(self):
        job = random.randrange(10**6, 10**9)
        steps = (f"job_{job}/step_0", f"job_{job}/step_1", f"job_{job}1/step_0")
        programs = [*(self.start_in(f"slurm/uid_1000/{each}") for each in steps), self.start(KEEPER)]
        for options, held in ((("--job", job), [1, 2, None, None]), (("--job", f"{job}.1"), [None, 2, None, None])):
            with self.subTest(options=options):
                self.assertEqual(self.of_group(programs, *options), held)


main(BINARY)
