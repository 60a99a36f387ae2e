"""vramtrack reclaim, with real workers whose parent has ended, on the fake NVML."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

from sandbox import Sandbox

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")

# A trainer that leads a session, starts a worker through multiprocessing, or leaves a program named "train", and ends.
TRAINER = """
import ctypes, multiprocessing, os, signal, sys, time
def rest():
    for fd in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), fd)
    ctypes.CDLL(None).prctl(15, sys.argv[1].encode())
    if len(sys.argv) > 2:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
os.setpgid(0, 0)
if sys.argv[1] == "train":
    pid = os.fork() or rest()
else:
    worker = multiprocessing.get_context("fork").Process(target=rest)
    worker.start()
    pid = worker.pid
print(pid, flush=True)
os._exit(0)
"""


@unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
class Reclaim(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def orphan(self, *words):
        # The session's leader lives on, like a shell at a terminal: a process that has left its session may have been left on purpose.
        shell = subprocess.Popen(["sh", "-c", '"$@"; exec sleep 600', "sh", sys.executable, "-c", TRAINER, *words], stdout=subprocess.PIPE, start_new_session=True)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.kill)
        self.addCleanup(shell.stdout.close)
        pid = int(shell.stdout.readline())
        self.addCleanup(self.kill, pid)
        name = words[0][:15]
        while self.name(pid) != name:
            time.sleep(0.01)
        return pid

    @staticmethod
    def name(pid):
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            return f.read().strip()

    @staticmethod
    def kill(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    @staticmethod
    def lives(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                return f.read().rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def write_gpu(self, pid, listed="to=3", used="1G"):
        self.box.write("nvml.txt", f"gpu 0 uuid=GPU-0 name=Fake pci=00000000:1D:00.0 total=80G used={used}\n"
                                   f"process gpu=0 pid={pid} list=C used=2G {listed}\n")

    @staticmethod
    def words(*args):
        return ("reclaim", "--watch", "2s", "--source", "nvml", "--set", f"sources.nvml-library={FAKE}", *args)

    def fake_variables(self):
        return {"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")}

    def reclaim(self, pid, *args, listed="to=3", used="1G", code=0):
        self.write_gpu(pid, listed, used)
        result = self.box.run(*self.words(*args), env=self.fake_variables())
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def acts(self):
        path = self.box.path / "home/.local/state/vramtrack/vramtrack.db.acts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def test_an_orphan_is_ended_and_its_memory_is_checked(self):
        pid = self.orphan("pt_data_worker")
        said = self.reclaim(pid, "--yes").stdout.decode()
        self.assertIn("it ended after SIGTERM; 2.0 GiB was freed", said)
        self.assertFalse(self.lives(pid))
        self.assertEqual([a["event"] for a in self.acts()], ["begin", "intent", "done", "end"])
        self.assertEqual({a["process"]["pid"] for a in self.acts()}, {pid})

    def test_memory_that_does_not_come_back_is_said(self):
        pid = self.orphan("pt_data_worker")
        self.assertIn(b"the driver still lists it, and nothing of its 2.0 GiB was freed", self.reclaim(pid, "--yes", listed="", code=1).stdout)
        self.assertFalse(self.lives(pid))

    def test_memory_that_stays_in_use_although_nobody_holds_it_is_said(self):
        pid = self.orphan("pt_data_worker")
        # The memory of the process belongs to the GPU itself from the fourth reading on, when the process is no longer listed.
        said = self.reclaim(pid, "--yes", used="1G,1G,1G,1G,2.5G", code=1).stdout
        self.assertIn(b"the driver no longer lists it, and only 512 MiB of its 2.0 GiB was freed", said)

    def test_it_asks_at_a_terminal(self):
        for answer, ended in ((b"n", False), (b"", False), (b"y", True)):
            pid = self.orphan("pt_data_worker")
            self.write_gpu(pid)
            shown = self.box.on_terminal(*self.words(), env=self.fake_variables(), keys=answer + b"\n", once_shown=b"End it? [y/N]")
            self.assertIn(b"was freed" if ended else b"Nothing was done.", shown)
            self.assertEqual(self.lives(pid), not ended)

    def test_a_living_pytorch_program_is_left_alone_with_its_cache(self):
        self.box.write("libtorch_cuda.so", "x" * 4096)
        library = self.box.work / "libtorch_cuda.so"
        code = ("import ctypes, mmap, sys; f = open(sys.argv[1], 'rb'); libc = ctypes.CDLL(None)\n"
                "m = mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)\n"
                "print('up', flush=True); sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", code, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            said = self.reclaim(child.pid, "--yes", listed="").stdout
            self.assertTrue(self.lives(child.pid))
            child.stdin.close()
        self.assertIn(b"Memory that PyTorch has cached is not lost", said)
        self.assertIn(b"torch.cuda.empty_cache()", said)

    def test_without_a_terminal_it_asks_for_yes(self):
        pid = self.orphan("pt_data_worker")
        self.assertIn(b"pass --yes", self.reclaim(pid, code=2).stderr)
        self.assertTrue(self.lives(pid))

    def test_a_dry_run_does_nothing(self):
        pid = self.orphan("pt_data_worker")
        said = self.reclaim(pid, "--yes", "--dry-run").stdout
        self.assertIn(f"to end: pid {pid} ".encode(), said)
        self.assertIn(b"dry run", said)
        self.assertTrue(self.lives(pid))
        self.assertEqual(self.acts(), [])

    def test_a_program_left_to_run_and_a_living_one_are_spared(self):
        pid = self.orphan("train")
        said = self.reclaim(pid, "--yes").stdout
        self.assertIn(b"left to run on purpose", said)
        self.assertIn(b"There is no process to end.", said)
        self.assertTrue(self.lives(pid))
        with subprocess.Popen(["sleep", "600"]) as child:
            self.reclaim(child.pid, "--yes")
            self.assertTrue(self.lives(child.pid))
            child.kill()


if __name__ == "__main__":
    unittest.main()
