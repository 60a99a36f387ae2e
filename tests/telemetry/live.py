"""`vramtrack trace live` on programs that are already running: live.py BINARY KEEPER LIBRARY

Needs the right to load BPF programs (root); is skipped without it, with the reason.
"""
import contextlib
import csv
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys

from programs import Program, Traced, is_probed, line_of, main, pythons, stays_probed, until

BINARY, KEEPER, LIBRARY = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
del sys.argv[1:4]
HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20


class Live(Traced):
    binary = BINARY

    def test_names_the_line_that_keeps_and_counts_each_byte(self):
        program = self.start(KEEPER)
        program.do("k100", "u10")  # before anybody looks
        code, text, report = self.traced(program, *["k10", "u10"] * 30)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, rf"LEAK: \S*keeper\.cpp:{line_of('keeper.cpp', 'allocate')} .*allocate")
        site = report["sites"][0]
        self.assertEqual((site["live_bytes"], site["live_count"]), (300 * MIB, 300))
        frames = [(frame["file"].rsplit("/", 1)[-1], frame["line"]) for frame in site["frames"]]
        self.assertIn(("keeper.cpp", line_of("keeper.cpp", "keep")), frames)

    def test_gives_back_what_is_given_back_and_names_nothing(self):
        program = self.start(KEEPER)
        program.do("k5")
        code, text, report = self.traced(program, *["k3", "g"] * 30)
        self.assertEqual(code, 0, text)
        self.assertEqual(self.live_bytes, 0)
        self.assertEqual(report["verdict"]["notes"], [f"process {program.pid}: 5 frees of memory from before the tracing, or whose allocation it did not see: these calls tell no size"])

    def test_a_free_that_fails_is_none(self):
        program = self.start(KEEPER)
        program.do("k2")
        _, _, report = self.traced(program, "k3", "n900", "o", "o", "n0")  # CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        self.assertEqual((self.live_bytes, report["verdict"]["notes"]), (3 * MIB, []))
        program.do("g")
        self.traced(program, "k3", "n900", "o", "n0", "g")
        self.assertEqual(self.live_bytes, 0)

    def test_bytes_of_what_was_there_before_are_told_as_they_are_given_back(self):
        program = self.start(sys.executable, HERE / "tensor_keeper.py", LIBRARY.with_name("libc10.so"))
        program.do("k50")
        _, _, report = self.traced(program, "k5", "g20", "k5")
        self.assertEqual(self.live_bytes, 10 * MIB)
        self.assertEqual([(each["freed_of_before_bytes"], each["freed_of_before_count"]) for each in self.processes], [(20 * MIB, 20)])
        self.assertIn("20 frees of memory from before the tracing, or whose allocation it did not see: 20.0 MiB, by the calls", report["verdict"]["notes"][0])

    def test_a_call_within_a_call_counts_once_and_a_failure_is_none(self):
        program = self.start(KEEPER)
        _, _, report = self.traced(program, "p", "l", "p")
        self.assertEqual(self.live_bytes, 2 * 1024 * 1024)

    def test_counts_arrays_by_their_shape(self):
        program = self.start(KEEPER)
        _, _, report = self.traced(program, "a")
        held = sorted((site["call"], site["live_bytes"] / MIB) for site in report["sites"])
        self.assertEqual(held, [("cuArrayCreate", 1), ("cuArrayCreate", 4), ("cuMipmappedArrayCreate", 5.25)])

    def test_tells_the_device_of_a_context(self):
        program = self.start(KEEPER)
        self.traced(program, "c")
        done = subprocess.run([BINARY, "trace", "export", "--format", "csv", self.trace], capture_output=True, text=True, timeout=60)
        rows = list(csv.DictReader(done.stdout.splitlines()))
        devices = {int(row["size_bytes"]) // MIB: int(row["device"]) for row in rows if int(row["size_bytes"])}
        self.assertEqual(devices, {1: 0, 2: 2, 3: 3, 4: 2, 5: 3, 6: 5})

    def test_physical_memory_lives_until_its_last_handle_and_mapping_are_gone(self):
        program = self.start(KEEPER)
        _, out, report = self.traced(program, "v")
        held = {site["call"]: (site["live_bytes"] / MIB, site["live_count"]) for site in report["sites"]}
        self.assertEqual(held, {"cuMemCreate": (1 + 8 + 32 + 128, 4), "cuMemImportFromShareableHandle": (256, 1)})
        self.assertEqual([process["mapped_bytes"] for process in self.processes], [256 * MIB])
        self.assertRegex(out, r"keeper\.cpp:\d+ .*create")

    def test_what_has_no_size_is_counted_by_its_line(self):
        program = self.start(KEEPER)
        _, out, report = self.traced(program, "k1", "i", "c")
        self.assertEqual(
            sorted((site["call"], site["live_bytes"] / MIB, site["live_count"]) for site in report["sites"] if site["call"] not in ("cuMemAlloc", "cuMemCreate")),
            [("cuCtxCreate", 0, 1), ("cuGraphInstantiate", 0, 2), ("cuImportExternalMemory", 4, 1), ("cuIpcOpenMemHandle", 0, 1), ("cuLibraryLoad", 0, 1), ("cuModuleLoad", 0, 2)])
        line = line_of("keeper.cpp", "load")
        self.assertRegex(out, rf"keeper\.cpp:{line} .*load_code.*\n +live 2 blocks of unknown size")
        self.assertRegex(out, r"by call: .*cuModuleLoad 2 of unknown size")

    def test_a_primary_context_counts_once_where_its_owners_are_known(self):
        self.start(KEEPER)  # the library is probed, as it has it
        tracer = self.attach("--pid", os.getpid())  # and its children
        program = self.start(KEEPER)
        program.do("e64")
        _, _, report = self.detach(tracer)
        contexts = {site["call"]: site["live_count"] for site in report["sites"] if "Ctx" in site["call"]}
        self.assertEqual(contexts, {"cuCtxCreate": 1, "cuDevicePrimaryCtxRetain": 1})

    def test_memory_ends_with_its_context(self):
        program = self.start(KEEPER)
        self.traced(program, "e64", "r")
        # Who else owns the primary context is not known of a program that was already running.
        self.assertEqual(self.live_bytes, (1 + 32 + 64) * MIB)
        tracer = self.attach("--pid", os.getpid())  # and its children: the library is probed, as one of them has it
        program = self.start(KEEPER)
        program.do("e64", "r")
        self.detach(tracer)
        self.assertEqual(self.live_bytes, (1 + 32) * MIB)

    def test_what_finds_no_room_is_counted_and_reported(self):
        program = self.start(KEEPER)
        tracer = self.attach("--pid", program.pid)
        tracer.send_signal(signal.SIGSTOP)
        program.do("k4000")  # more than the ring of events has room for
        tracer.send_signal(signal.SIGCONT)
        program.do("k1")
        _, _, report = self.detach(tracer, r"vramtrack: \d+ allocations or frees came too fast, or too many in one call, and were lost")
        lost = int(re.search(r"\d+", self.warning)[0])
        self.assertGreater(lost, 1000)
        self.assertEqual(sum(site["live_count"] for site in report["sites"]) + lost, 4001)
        self.assertTrue([note for note in report["verdict"]["notes"] if f"{lost:,}" in note or str(lost) in note], report["verdict"]["notes"])

    def waits(self, tracer):
        """How often it has waited, which is how often it was woken."""
        states = [path.read_text() for path in pathlib.Path(f"/proc/{tracer.pid}/task").glob("*/status")]
        return sum(int(re.search(r"(?m)^voluntary_ctxt_switches:\s+(\d+)", state)[1]) for state in states)

    def test_what_is_known_already_wakes_nobody(self):
        """Most calls come from lines that were seen before: the tracer reads them at its next turn."""
        program = self.start(KEEPER)
        tracer = self.attach("--pid", program.pid)
        program.do("u1")
        before = self.waits(tracer)
        for _ in range(1000):
            program.do("u1")
        self.assertLess(self.waits(tracer) - before, 500)
        program.do("k1")
        self.detach(tracer)
        self.assertEqual([process["events"] for process in self.processes], [2003])

    def test_what_a_program_holds_that_goes_on_is_not_held_at_its_exit(self):
        program = Program(KEEPER)
        self.addCleanup(program.process.kill)
        for ends in (False, True):
            tracer = self.attach("--pid", program.pid)
            program.do("k5")
            if ends:
                program.end()
                out, _ = tracer.communicate(timeout=60)
            else:
                _, out, _ = self.detach(tracer)
            self.assertIn("5.0 MiB in 5 blocks", out)
            self.assertEqual("Still held at exit" in out, ends, out)

    def test_what_reads_traces_reads_those_of_running_programs(self):
        program = self.start(KEEPER)
        self.traced(program, "k20")
        before = self.trace
        self.trace = self.folder / "after.trace"
        self.traced(program, "k50")
        line = f"keeper.cpp:{line_of('keeper.cpp', 'allocate')}"
        done = subprocess.run([BINARY, "trace", "diff", before, self.trace], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, rf"30(\.0)? MiB.*{line}")
        page = self.folder / "live.html"
        done = subprocess.run([BINARY, "trace", "flamegraph", "--output", page, self.trace], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(line, page.read_text())
        self.assertIn("50.0 MiB", page.read_text())

    def test_a_terminal_shows_the_lines_while_the_program_runs(self):
        program = self.start(KEEPER)
        outside, inside = pty.openpty()
        self.addCleanup(os.close, outside)
        tracer = subprocess.Popen([BINARY, "trace", "live", "--output", self.trace, "--pid", str(program.pid)], stdout=inside, stderr=subprocess.PIPE,
                                  env={**os.environ, "TERM": "xterm"})  # fmt: skip
        os.close(inside)
        self.addCleanup(tracer.communicate)
        self.addCleanup(tracer.kill)
        os.set_blocking(outside, False)
        self.shown = ""

        def shows(words):
            with contextlib.suppress(BlockingIOError):
                self.shown += os.read(outside, 1 << 16).decode()
            return re.search(words, self.shown)

        self.assertTrue(until(lambda: shows("tracing 1 process")), self.shown)
        program.do("k10", "u5")
        line = line_of("keeper.cpp", "allocate")
        self.assertTrue(until(lambda: shows(r"live +growth/min +blocks +line")), self.shown)
        self.assertTrue(until(lambda: shows(rf"10 MiB +\S+ MiB +10 +\S*keeper\.cpp:{line} ")), self.shown)
        program.do("k5")
        self.assertTrue(until(lambda: shows(rf"15 MiB +\S+ MiB +15 +\S*keeper\.cpp:{line} ")), self.shown)
        self.assertRegex(self.shown, r"\d+ s, 25 allocations and frees; Ctrl-C ends it")

    def test_reads_a_deep_stack_and_other_threads(self):
        program = self.start(KEEPER)
        _, _, report = self.traced(program, "d100", "t20")
        self.assertEqual(self.live_bytes, 60 * MIB)

    def test_follows_children_and_what_replaces_the_program(self):
        program = self.start(KEEPER)
        _, _, report = self.traced(program, "k2", "f7", "f7")
        self.assertEqual(sorted(process["events"] for process in self.processes), [2, 7, 7])
        tracer = self.attach("--pid", program.process.pid)
        program.do("k2", "x")
        program.do("k3")
        self.detach(tracer)
        self.assertEqual(self.live_bytes, 5 * MIB)  # of the first image and of the second

    def test_children_that_run_already_are_traced_too(self):
        """As workers are: the program that was named uses no library itself."""
        program = self.start("sh", "-c", '"$@"; true', "sh", KEEPER)
        child = int(pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text())
        _, _, report = self.traced(program, "k3", "u3")
        self.assertEqual([(process["pid"], process["live_bytes"]) for process in self.processes], [(child, 3 * MIB)])

    def test_programs_that_end_while_they_are_looked_at_do_no_harm(self):
        program = self.start(KEEPER)
        tracer = self.attach("--pid", program.pid)
        program.do("k2")
        for _ in range(30):
            for short in [subprocess.Popen(["/bin/true"]) for _ in range(20)]:
                short.wait()
        program.do("k3")
        code, text, _ = self.detach(tracer)
        self.assertEqual((code, self.live_bytes), (0, 5 * MIB), text)

    def test_names_python_lines(self):
        """Of every interpreter that is here."""
        for version, python in pythons().items():
            with self.subTest(version=version):
                program = self.start(python, HERE / "keeper.py", LIBRARY)
                code, text, report = self.traced(program, "t1", *["k5"] * 30)
                self.assertEqual(code, 1, text)
                name = "Model.forward" if version >= (3, 11) else "forward"
                self.assertRegex(text, rf"LEAK: \S*keeper\.py:{line_of('keeper.py', 'forward')} {name}")
                self.assertEqual(report["sites"][0]["live_count"], 151)
                self.assertIn("train", [frame["function"] for frame in report["sites"][0]["frames"]])

    def test_leaves_no_probe_however_it_ends(self):
        program = self.start(KEEPER)
        for end in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            tracer = self.attach("--pid", program.process.pid)
            self.assertTrue(is_probed(program, LIBRARY))
            program.do("k2")
            tracer.send_signal(end)
            tracer.communicate(timeout=60)
            self.assertFalse(stays_probed(program, LIBRARY), end)

    def test_ends_with_the_program(self):
        program = Program(KEEPER)
        tracer = self.attach("--pid", program.process.pid)
        program.do("k2")
        program.end()
        out, _ = tracer.communicate(timeout=60)
        self.assertEqual(tracer.returncode, 0, out)

    def test_of_a_program_that_does_nothing_meanwhile_nothing_can_be_told(self):
        program = Program(KEEPER)
        program.do("k5")
        for ends in (False, True):
            tracer = self.attach("--pid", program.pid)
            if ends:
                program.end()
                out, error = tracer.communicate(timeout=60)
                self.assertEqual((tracer.returncode, error), (0, ""), out)
            else:
                code, out, _ = self.detach(tracer)
                self.assertEqual((code, [process["events"] for process in self.processes]), (0, [0]), out)
            self.assertRegex(out, "Cannot tell\n  because 0 events are too few")

    def test_ends_when_what_was_named_has_ended_and_not_with_its_first_child(self):
        """As a launcher does, which uses no library itself."""
        program = self.start("sh", "-c", '"$@"; read line; "$@"; true', "sh", KEEPER)
        tracer = self.attach("--pid", program.pid)
        program.do("k3")
        os.kill(int(pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text()), signal.SIGKILL)
        with self.assertRaises(subprocess.TimeoutExpired):
            tracer.wait(3)
        program.do("go on", "k4")
        self.detach(tracer)
        self.assertEqual([process["events"] for process in self.processes], [3, 4])

    def test_a_process_has_ended_when_all_its_threads_have(self):
        for command in ("m", "y"):  # its first thread ends; another one than the first replaces the program
            with self.subTest(command):
                program = self.start(KEEPER)
                tracer = self.attach("--pid", program.pid)
                program.do("k3", command)
                with self.assertRaises(subprocess.TimeoutExpired):
                    tracer.wait(3)
                program.do("k4")
                self.detach(tracer)
                self.assertEqual(self.live_bytes, 7 * MIB)

    def test_says_what_it_waits_for_and_leaves_no_file_of_nothing(self):
        self.trace.write_text("an earlier one")
        for options, words in ((("--user", "nobody"), "a process of user nobody"), (("--container", "4f2a9c", "--job", "1"),
                               "a process of container 4f2a9c or a process of job 1"), (("--pid", os.getpid()), f"process {os.getpid()}")):  # fmt: skip
            tracer = subprocess.Popen([BINARY, "trace", "live", "--output", self.trace, *map(str, options)],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
            self.addCleanup(tracer.communicate)
            self.addCleanup(tracer.kill)
            self.assertIn(f"waiting for {words} that uses a GPU library", tracer.stdout.readline())
            tracer.send_signal(signal.SIGINT)
            out, error = tracer.communicate(timeout=60)
            self.assertEqual((tracer.returncode, out), (2, ""), error)
            self.assertIn("none of the chosen processes uses a GPU library that can be traced", error)
            self.assertEqual([path.name for path in self.folder.iterdir()], ["live.trace"])
            self.assertEqual(self.trace.read_text(), "an earlier one")

    def test_the_files_default_name_is_one_for_all(self):
        program = self.start(KEEPER)
        for options in (("--pid", program.process.pid), ("--all",), ("--user", pathlib.Path(f"/proc/{program.process.pid}").owner())):
            tracer = subprocess.Popen([BINARY, "trace", "live", *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      cwd=self.folder)  # fmt: skip
            self.addCleanup(tracer.communicate)
            self.addCleanup(tracer.kill)
            self.assertIn("tracing ", tracer.stdout.readline())
            name = f"vramtrack.live.{tracer.pid}.trace"
            self.assertEqual([path.name for path in self.folder.iterdir()], [name])
            tracer.send_signal(signal.SIGINT)
            self.assertIn(f"wrote {name}\n", tracer.communicate(timeout=60)[0])
            (self.folder / name).unlink()

    def with_rights(self, *capabilities):
        """What starts a program as another user with these capabilities alone."""
        some = ",".join(["-all", *(f"+{each}" for each in capabilities)])
        return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=" + some, "--ambient-caps=" + some, "--bounding-set=" + some]

    def test_three_capabilities_suffice(self):
        program = self.start_for_all(KEEPER, LIBRARY)
        self.folder.chmod(0o777)
        self.before = self.with_rights("bpf", "perfmon", "sys_ptrace")
        _, _, report = self.traced(program, "k3", "u3")
        self.assertEqual(self.live_bytes, 3 * MIB)
        self.assertRegex(report["sites"][0]["site"], r"keeper\.cpp:\d+ .*allocate")

    def test_each_missing_right_is_named(self):
        def tried(*command):
            return subprocess.run([*command, BINARY, "trace", "live", "--all", "--seconds", "1s", "--output", "/dev/null"], capture_output=True, text=True, timeout=60)
        for capabilities, words in ((("perfmon", "sys_ptrace"), "CAP_BPF is missing"), (("bpf", "sys_ptrace"), "CAP_PERFMON is missing")):
            done = tried(*self.with_rights(*capabilities))
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, f"not permitted.*{words}")
        done = tried("unshare", "--pid", "--fork", "--mount-proc")
        self.assertEqual(done.returncode, 2)
        self.assertIn("start it with hostPID: true (Kubernetes) or docker run --pid=host", done.stderr)
        done = subprocess.run([*self.with_rights("bpf", "perfmon"), BINARY, "doctor"], capture_output=True, text=True, timeout=60)
        self.assertRegex(done.stdout, r"(?m)^note +tracing +.*CAP_SYS_PTRACE is missing")

    def test_says_what_is_wrong(self):
        for options, words in ((("--pid", "0"), "expected the number of a process"), (("--pid", "4194304"), "no such process"), (("--user", "nobody-at-all"), "there is no user 'nobody-at-all' here"), ((), "choose what to trace")):
            done = subprocess.run([BINARY, "trace", "live", "--output", self.trace, *options], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


main(BINARY)
