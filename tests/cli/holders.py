"""vramtrack holders, with real processes on the fake NVML."""
import json
import os
import subprocess
import sys
import time
import unittest

from sandbox import MIB, Sandbox, no_gpu

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")


@unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
class Holders(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        self.alive = subprocess.Popen(["sleep", "600"])
        self.addCleanup(self.end, self.alive)
        # A child that has exited and has not been waited for stays a zombie.
        self.zombie = subprocess.Popen(["true"])
        self.addCleanup(self.zombie.wait)
        while self.state(self.zombie.pid) != "Z":
            time.sleep(0.01)

    @staticmethod
    def end(process):
        process.kill()
        process.wait()

    @staticmethod
    def state(pid):
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0]

    def holders(self, *args, code=0):
        self.box.write("nvml.txt", "gpu 0 uuid=GPU-0 name=Fake pci=00000000:1D:00.0 total=80G used=3G\n"
                                   "gpu 1 uuid=GPU-1 name=Fake pci=00000000:1E:00.0 total=80G used=100M\n"
                                   f"process gpu=0 pid={self.alive.pid} list=C used=2G\n"
                                   f"process gpu=0 pid={self.zombie.pid} list=C used=1G\n"
                                   "process gpu=0 pid=4194000 list=C used=512M\n")
        result = self.box.run("holders", "--source", "nvml", "--set", f"sources.nvml-library={FAKE}", *args,
                              env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_the_parts_make_the_whole_and_each_holder_has_a_state(self):
        document = json.loads(self.holders("--format", "json").stdout)
        self.assertEqual(document["schema"], "vramtrack.holders.v1")
        first, second = document["devices"]
        self.assertEqual(first["process_bytes"], (2048 + 1024 + 512) * MIB)
        for device in (first, second):
            self.assertEqual(device["used_bytes"], device["process_bytes"] + device["driver_bytes"] + device["unattributed_bytes"])
        # 3 GiB are in use in addition to 3.5 GiB of processes: more than a driver needs.
        self.assertGreater(first["unattributed_bytes"], 2048 * MIB)
        self.assertEqual(second["unattributed_bytes"], 0)
        states = {p["pid"]: p["state"] for p in first["processes"]}
        self.assertEqual(states, {self.alive.pid: "alive", self.zombie.pid: "zombie", 4194000: "not visible"})
        alive = first["processes"][0]
        self.assertEqual((alive["pid"], alive["command"], alive["bytes"]), (self.alive.pid, "sleep 600", 2048 * MIB))
        self.assertEqual(alive["parent_pid"], os.getpid())
        self.assertTrue(alive["user"])
        self.assertLess(alive["age_s"], 60)

    def test_the_text_says_why(self):
        text = self.holders().stdout.decode()
        self.assertIn("GPU 0 Fake: 6.5/80.0 GiB in use", text)
        self.assertIn("3 processes listed by the driver", text)
        self.assertIn("unattributed: no listed process holds it", text)
        self.assertIn(f"it has ended, but its parent pid {os.getpid()} ", text)
        self.assertIn("it has ended, or it is in another pid namespace", text)

    def test_one_gpu_alone(self):
        self.assertEqual([d["index"] for d in json.loads(self.holders("--gpu", "1", "--format", "json").stdout)["devices"]], [1])
        self.assertIn(b"there is no GPU 7 here", self.holders("--gpu", "7", code=2).stderr)

    def test_without_a_gpu_it_says_so(self):
        result = self.box.run("holders", *no_gpu())
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"no GPU found", result.stderr)


if __name__ == "__main__":
    unittest.main()
