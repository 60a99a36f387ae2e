"""Programs that are restricted run as before while they are traced: harm.py BINARY KEEPER LIBRARY

They are those that `vramtrack run` cannot start, or that notice what is done to them. Each does the same without and with a tracer.
"""
import pathlib
import resource
import sys

from programs import Program, Traced, is_probed, line_of, main

BINARY, KEEPER, LIBRARY = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
del sys.argv[1:4]
MIB = 1 << 20


class Harm(Traced):
    binary = BINARY

    def outcome(self, command, restrict, trace, how):
        """What the program answers, and how it ends."""
        program = Program(*command, **how)
        self.addCleanup(program.process.kill)
        restrict(program.pid)
        tracer = self.attach("--pid", program.pid) if trace else None
        answers = [program.ask(each) for each in ("k10", "u10", "k5", "l", "d50", "k1", "g")]
        if tracer:
            self.assertTrue(is_probed(program, LIBRARY))
            program.do("k3")
            _, _, report = self.detach(tracer)
            self.assertEqual(self.live_bytes, 3 * MIB)
            self.assertEqual([frame["line"] for site in report["sites"] for frame in site["frames"][:1] if site["live_bytes"] == 3 * MIB],
                             [line_of("keeper.cpp", "allocate")])  # fmt: skip
        answers += [program.ask(each) for each in ("u3", "k2", "g")]  # and after the tracer has gone
        program.end()
        return answers, program.process.returncode

    def assert_runs_as_before(self, *command, restrict=lambda pid: None, **how):
        before = self.outcome(command, restrict, False, how)
        self.assertEqual(before[1], 0)
        self.assertEqual(set(before[0]), {"done"})
        self.assertEqual(self.outcome(command, restrict, True, how), before)

    def test_one_that_any_other_system_call_kills(self):
        self.assert_runs_as_before(KEEPER, "seccomp")

    def test_one_that_may_not_be_looked_into(self):
        """Nor by a debugger of its own user (PR_SET_DUMPABLE)."""
        self.assert_runs_as_before(KEEPER, "undumpable")

    def test_one_that_has_used_up_its_limits(self):
        def restrict(pid):
            limits = {
                resource.RLIMIT_AS: self.mapped_bytes(pid),  # what it has mapped already
                resource.RLIMIT_NOFILE: 3,
                resource.RLIMIT_NPROC: 1,
                resource.RLIMIT_MEMLOCK: 0,
                resource.RLIMIT_FSIZE: 0,
                resource.RLIMIT_CORE: 0,
            }
            for limit, value in limits.items():
                resource.prlimit(pid, limit, (value, value))

        self.assert_runs_as_before(KEEPER, restrict=restrict)

    def test_one_of_another_user_without_rights(self):
        program = self.start_for_all(KEEPER, LIBRARY, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--bounding-set=-all")
        _, _, report = self.traced(program, "k10", "u10", "g", "k3")
        self.assertEqual(self.live_bytes, 3 * MIB)
        program.do("k1")

    def test_one_with_the_address_sanitizer(self):
        keeper = KEEPER.with_name("traced_keeper_asan")
        if not keeper.exists():
            self.skipTest(f"{keeper.name} was not built")
        self.assert_runs_as_before(keeper)

    def mapped_bytes(self, pid):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmSize:"))


main(BINARY)
