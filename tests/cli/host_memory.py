"""The host's memory of programs that hold GPU memory: fixture trees on the fake NVML, scenarios, recordings and their replay."""
import json
import os
import shutil
import subprocess
import sys
import unittest

from patience import patience
from sandbox import FIXTURES, Sandbox, expect_golden

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")

LEAK = """
name = "host_leak"
seed = 3
period_s = 10
duration_s = "170min"
host_memory_bytes = "256GiB"
[[device]]
capacity_bytes = "64GiB"
[[process]]
name = "serve"
command = "python serve.py"
pid = 4242
cgroup = "/pod"
host_limit_bytes = "64GiB"
  [[process.shape]]
  kind = "constant"
  bytes = "8GiB"
  [[process.host_shape]]
  kind = "constant"
  bytes = "8GiB"
  [[process.host_shape]]
  kind = "linear"
  rate_bytes_per_s = "400MiB/min"
  onset_s = "10min"
"""


class Scenarios(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        self.box.write("leak.toml", LEAK)

    def test_a_leak_beside_a_flat_gpu_is_named_and_its_end_is_the_hosts(self):
        said = self.box.run("simulate", "leak.toml", timeout=patience(60)).stdout.decode()
        self.assertIn("1 alert raised, 1 cleared", said)
        expect_golden(self, "simulate_host_memory.txt", said, [(r"over [\d.]+m?s", "over A MOMENT")])


@unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
class Live(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        # The fake driver lists a process from its file while it lives; the fixture has its data in /proc.
        self.holder = subprocess.Popen(["sleep", "600"])
        self.addCleanup(self.holder.wait)
        self.addCleanup(self.holder.kill)
        pid = self.pid = self.holder.pid
        shutil.copytree(FIXTURES / "proc" / "1001", self.box.work / "proc" / str(pid), symlinks=True)
        self.box.write("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\nSwapFree: 0 kB\n")
        self.box.write(f"proc/{pid}/status", "Name:\tpython\nVmPin:\t1024 kB\nVmRSS:\t5242880 kB\nRssAnon:\t3145728 kB\n")
        self.box.write(f"proc/{pid}/cgroup", "0::/pod\n")
        self.box.write("sys/fs/cgroup/pod/memory.max", f"{16 * 2**30}\n")
        self.box.write("sys/fs/cgroup/pod/memory.current", f"{4 * 2**30}\n")
        self.box.write("sys/fs/cgroup/pod/memory.events", "oom 0\noom_kill 0\n")
        self.box.write("holders", f"{pid} {2**30} 0\n")
        self.box.write("nvml.txt", f"gpu 0 uuid=GPU-0 name=Fake total=80G used=1G holders={self.box.work}/holders\n")

    def test_what_it_holds_and_that_the_kernel_ended_it(self):
        pid = self.pid
        store = str(self.box.work / "s.db")
        watch = subprocess.Popen([BINARY, "watch", "--interval", "0.1s", "--every", "1s", "--json", "--source", "nvml", "--set", f"sources.nvml-library={FAKE}",
                                  "--set", f"sources.proc-root={self.box.work}/proc", "--set", f"sources.sys-root={self.box.work}/sys",
                                  "--set", f"store.path={store}", "--set", "store.flush-seconds=0"], cwd=self.box.work,
                                 env=self.box.environment({"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")}), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.stderr.close)
        self.addCleanup(watch.kill)

        def row(wanted):
            for line in watch.stdout:
                found = json.loads(line)
                if wanted(found):
                    return found
            self.fail(watch.stderr.read())

        held = row(lambda r: r.get("series", {}).get("metric") == "process_used" and "host_memory" in r)
        self.assertEqual(held["host_memory"], {"anonymous_bytes": 3 * 2**30, "resident_bytes": 5 * 2**30, "pinned_bytes": 2**20, "available_bytes": 12 * 2**30})
        host = row(lambda r: r.get("series", {}).get("metric") == "host_anonymous")
        self.assertEqual((host["wall"]["bytes"], host["wall"]["name"]), (16 * 2**30, "memory.max of /pod"))
        self.box.write("sys/fs/cgroup/pod/memory.events", "oom 1\noom_kill 1\n")
        shutil.rmtree(self.box.work / "proc" / str(pid))
        self.holder.kill()
        self.holder.wait()
        told = row(lambda r: r.get("event") == "host_out_of_memory")
        self.assertRegex(told["text"], rf"the kernel ended pid {pid} \(.*\): the memory of cgroup /pod ran out; it held 1.0 GiB of GPU 0 and 3.0 GiB of the host")
        alert = row(lambda r: r.get("alert", {}).get("kind") == "host_out_of_memory")
        self.assertEqual(alert["series"]["pid"], pid)
        ended = row(lambda r: r.get("series", {}).get("pid") == pid and r.get("verdict", {}).get("end"))
        self.assertEqual(ended["verdict"]["end"]["how"], "host_out_of_memory")
        watch.terminate()
        watch.wait(patience(30))
        replayed = self.box.run("replay", "--format", "json", store)
        ends = [json.loads(line)["verdict"]["end"] for line in replayed.stdout.splitlines() if b"analysis" in line and b'"pid":%d' % pid in line]
        self.assertIn("host_out_of_memory", [end["how"] for end in ends if end], replayed.stderr)


class SharedMemory(unittest.TestCase):
    """A log of a GPU that shares the host's memory: its own figure is not available, those of its processes are."""

    TABLE = """
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   45C    P0             11W /  N/A  | Not Supported          |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A            4242      C   python                                {:>5}MiB |
+-----------------------------------------------------------------------------------------+
"""

    def test_it_is_judged_by_its_processes(self):
        with Sandbox(BINARY) as box:
            box.write("smi.txt", "".join(f"Mon Jan  5 {8 + i // 60:02d}:{i % 60:02d}:00 2026{self.TABLE.format(4000 + 100 * i)}" for i in range(120)))
            result = box.run("analyze", "smi.txt")
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(b"pid 4242 python: LEAK ", result.stdout)

    def logs(self, box):
        uuid = "GPU-11111111-1111-1111-1111-111111111111"
        stamps = [f"2026/01/05 {8 + i // 60:02d}:{i % 60:02d}:00.000" for i in range(120)]
        box.write("gpu.csv", "timestamp, index, uuid, name, memory.used [MiB], memory.total [MiB]\n" +
                  "".join(f"{t}, 0, {uuid}, NVIDIA GB10, [N/A], [N/A]\n" for t in stamps))
        box.write("apps.csv", "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n" +
                  "".join(f"{t}, {uuid}, 4242, python, {4000 + 100 * i} MiB\n" for i, t in enumerate(stamps)))

    def test_a_csv_without_figures_says_nothing_beside_the_list_of_its_processes(self):
        with Sandbox(BINARY) as box:
            self.logs(box)
            for files in (("gpu.csv", "apps.csv"), ("apps.csv", "gpu.csv")):
                result = box.run("analyze", *files)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertEqual(result.stderr, b"")
                self.assertIn(b"pid 4242 python: LEAK ", result.stdout)
                self.assertIn(b"gpu.csv holds no figure", result.stdout)

    def test_alone_it_is_refused(self):
        with Sandbox(BINARY) as box:
            self.logs(box)
            result = box.run("analyze", "gpu.csv")
            self.assertEqual(result.returncode, 2)
            self.assertIn(b"'[N/A]' in all of its 120 rows", result.stderr)


if __name__ == "__main__":
    unittest.main()
