"""The lines of a process that runs under `vramtrack run`, as the agent and `top` tell them: a real run of a program on OpenCL."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest

from running import Agent, Sandbox, patience, until
from terminal import Terminal

BINARY, PROBE = (pathlib.Path(path).resolve() for path in (sys.argv.pop(1), sys.argv.pop(1)))
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")
PROGRAM = pathlib.Path(__file__).resolve().parent / "leaking_program.py"
ENOUGH_S = patience(30)
SKIPPED = 77


class Sites(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(str(BINARY)).__enter__()
        self.addCleanup(self.box.__exit__)
        self.runtime = self.box.path / "run"
        self.runtime.mkdir(mode=0o700)

    def environment(self):
        # The device's own libraries have caches, which lie in the real home.
        return {**os.environ, **self.box.environment(), "XDG_RUNTIME_DIR": str(self.runtime), "HOME": os.environ.get("HOME", "/")}

    def start_run(self, *options):
        """(run, pid of the program), once it has allocated for a while."""
        run = subprocess.Popen([BINARY, "run", "--quiet", *options, "--probe", PROBE.parent, "--", sys.executable, PROGRAM], cwd=self.box.work,
                               env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def end():
            run.kill()
            run.wait()
            for pipe in (run.stdin, run.stdout, run.stderr):
                pipe.close()
        self.addCleanup(end)
        if run.stdout.readline() != "up\n":
            _, error = run.communicate(timeout=ENOUGH_S)
            if run.returncode == SKIPPED:
                self.skipTest("no OpenCL device here (pocl-opencl-icd is one)")
            self.fail(error)
        children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        return run, int(children[0])

    def agent(self, *args, simulate=False, env=None, nvml=""):
        options = []
        if not simulate:
            if not FAKE:
                self.skipTest("VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
            self.box.write("nvml.txt", "gpu 0 uuid=GPU-one total=80G used=1G\n" + nvml)
            options = ["--source", "nvml", "--interval", "0.2s", "--set", "sources.nvml-library=" + FAKE]
            env = {"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt"), **(env or {})}
        agent = Agent(self.box, *options, *args, simulate=simulate, env=env).__enter__()
        self.addCleanup(agent.__exit__)
        return agent

    def ask(self, agent, pid):
        """(status, headers, JSON)"""
        status, headers, body = agent.ask("GET", f"/api/v1/sites?pid={pid}", unix=True)
        return status, headers, json.loads(body)

    def report(self, agent, pid):
        """The report as soon as there is one that tells a leak; every answer before says when to ask again."""
        def asked():
            status, headers, body = self.ask(agent, pid)
            if status == 200 and body["verdict"]["leak"]:
                return body
            if status != 200:
                self.assertEqual((status, body["error"]["code"]), (503, "no_report"))
                self.assertIn("Retry-After", headers)
        return until(asked, ENOUGH_S, "a report")

    def test_the_lines_of_a_run(self):
        run, pid = self.start_run()
        agent = self.agent()
        listed = until(lambda: agent.get("/api/v1/sites", unix=True)["processes"], 20, "the list")
        self.assertEqual([one["pid"] for one in listed], [pid])
        self.assertIn(pid, agent.get("/api/v1/status", unix=True)["probed_pids"])
        report = self.report(agent, pid)
        self.assertEqual(report["schema"], "vramtrack.trace_report.v1")
        self.assertIn(PROGRAM.name, report["program"])
        leak, *others = report["sites"]
        self.assertTrue(leak["leak"])
        self.assertIn("keep_a_result", [frame["function"] for frame in leak["frames"]])
        self.assertGreater(leak["growth_bytes_per_s"], 0)
        self.assertGreaterEqual(leak["live_bytes"], 4096 * 100)
        self.assertGreaterEqual(leak["live_count"], 100)
        self.assertTrue(leak["site"])
        self.assertEqual(leak["call"], "clCreateBuffer")
        self.assertFalse(any(site["leak"] for site in others))
        status, _, body = self.ask(agent, run.pid)
        self.assertEqual((status, body["error"]["code"]), (404, "not_probed"), "the run itself allocates nothing")
        run.communicate(timeout=ENOUGH_S)  # closes its standard input
        status, _, body = self.ask(agent, pid)
        self.assertEqual((status, body["error"]["code"]), (404, "no_process"))
        self.assertEqual(until(lambda: agent.get("/api/v1/sites", unix=True) == {"processes": []}, 20, "the end of the list"), True)

    def test_the_metrics_say_what_the_memory_of_a_watched_run_is_for(self):
        _, plain = self.start_run()
        _, watched = self.start_run("--watch")
        agent = self.agent(nvml="".join(f"process gpu=0 pid={pid} used=1G\n" for pid in (plain, watched)))

        def told():
            text = agent.ask("GET", "/metrics", unix=True)[2].decode()
            return [line for line in text.splitlines() if line.startswith("vramtrack_category_live_bytes{")]
        until(told, ENOUGH_S, "the metric")
        (line,) = told()
        self.assertIn(f'pid="{watched}"', line)
        self.assertIn('category="unknown"', line)  # a buffer of OpenCL
        self.assertGreaterEqual(float(line.rpartition(" ")[2]), 4096 * 100)

    def test_what_is_no_process_of_a_run(self):
        agent = self.agent()
        for pid, status, code in ((os.getpid(), 404, "not_probed"), (2**31 - 1, 404, "no_process"), ("x", 400, "bad_pid"), ("0", 400, "bad_pid"),
                                  ("-1", 400, "bad_pid"), (2**40, 400, "bad_pid"), ("", 400, "bad_pid")):
            answered, _, body = self.ask(agent, pid)
            self.assertEqual((answered, body["error"]["code"]), (status, code), pid)

    def test_a_simulation_knows_no_process_of_this_machine(self):
        agent = self.agent(simulate=True)
        self.assertEqual(agent.get("/api/v1/sites", unix=True), {"processes": []})
        self.assertEqual(agent.get("/api/v1/status", unix=True)["probed_pids"], [])
        self.assertEqual(self.ask(agent, 4242)[0], 404)

    @unittest.skipUnless(os.geteuid() == 0, "asks as another user, which root can")
    def test_another_user_sees_nothing(self):
        _, pid = self.start_run()
        agent = self.agent()
        ask = ("import http.client, sys\nc = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\nc.request('GET', sys.argv[2])\n"
               "r = c.getresponse()\nprint(r.status, r.read().decode())")

        def as_nobody(path):
            return subprocess.run(["/usr/bin/env", "python3", "-c", ask, str(agent.port), path], user=65534, group=65534, extra_groups=[],
                                  env={"PATH": os.environ["PATH"]}, cwd="/", capture_output=True, text=True, timeout=30, check=True).stdout
        self.assertTrue(as_nobody(f"/api/v1/sites?pid={pid}").startswith("403"))
        self.assertIn('{"processes":[]}', as_nobody("/api/v1/sites"))
        self.assertIn('"probed_pids":[]', as_nobody("/api/v1/status"))
        self.assertNotIn("403", str(self.ask(agent, pid)[0]))

    def silent_run(self):
        """A process of this user's that makes itself a run which takes a connection and never answers."""
        code = ("import os, pathlib, socket, sys\nfolder = pathlib.Path(sys.argv[1]) / 'vramtrack-runs' / str(os.getpid())\n"
                "folder.parent.mkdir(mode=0o700, exist_ok=True)\nfolder.mkdir(mode=0o700)\n(folder / f'ring.{os.getpid()}.1').touch()\n"
                "s = socket.socket(socket.AF_UNIX)\ns.bind(str(folder / 'control'))\ns.listen(8)\nprint('up', flush=True)\nsys.stdin.read()")
        silent = subprocess.Popen([sys.executable, "-c", code, str(self.runtime)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(silent.communicate, timeout=30)
        self.assertEqual(silent.stdout.readline(), "up\n")
        return silent.pid

    def test_a_run_that_does_not_answer_holds_nobody_up(self):
        pid = self.silent_run()
        agent = self.agent()
        took = []

        def one():
            begin = time.monotonic()
            status, headers, _ = self.ask(agent, pid)
            took.append((time.monotonic() - begin, status, "Retry-After" in headers))
        threads = [threading.Thread(target=one) for _ in range(6)]
        for thread in threads:
            thread.start()
        begin = time.monotonic()
        self.assertEqual(agent.status("/api/v1/view"), 200)
        self.assertLess(time.monotonic() - begin, patience(1.5), "others are answered meanwhile")
        for thread in threads:
            thread.join()
        self.assertEqual({(status, retry) for _, status, retry in took}, {(503, True)})
        self.assertLess(max(seconds for seconds, _, _ in took), patience(2))

    @unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
    def test_top_shows_them_through_the_agent_and_without(self):
        _, pid = self.start_run()
        agent = self.agent(nvml=f"process gpu=0 pid={pid} used=1G\n")
        self.report(agent, pid)
        for source, env in (("agent", {}), ("nvml", {"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})):
            args = [] if source == "agent" else ["--source", "nvml", "--set", "sources.nvml-library=" + FAKE, "--no-record"]
            top = Terminal(self.box, *args, size=(150, 50), env={"XDG_RUNTIME_DIR": str(agent.runtime), **env})
            self.addCleanup(top.close)
            top.wait_for(rf"{pid}")
            top.press("Down", "d")
            top.wait_for(r"1 line leaks, ")
            top.wait_for(r"GROWTH +LIVE +BLOCKS +LINE\n.*/s +.*LEAK ")
            top.press("q")
            top.wait_for(r"exit=0")
            if source == "agent":
                agent.stop()


if __name__ == "__main__":
    unittest.main(verbosity=1)
