"""Walls of processes, live: fixture trees of cgroups and /proc on the fake NVML; what is printed, recorded and replayed."""
import json
import os
import shutil
import sys
import unittest

from patience import patience
from sandbox import FIXTURES, TESTS, Sandbox, expect_golden

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

    NOTE = f"GPU 0: the memory of pid {PID} is limited to 8.0 GiB: dmem.max of /kubepods/pod1"
    BECAUSE = "its memory is limited to 8.0 GiB by dmem.max of /kubepods/pod1"

    def test_a_watch_says_where_memory_ends_and_who_set_it(self):
        said = self.watch("--no-record")
        self.assertEqual(said.count(self.NOTE), 1, said)

    def test_a_total_that_the_driver_adjusts_is_an_event_and_the_replay_follows_it(self):
        self.box.write("nvml.txt", f"gpu 0 uuid=GPU-0 name=Fake total={'80G,' * 5}60G used=1G\nprocess gpu=0 pid={PID} list=C used=1G+1M\n")
        store = str(self.box.work / "s.db")
        rows = [json.loads(line) for line in self.watch("--json", "--set", f"store.path={store}", "--set", "store.flush-seconds=0").splitlines()]
        told = "GPU 0: its memory is now limited to 60.0 GiB instead of 80.0 GiB: the driver has adjusted the total"
        self.assertEqual([row["text"] for row in rows if row.get("event") == "note"], [told])
        self.assertEqual([row for row in rows if row["schema"] == "vramtrack.analysis.v1"][-1]["capacity_bytes"], 60 * 2**30)
        replayed = [json.loads(line) for line in self.box.run("replay", "--format", "json", store).stdout.splitlines()]
        self.assertIn(told, [row.get("text") for row in replayed])

    def test_a_watch_that_continues_learns_anew_where_memory_ends(self):
        store = ("--set", f"store.path={self.box.work / 's.db'}", "--set", "store.flush-seconds=0")

        def ends(text):
            rows = [json.loads(line) for line in text.splitlines()]
            return {row["series"]["metric"]: (row["capacity_bytes"], bool(row.get("wall"))) for row in rows
                    if row.get("series", {}).get("metric") in ("device_used", "process_used")}

        self.assertEqual(ends(self.watch("--json", *store)), {"device_used": (80 * 2**30, False), "process_used": (80 * 2**30, True)})
        self.box.write("sys/fs/cgroup/kubepods/pod1/dmem.max", "drm/0000:3a:00.0/vram0 max\n")
        self.box.write("nvml.txt", f"gpu 0 uuid=GPU-0 name=Fake pci=00000000:3A:00.0 total=60G used=1G\nprocess gpu=0 pid={PID} list=C used=1G+1M\n")
        now = {"device_used": (60 * 2**30, False), "process_used": (60 * 2**30, False)}
        self.assertEqual(ends(self.watch("--json", *store)), now)
        self.assertEqual(ends(self.box.run("replay", "--format", "json", str(self.box.work / "s.db")).stdout.decode()), now)

    def holders(self, *args):
        result = self.box.run("holders", *args, "--source", "nvml", "--set", f"sources.nvml-library={FAKE}", "--set", f"sources.proc-root={self.box.work}/proc",
                              "--set", f"sources.sys-root={self.box.work}/sys", env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode()

    def test_holders_has_it(self):
        self.assertEqual(self.walls(), [(8 * 2**30, "dmem.max of /kubepods/pod1")])
        expect_golden(self, "holders_wall.txt", self.holders(), [(r", for \S+", ", for TIME")])

    def walls(self):
        process = json.loads(self.holders("--json"))["devices"][0]["processes"][0]
        self.assertEqual({wall["used_bytes"] for wall in process["walls"]}, {process["bytes"]})
        return [(wall["bytes"], wall["name"]) for wall in process["walls"]]

    def test_holders_has_the_limit_of_a_client_of_mps(self):
        self.box.write(f"proc/{PID}/environ", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=6G\0")
        self.box.write("nvml.txt", f"gpu 0 uuid=GPU-0 name=Fake pci=00000000:3A:00.0 total=80G used=1G\nprocess gpu=0 pid={PID} list=MPS used=1G+1M\n")
        self.assertIn((6 * 2**30, f"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of pid {PID}"), self.walls())

    def test_the_nearest_is_where_memory_ends_and_the_others_are_limits(self):
        with open(self.box.work / "nvml.txt", "a", encoding="utf-8") as machine:
            machine.write("limit gpu=0 cgroup=/kubepods/pod1/main hard=4G\n")
        said = self.watch("--no-record")
        expect_golden(self, "watch_walls.txt", "".join(line + "\n" for line in said.splitlines() if f"pid {PID}" in line and "limit" in line), [(r"(?m)^\S+  ", "")])
        self.assertEqual(said.count("memory of pid"), 1, said)
        # The ledger asks the driver, too.
        self.assertEqual(self.walls(), [(8 * 2**30, "dmem.max of /kubepods/pod1"), (4 * 2**30, "NVIDIA's memory limit of /kubepods/pod1/main")])

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
        for form in ("text", "md", "html"):
            report = self.box.run("report", "--format", form, store)
            self.assertRegex(report.stdout.decode(), rf"pid {PID} [^\n]*: 8\.0 GiB, by dmem\.max of /kubepods/pod1; ", form)


class Scenarios(unittest.TestCase):
    NAME = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of pid 4242"

    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        text = (TESTS / "scenarios/leak_three_walls.toml").read_text()
        self.box.write("walls.toml", text.replace('"105min"', '"70min"'))
        self.box.write("moved.toml", text.replace('"105min"', '"100min"'))

    def run_it(self, *args):
        result = self.box.run(*args, timeout=patience(60))
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode()

    def test_simulate_ends_at_the_nearest_and_follows_it(self):
        said = self.run_it("simulate", "walls.toml", "--explain")
        self.assertIn(f"wall       8.0 GiB, by {self.NAME}; ", said)
        self.assertNotIn("per_process_memory_fraction", said)
        said = self.run_it("simulate", "moved.toml", "--explain")
        self.assertRegex(said, r"is now 9\.0 GiB: dmem\.max of /pod")
        self.assertRegex(said, r"9\.0 GiB by dmem\.max of /pod, of which 2 processes ")

    def test_a_wall_that_is_wrong_is_named_with_its_line(self):
        for change, words in (('processes = ["trainer"]', "there is no [[process]] 'trainr'"), ('name = "dmem.max of /pod"', "is required"),
                              ('at_s = "80min"', "at_s")):
            with self.subTest(change):
                text = (TESTS / "scenarios/leak_three_walls.toml").read_text()
                self.box.write("bad.toml", text.replace(change, 'processes = ["trainr"]' if "processes" in change else "", 1))
                result = self.box.run("simulate", "bad.toml")
                self.assertEqual(result.returncode, 2)
                self.assertRegex(result.stderr.decode(), r"bad\.toml:\d+")
                self.assertIn(words, result.stderr.decode())


if __name__ == "__main__":
    unittest.main()
