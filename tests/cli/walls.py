"""Walls of processes, live: fixture trees of cgroups and /proc on the fake NVML; what is printed, recorded and replayed."""
import json
import os
import shutil
import sys
import unittest

from patience import patience
from sandbox import FIXTURES, Sandbox

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")
PID = 1001


@unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
class Walls(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        shutil.copytree(FIXTURES / "proc", self.box.work / "proc", symlinks=True)
        self.box.write(f"proc/{PID}/cgroup", "0::/kubepods/pod1/main\n")
        self.box.write("sys/fs/cgroup/kubepods/pod1/dmem.max", "drm/0000:3a:00.0/vram0 8589934592\n")
        self.box.write("nvml.txt", f"gpu 0 uuid=GPU-0 name=Fake pci=00000000:3A:00.0 total=80G used=1G\nprocess gpu=0 pid={PID} list=C used=1G+1M\n")

    def watch(self, *args):
        result = self.box.run("watch", "--interval", "0.1s", "--duration", "2s", "--every", "1s", "--source", "nvml",
                              "--set", f"sources.nvml-library={FAKE}", "--set", f"sources.proc-root={self.box.work}/proc",
                              "--set", f"sources.sys-root={self.box.work}/sys", *args,
                              env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")}, timeout=patience(30))
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode()

    NOTE = f"GPU 0: memory of pid {PID} ends at 8.0 GiB: dmem.max of /kubepods/pod1"
    BECAUSE = "its memory ends at 8.0 GiB, by dmem.max of /kubepods/pod1"

    def test_a_watch_says_where_memory_ends_and_who_set_it(self):
        said = self.watch("--no-record")
        self.assertEqual(said.count(self.NOTE), 1, said)

    def test_holders_has_it(self):
        result = self.box.run("holders", "--source", "nvml", "--set", f"sources.nvml-library={FAKE}", "--set", f"sources.proc-root={self.box.work}/proc",
                              "--set", f"sources.sys-root={self.box.work}/sys", env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        self.assertIn(b"its memory ends at 8.0 GiB: dmem.max of /kubepods/pod1\n", result.stdout, result.stderr)

    def test_the_verdict_has_it_and_a_replay_too(self):
        store = str(self.box.work / "s.db")
        rows = [json.loads(line) for line in self.watch("--json", "--set", f"store.path={store}", "--set", "store.flush-seconds=0").splitlines()]
        self.assertIn(self.NOTE, [row.get("text") for row in rows])
        last = [row for row in rows if row["schema"] == "vramtrack.analysis.v1" and row["series"]["pid"] == PID][-1]
        self.assertIn(self.BECAUSE, last["verdict"]["because"])
        self.assertEqual((last["wall"]["bytes"], last["wall"]["processes"], last["wall"]["name"]), (8 * 2**30, 1, "dmem.max of /kubepods/pod1"))
        replayed = self.box.run("replay", "--format", "json", store)
        again = [json.loads(line) for line in replayed.stdout.splitlines() if b"analysis" in line]
        self.assertIn(self.BECAUSE, [row for row in again if row["series"]["pid"] == PID][-1]["verdict"]["because"])


if __name__ == "__main__":
    unittest.main()
