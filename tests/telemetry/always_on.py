"""`agent` and `watch` with telemetry.enabled: always_on.py BINARY KEEPER LIBRARY

Needs the right to load BPF programs (root), and the fake NVML library; is skipped without them, with the reason.
"""
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "agent"))
from programs import HERE, Program, another_traces, is_probed, is_probed_at, line_of, pythons, stays_probed, why_not  # noqa: E402
from running import Agent, Sandbox, until  # noqa: E402

BINARY, KEEPER, LIBRARY = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
del sys.argv[1:4]
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")
MIB = 1 << 20


class AlwaysOn(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(str(BINARY)).__enter__()
        self.addCleanup(self.box.__exit__)

    def start(self, *command):
        program = Program(*command)
        self.addCleanup(program.end)
        self.box.write("nvml.txt", f"gpu 0 uuid=GPU-one total=80G used=1G\nprocess gpu=0 pid={program.process.pid} list=C used=100M+1M\n")
        return program

    def nvml(self):
        """(options, environment) for what watches the GPU that holds the program."""
        return ["--source", "nvml", "--set", "sources.nvml-library=" + FAKE], {"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")}

    def agent(self, *args):
        options, env = self.nvml()
        agent = Agent(self.box, *options, "--interval", "0.2s", *args, simulate=False, env=env).__enter__()
        self.addCleanup(agent.__exit__)
        return agent

    def lines(self, agent, program):
        def asked():
            path = f"/api/v1/sites?pid={program.process.pid}"
            return agent.get(path, unix=True) if agent.status(path, unix=True) == 200 else None
        return until(asked, 30, "the lines of the program")

    def test_the_agent_tells_the_lines_of_a_program_that_ran_already(self):
        program = self.start(KEEPER)
        program.do("k100")  # before anybody looks
        agent = self.agent("--telemetry")
        until(lambda: is_probed(program, LIBRARY), 30, "the probe")
        program.do("u10", "k10")
        report = self.lines(agent, program)
        site = report["sites"][0]
        self.assertRegex(site["site"], rf"keeper\.cpp:{line_of('keeper.cpp', 'allocate')} .*allocate")
        self.assertEqual((site["live_bytes"], site["live_count"]), (10 * MIB, 10))
        self.assertEqual([one["pid"] for one in agent.get("/api/v1/sites", unix=True)["processes"]], [program.process.pid])
        series = next(one for one in agent.get("/api/v1/view", unix=True)["series"] if one["pid"] == program.process.pid)
        self.assertEqual([(one["site"], one["live_bytes"]) for one in series["sites"]][:1], [(site["site"], 10 * MIB)])
        options, env = self.nvml()
        held = subprocess.run([BINARY, "holders", *options], cwd=self.box.work, env={**os.environ, **self.box.environment(), **env, "XDG_RUNTIME_DIR": str(agent.runtime)},
                              capture_output=True, text=True, timeout=60)  # fmt: skip
        self.assertRegex(held.stdout, r"\n +10 MiB  allocated by \S*keeper\.cpp:\d+ allocate\n", held.stderr)
        metrics = agent.ask("GET", "/metrics")[2].decode()
        self.assertRegex(metrics, rf'vramtrack_site_live_bytes{{UUID="GPU-one",.*pid="{program.process.pid}".*site=".*keeper\.cpp:.*"}} {10 * MIB}')
        self.assertRegex(metrics, r'vramtrack_source_polls_total{source="telemetry"}')
        agent.stop()
        self.assertFalse(stays_probed(program, LIBRARY))
        store = next(self.box.path.rglob("*.db"))
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
            # The agent follows every program of the machine, those of other tests too.
            (text,), *_ = database.execute("SELECT text FROM event WHERE kind='lifetimes' AND pid=?", (program.process.pid,)).fetchall()
        self.assertRegex(text, rf"^{10 * MIB} 10 0 .*@.*keeper\.cpp")

    def test_python_lines(self):
        _, python = max(pythons().items())
        program = self.start(python, HERE / "keeper.py", LIBRARY)
        agent = self.agent("--telemetry")
        until(lambda: is_probed(program, LIBRARY), 30, "the probe")
        program.do("k20")
        site = self.lines(agent, program)["sites"][0]
        self.assertRegex(site["site"], rf"keeper\.py:{line_of('keeper.py', 'forward')} Model\.forward")
        self.assertEqual(site["live_bytes"], 20 * MIB)
        program.do("o5")
        until(lambda: self.held_for(agent, program) == {"unknown": 20 * MIB, "optimizer_state": 5 * MIB}, 30, "what the memory is for")

    def held_for(self, agent, program):
        """By category, as /metrics has it."""
        metrics = agent.ask("GET", "/metrics")[2].decode()
        found = re.findall(rf'vramtrack_category_live_bytes{{UUID="GPU-one",.*pid="{program.process.pid}".*category="(\w+)"}} (\S+)', metrics)
        return {name: int(float(number)) for name, number in found}

    def test_tensors_are_sampled_by_their_bytes_within_a_budget(self):
        """12 GiB are kept, beside 960 GiB that come and go within seconds."""
        _, python = max(pythons().items())
        program = self.start(python, HERE / "tensor_keeper.py", LIBRARY.with_name("libc10.so"))
        agent = self.agent("--telemetry")
        until(lambda: self.is_reported(program), 30, "the probe")
        for _ in range(12):
            program.do("m1000")

        def sampled():
            """What is told every 30 s, once it is of all that was done."""
            series = next(one for one in agent.get("/api/v1/view", unix=True)["series"] if one["pid"] == program.process.pid)
            lines = {one["site"].rpartition(":")[2]: one for one in series["sites"]}
            kept = lines.get(f"{line_of('tensor_keeper.py', 'keep')} keep")
            return (kept, lines) if kept and abs(kept["live_bytes"] - 12000 * MIB) < 5 * kept["error_bytes"] else None
        kept, lines = until(sampled, 60, "an estimate that is right")
        self.assertGreater(kept["error_bytes"], 0)
        self.assertLess(kept["error_bytes"], 3000 * MIB)
        self.assertEqual(sum(one["live_bytes"] for one in lines.values()), kept["live_bytes"])  # what was released, sampled or not, is gone

    def is_reported(self, program):
        library = LIBRARY.with_name("libc10.so")
        symbols = subprocess.run(["readelf", "-W", "--dyn-syms", library], capture_output=True, text=True, check=True).stdout
        offset = next(int(line.split()[1], 16) for line in symbols.splitlines() if "reportMemoryUsageToProfiler" in line)
        maps = pathlib.Path(f"/proc/{program.pid}/maps").read_text()
        return is_probed_at(program, offset + next(int(line.split("-")[0], 16) for line in maps.splitlines() if line.endswith(str(library))))

    def test_is_off_unless_it_is_asked_for(self):
        program = self.start(KEEPER)
        agent = self.agent()
        program.do("k20")
        self.assertFalse(is_probed(program, LIBRARY) and not another_traces())
        self.assertEqual(agent.status(f"/api/v1/sites?pid={program.process.pid}", unix=True), 404)

    def without_rights(self, *args, env=None):
        return subprocess.run(["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", BINARY, *args], cwd=self.box.work,
                              env={**os.environ, **self.box.environment(), **(env or {})}, capture_output=True, text=True, timeout=60)  # fmt: skip

    def test_watching_goes_on_without_the_right_to_trace(self):
        self.start(KEEPER)
        options, env = self.nvml()
        done = self.without_rights("watch", "--once", "--no-record", "--telemetry", *options, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("GPU", done.stdout)
        self.assertRegex(done.stderr, "telemetry: .*not permitted.*CAP_BPF")

    def test_doctor_says_what_is_missing(self):
        for option, word in (("true", "missing"), ("false", "note")):
            done = self.without_rights("doctor", "--set", "telemetry.enabled=" + option)
            self.assertRegex(done.stdout, rf"(?m)^{word} +tracing +.*CAP_BPF")


if __name__ == "__main__":
    if why := why_not(BINARY) or (None if FAKE else "VRAMTRACK_FAKE_LIBRARY names no fake NVML library"):
        print(f"skipped: {why}")
        sys.exit(77)
    unittest.main()
