"""vramtrack wait, with real processes on the fake NVML: met, the time is over, and a pid that another process has got."""
import json
import os
import re
import subprocess
import sys
import time
import unittest

from patience import patience
from sandbox import MIB, TESTS, Sandbox, expect_golden, no_gpu

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")
GI = 1024 * MIB
PID = 4194001  # above the pids that Linux assigns


def stat_fields(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rsplit(")", 1)[1].split()


def start_ticks(pid):
    return int(stat_fields(pid)[19])


@unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
class Wait(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        self.children = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for child in self.children:
            child.kill()
            child.wait()

    def child(self):
        self.children.append(subprocess.Popen(["sleep", "600"]))
        return self.children[-1]

    @staticmethod
    def end(child):
        child.kill()
        child.wait()

    def machine(self, *rows, more=""):
        """One GPU of 80 GiB. `rows`: process, bytes, and what of them stays in use when it has ended."""
        self.box.write("nvml.txt", f"gpu 0 uuid=GPU-0 name=Fake pci=00000000:1D:00.0 total=80G holders={self.box.work}/holders.txt\n" + more)
        self.box.write("holders.txt", "".join(f"{child.pid} {size} {left}\n" for child, size, left in rows))

    def words(self, *args):
        return ("wait", "--interval", "0.1s", "--source", "nvml", "--set", f"sources.nvml-library={FAKE}", *args)

    def wait(self, *args, code):
        result = self.box.run(*self.words(*args), env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def begin(self, *args):
        """Starts a wait and returns it when it has said whom it waits for."""
        environment = self.box.environment({"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        waiting = subprocess.Popen([self.box.binary, *self.words(*args)], cwd=self.box.work, env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.children.append(waiting)
        first = waiting.stdout.readline().decode()
        self.assertIn("waiting", first, waiting.poll() is not None and waiting.stderr.read())
        return waiting, first

    def known(self, *children):
        return [*((rf"\b{child.pid}\b", "PID") for child in children), (rf"\b{os.getpid()}\b.*", "PARENT"), (r"\(\w+\) holds", "(USER) holds"),
                (r"GPU 0, for \S+:", "GPU 0, for TIME:"), (r"after \S+( \S+)?:", "after TIME:")]

    def outcome(self, waiting):
        out, err = waiting.communicate(timeout=patience(30))
        return waiting.returncode, out.decode(), err.decode()

    def test_it_ends_when_so_much_is_free(self):
        child = self.child()
        self.machine((child, 70 * GI, 0))
        waiting, first = self.begin("--gpu", "0", "--free", "20GiB", "--timeout", "10min")
        shown = first + "".join(waiting.stdout.readline().decode() for _ in range(2))
        self.assertIsNone(waiting.poll())
        self.end(child)
        code, out, _ = self.outcome(waiting)
        self.assertEqual(code, 0)
        expect_golden(self, "wait_free.txt", shown + out.splitlines(True)[-1], self.known(child))

    def test_nothing_to_wait_for(self):
        self.machine()
        expect_golden(self, "wait_nothing.txt", self.wait("--empty", code=0).stdout.decode())
        self.wait("--pid", str(PID), "--gone", code=0)

    def test_the_time_is_over_and_it_says_who_holds_it(self):
        child = self.child()
        zombie = subprocess.Popen(["true"])
        self.addCleanup(zombie.wait)
        while stat_fields(zombie.pid)[0] != "Z":
            time.sleep(0.01)
        self.machine((child, 70 * GI, 0), (zombie, 2 * GI, 0))
        said = self.wait("--free", "20GiB", "--timeout", "0.3s", code=1)
        expect_golden(self, "wait_timeout.txt", said.stderr.decode(), self.known(child, zombie))

    def test_memory_that_stays_in_use_when_its_process_has_ended(self):
        child = self.child()
        self.machine((child, 10 * GI, 5 * GI))
        waiting, _ = self.begin("--empty", "--timeout", "2s")
        self.end(child)
        code, _, err = self.outcome(waiting)
        self.assertEqual(code, 1)
        self.assertIn("GPU 0: 4.2 GiB in use", err)

    def test_a_process_is_gone_when_it_has_ended(self):
        child, other = self.child(), self.child()
        self.machine((child, 10 * GI, 0), (other, GI, 0))
        waiting, first = self.begin("--pid", str(child.pid), "--gone")
        self.assertIn(f"pid {child.pid} ", first)
        self.end(child)
        self.assertEqual(self.outcome(waiting)[0], 0)

    def test_a_process_that_has_let_go_lives_on(self):
        child = self.child()
        self.machine((child, 10 * GI, 0))
        waiting, _ = self.begin("--pid", str(child.pid))
        self.machine((child, 10 * GI, 0))
        self.box.write("holders.new", "")
        os.replace(self.box.work / "holders.new", self.box.work / "holders.txt")
        self.assertEqual(self.outcome(waiting)[0], 0)
        self.assertIsNone(child.poll())

    def test_another_process_of_the_same_pid_is_not_waited_for(self):
        first, second = self.child(), self.child()
        while start_ticks(second.pid) == start_ticks(first.pid):
            self.end(second)
            second = self.child()
        root = self.box.work / "proc"
        root.mkdir()
        (root / "uptime").symlink_to("/proc/uptime")
        (root / str(PID)).symlink_to(f"/proc/{first.pid}")
        self.box.write("nvml.txt", "gpu 0 uuid=GPU-0 name=Fake total=80G\n" f"process gpu=0 pid={PID} list=C used=2G\n")
        for condition in ([], ["--gone"]):
            waiting, _ = self.begin("--pid", str(PID), *condition, "--set", f"sources.proc-root={root}", "--timeout", "10min")
            (root / "new").symlink_to(f"/proc/{second.pid}")
            os.replace(root / "new", root / str(PID))
            self.assertEqual(self.outcome(waiting)[0], 0)
            # A wait that begins now is for the process that has the pid now.
            said = self.wait("--pid", str(PID), *condition, "--set", f"sources.proc-root={root}", "--timeout", "0.2s", code=1)
            self.assertIn(b"holds 2.0 GiB of GPU 0", said.stderr)
            (root / "new").symlink_to(f"/proc/{first.pid}")
            os.replace(root / "new", root / str(PID))

    def test_a_user_without_processes_on_the_gpus(self):
        child = self.child()
        self.machine((child, 10 * GI, 0))
        own = subprocess.run(["id", "-un"], capture_output=True, check=True).stdout.decode().strip()
        self.wait("--user", own, "--timeout", "0.2s", code=1)
        self.wait("--user", "nobody" if own != "nobody" else "root", "--timeout", "10min", code=0)
        self.wait("--container", "0123", code=0)

    def test_the_epilog_of_the_manual(self):
        line = re.search(r"^    (vramtrack wait --gpu \"\$SLURM_JOB_GPUS\".*)$", (TESTS.parent / "docs/wait.md").read_text(), re.MULTILINE)[1]
        tools = self.box.path / "tools"
        tools.mkdir()
        (tools / "vramtrack").symlink_to(self.box.binary)
        (tools / "logger").write_text("#!/bin/sh\necho \"$@\"\n")
        (tools / "logger").chmod(0o755)
        self.machine(more="gpu 1 uuid=GPU-1 name=Fake total=80G\n")
        environment = self.box.environment({"PATH": f"{tools}:{os.environ['PATH']}", "VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt"),
                                            "VRAMTRACK_SOURCES_NVML_LIBRARY": FAKE, "VRAMTRACK_SOURCES_ENABLED": "nvml",
                                            "SLURM_JOB_GPUS": "0,1", "SLURM_JOB_ID": "7"})
        run = subprocess.run(["sh", "-c", line], cwd=self.box.work, env=environment, capture_output=True, timeout=patience(30), check=False)
        self.assertEqual((run.returncode, run.stdout), (0, run.stdout), run.stderr)
        self.assertEqual(run.stdout.count(b"80.0 GiB free"), 2)
        run = subprocess.run(["sh", "-c", line.replace("60s", "0.1s")], cwd=self.box.work, env=environment | {"SLURM_JOB_GPUS": "5"},
                             capture_output=True, timeout=patience(30), check=False)
        self.assertEqual(run.stdout, b"-t epilog GPU memory left over after job 7\n", run.stderr)

    def test_json_lines(self):
        child = self.child()
        self.machine((child, 70 * GI, 0))
        result = self.wait("--free", "20GiB", "--timeout", "0.2s", "--json", code=1)
        self.assertEqual(result.stderr, b"")
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([line["state"] for line in lines], ["waiting", "timeout"])
        self.assertEqual(lines[0]["schema"], "vramtrack.wait.v1")
        self.assertEqual(lines[0]["devices"][0]["free_bytes"], 10 * GI)
        holder, = lines[0]["holders"]
        self.assertEqual((holder["pid"], holder["start_ticks"], holder["bytes"], holder["state"], holder["in_the_way"]),
                         (child.pid, start_ticks(child.pid), 70 * GI, "alive", True))

    def test_what_is_waited_for_is_a_sentence(self):
        child = self.child()
        self.machine((child, 70 * GI, 0), more="gpu 1 uuid=GPU-1 name=Fake total=80G\n")
        own = subprocess.run(["id", "-un"], capture_output=True, check=True).stdout.decode().strip()
        pid = str(child.pid)
        for args, words in ((["--empty"], "every GPU to be empty"), (["--empty", "--gpu", "0", "--gpu", "1"], "GPUs 0 and 1 to be empty"),
                            (["--free", "20GiB", "--gpu", "0", "--gpu", "1"], "20.0 GiB free on each of GPUs 0 and 1"),
                            (["--free", "20GiB", "--gpu", "GPU-0"], "20.0 GiB free on GPU-0"),
                            (["--pid", pid], f"pid {pid} to hold no memory on any GPU"),
                            (["--pid", pid, "--pid", str(os.getpid()), "--gone"], f"pids {pid} and {os.getpid()} to end"),
                            (["--user", own, "--gpu", "0"], f"the processes of user {own} to hold no memory on GPU 0"),
                            (["--user", own, "--pid", pid], f"pid {pid} of user {own} to hold no memory on any GPU")):
            with self.subTest(args):
                said = self.wait(*args, "--timeout", "0.1s", code=1)
                self.assertEqual(said.stdout.decode().splitlines()[0], f"waiting for {words}:")
                self.assertEqual(said.stderr.decode().splitlines()[0], f"vramtrack: gave up after waiting 0.1s for {words}:")
        self.assertIn(b"\n  GPU 0: 1 process uses it\n", self.wait("--empty", "--timeout", "0.1s", code=1).stdout)

    def test_a_user_by_name_and_by_number(self):
        child = self.child()
        self.machine((child, 70 * GI, 0))
        number = str(os.getuid())
        own = subprocess.run(["id", "-un"], capture_output=True, check=True).stdout.decode().strip()
        for user in (own, number):
            self.wait("--user", user, "--timeout", "0.1s", code=1)
        self.wait("--user", "54321", "--timeout", "10min", code=0)

    def test_errors_end_with_2(self):
        self.machine()
        for args, said in ((["--gpu", "7", "--empty"], b"there is no GPU 7 here"), (["--free", "90GiB"], b"90.0 GiB will never be free"),
                           ([], b"choose what to wait for: --free 20GiB"), (["--gone"], b"--gone is about a process"),
                           (["--free", "1GiB", "--user", "root"], b"--free is about a whole GPU"),
                           (["--user", "no-such-user"], b"there is no user no-such-user"), (["--free", "20"], b"--free")):
            with self.subTest(args):
                self.assertIn(said, self.wait(*args, code=2).stderr)
        result = self.box.run("wait", "--empty", *no_gpu())
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"no GPU found", result.stderr)


if __name__ == "__main__":
    unittest.main()
