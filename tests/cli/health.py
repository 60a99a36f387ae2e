"""vramtrack doctor --health on the fake NVML, with kernel logs from files."""
import json
import os
import shutil
import subprocess
import sys
import unittest

from sandbox import Sandbox, no_gpu

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")
CONTRIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../contrib")

WELL = "temp=45 ecc=1 corrected=0 uncorrected=0 remapped=0 repair_pending=0 repair_failed=0 throttle=0"
GPU_0 = f"gpu 0 uuid=GPU-0 name=Fake pci=00000000:1D:00.0 total=80G used=500M {WELL}\n"
GPU_1 = "gpu 1 uuid=GPU-1 name=Fake pci=00000000:65:00.0 total=80G used={used} " + WELL + "\n"
XID_79 = "[ 4564.303884] NVRM: Xid (PCI:0000:65:00): 79, pid=4242, name=python3, GPU has fallen off the bus.\n"
HEALTHY, UNHEALTHY, UNKNOWN = 0, 1, 2


@unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
class Health(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        self.library = FAKE
        self.box.write("log", "")
        self.machine()

    def machine(self, more="", used="500M"):
        self.box.write("nvml.txt", GPU_0 + GPU_1.format(used=used) + more)

    def health(self, *args, code, log="log"):
        result = self.box.run("doctor", "--health", *(["--kernel-log", log] if log else []), "--set", "sources.enabled=nvml",
                              "--set", f"sources.nvml-library={self.library}", *args,
                              env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout.decode()

    def document(self, *args, code):
        return json.loads(self.health("--format", "json", *args, code=code))

    def kinds(self, *args, code):
        return [f["kind"] for f in self.document(*args, code=code)["findings"]]

    def test_two_gpus_that_are_well(self):
        self.assertEqual(self.health("--format", "npd", code=HEALTHY), "healthy: 2 GPUs\n")
        text = self.health(code=HEALTHY)
        self.assertIn("no uncorrected memory error", text)
        self.assertIn("Nearly all leaks are software", text)
        document = self.document(code=HEALTHY)
        self.assertEqual((document["schema"], document["exit_code"]), ("vramtrack.health.v1", 0))
        self.assertEqual([d["has_fault"] for d in document["devices"]], [False, False])

    def test_an_xid_of_the_hardware_in_the_log(self):
        self.box.write("log", XID_79)
        self.assertEqual(self.health("--format", "npd", code=UNHEALTHY),
                         "unhealthy: GPU 1: XID 79: the GPU has fallen off the bus (pid 4242 python3)\n")
        finding = self.document(code=UNHEALTHY)["findings"][0]
        self.assertEqual((finding["severity"], finding["cause"], finding["device"]["id"]), ("critical", "hardware", "GPU-1"))
        self.health("--gpu", "0", code=HEALTHY)
        self.health("--gpu", "0,7", code=UNKNOWN)
        self.health("--no-kernel-log", code=HEALTHY, log=None)

    def test_a_log_from_standard_input_and_a_compressed_one(self):
        import gzip
        (self.box.work / "log.gz").write_bytes(gzip.compress(XID_79.encode()))
        self.assertIn("XID 79", self.health(code=UNHEALTHY, log="log.gz"))
        result = self.box.run("doctor", "--health", "--kernel-log", "-", "--set", "sources.enabled=nvml", "--set",
                              f"sources.nvml-library={FAKE}", stdin=XID_79, env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        self.assertEqual(result.returncode, UNHEALTHY, result.stderr)
        self.assertIn(b"standard input, 1 message", result.stdout)

    def test_a_log_that_cannot_be_read_is_unknown(self):
        self.assertIn("not checked: XID errors in the kernel log: absent", self.health("--format", "npd", code=UNKNOWN, log="absent"))
        self.health(code=UNKNOWN, log=str(self.box.work))

    def test_memory_errors_and_throttling(self):
        self.box.write("nvml.txt", GPU_0.replace("uncorrected=0", "uncorrected=2").replace("throttle=0", "throttle=0x40"))
        self.assertEqual(self.kinds(code=UNHEALTHY), ["memory_errors", "thermal"])
        self.box.write("nvml.txt", GPU_0.replace("repair_failed=0", "repair_failed=1"))
        self.assertEqual(self.kinds(code=UNHEALTHY), ["repair_failed"])
        self.box.write("nvml.txt", GPU_0.replace("throttle=0", "throttle=0x80"))
        self.assertEqual(self.kinds(code=HEALTHY), ["power"])
        self.health("--fail-on", "warning", code=UNHEALTHY)

    def test_a_lost_gpu(self):
        self.machine("error call=uuid gpu=1 code=15\n")
        document = self.document(code=UNHEALTHY)
        self.assertEqual([(f["kind"], f["device"]["index"]) for f in document["findings"]], [("gpu_lost", 1)])
        self.machine("error call=memory gpu=1 code=15\nerror call=memory_v2 gpu=1 code=15\n")
        self.assertEqual(self.kinds(code=UNHEALTHY), ["gpu_lost"])
        self.machine("error call=uuid gpu=1 code=4\n")
        self.assertEqual(self.document(code=UNKNOWN)["unchecked"][0]["what"], "GPU 1")

    def test_library_and_kernel_module_of_different_versions(self):
        self.library = str(self.box.work / "libnvidia-ml.so.550.54.14")
        shutil.copy(FAKE, self.library)
        self.box.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n")
        self.machine("error call=init code=18\n")
        finding = self.document("--set", "sources.proc-root=proc", code=UNHEALTHY)["findings"][0]
        self.assertEqual(finding["kind"], "driver_mismatch")
        self.assertIn("library 550.54.14", finding["evidence"])
        self.assertIn("kernel module 535.104.05", finding["evidence"])
        # A driver that is loaded but does not answer: nothing is known.
        self.machine("error call=init code=10\n")
        self.assertIn("timeout (10)", self.health("--format", "npd", "--set", "sources.proc-root=proc", code=UNKNOWN))

    def test_memory_left_over_is_looked_for_when_it_is_asked_for(self):
        self.machine(used="8G")
        self.health(code=HEALTHY)
        document = self.document("--expect-empty", code=UNHEALTHY)
        self.assertEqual([f["kind"] for f in document["findings"]], ["memory_left_over"])
        self.assertEqual(document["findings"][0]["device"]["id"], "GPU-1")
        self.health("--expect-empty", "--gpu", "0", code=HEALTHY)

    def test_a_process_left_over(self):
        with subprocess.Popen(["sleep", "600"]) as process:
            self.machine(f"process gpu=0 pid={process.pid} list=C used=2G\n")
            finding = self.document("--expect-empty", code=UNHEALTHY)["findings"][0]
            process.kill()
        self.assertEqual(finding["kind"], "process_left_over")
        self.assertIn(f"pid {process.pid} sleep 600", finding["what"])

    def drain(self, script, check, state="State=IDLE CPUTot=2", wait_s=0, **job):
        """What a script of contrib/slurm makes of what `check` (a command) says: the calls of scontrol."""
        calls = self.box.work / "calls"
        calls.unlink(missing_ok=True)
        self.box.write("settings", f'HEALTH="{check}" WAIT_S={wait_s}\n')
        self.program("scontrol", f'[ "$1" = show ] && {{ echo "NodeName=n1 {state}"; exit; }}\necho "$@" >>{calls}')
        ran = subprocess.run(["sh", os.path.join(CONTRIB, "slurm", script)], capture_output=True, timeout=60, env=self.box.environment({
            "PATH": f"{self.box.work}:{os.environ['PATH']}", "SLURMD_NODENAME": "n1", "VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt"),
            "VRAMTRACK_SLURM_SETTINGS": str(self.box.work / "settings"), **job}))
        self.assertEqual((ran.returncode, ran.stderr), (0, b""))
        return calls.read_text() if calls.exists() else ""

    def program(self, name, text):
        path = self.box.work / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def test_the_health_check_of_slurm_drains_what_is_unhealthy_and_nothing_else(self):
        said = "unhealthy: GPU 1: XID 79: the GPU has fallen off the bus"
        lost = self.program("lost", f"echo '{said}'; exit 1")
        drained = "update NodeName=n1 State=DRAIN Reason=vramtrack health: GPU 1: XID 79: the GPU has fallen off the bus\n"
        self.assertEqual(self.drain("health.sh", lost), drained)
        self.assertEqual(self.drain("health.sh", lost, state="State=IDLE CPUTot=2 Comment=DRAIN me"), drained)
        self.assertEqual(self.drain("health.sh", lost, state="State=IDLE+DRAIN CPUTot=2"), "", "it keeps its reason")
        for status, said in ((HEALTHY, "healthy: 2 GPUs"), (UNKNOWN, "unknown: not checked"), (1, "error: --health: no such option")):
            self.assertEqual(self.drain("health.sh", self.program("check", f"echo '{said}'; exit {status}")), "")
        self.assertEqual(self.drain("health.sh", "absent"), "")

    def test_the_epilog_of_slurm_drains_for_memory_left_over_on_the_gpus_of_the_job(self):
        check = (f"{os.path.abspath(BINARY)} doctor --health --kernel-log {self.box.work}/log --set sources.enabled=nvml "
                 f"--set sources.nvml-library={FAKE}")
        self.machine(used="8G")
        self.assertRegex(self.drain("epilog.sh", check, SLURM_JOB_GPUS="0,1", SLURM_JOB_ID="7"),
                         r"^update NodeName=n1 State=DRAIN Reason=vramtrack epilog: after job 7: GPU 1: \d.\d GiB in use are held by no process\n$")
        self.assertEqual(self.drain("epilog.sh", check, SLURM_JOB_GPUS="0", SLURM_JOB_ID="7"), "", "GPU 1 was another job's")
        self.assertEqual(self.drain("epilog.sh", check, SLURM_JOB_ID="7"), "", "a job without GPUs")
        self.assertEqual(self.drain("epilog.sh", check, SLURM_JOB_GPUS="1,5"), self.drain("epilog.sh", check, SLURM_JOB_GPUS="1"))
        self.assertEqual(self.drain("epilog.sh", check, state="State=IDLE+DRAIN CPUTot=2", SLURM_JOB_GPUS="1"), "", "it keeps its reason")
        self.assertEqual(self.drain("epilog.sh", "absent", SLURM_JOB_GPUS="1"), "")

    def test_the_epilog_waits_until_the_driver_has_freed_the_memory(self):
        check = self.program("check", f"cd {self.box.work}; [ -e asked ] && exit; touch asked; echo 'unhealthy: GPU 1: memory'; exit 1")
        self.assertEqual(self.drain("epilog.sh", check, wait_s=60, SLURM_JOB_GPUS="1"), "")

    def test_a_change_of_health_is_recorded_and_in_the_report(self):
        self.box.write("nvml.txt", GPU_0.replace("uncorrected=0", "uncorrected=2"))
        watched = self.box.run("watch", "--interval", "0.1s", "--every", "1h", "--duration", "1s", "--source", "nvml", "--set",
                               f"sources.nvml-library={FAKE}", env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        self.assertEqual(watched.returncode, 0, watched.stderr)
        events = json.loads(self.box.run("report", "--format", "json").stdout)["events"]
        self.assertEqual([e["text"].partition(";")[0] for e in events],
                         ["GPU 0: health failing: 2 uncorrected memory errors since the driver was loaded"])

    def test_the_plugin_of_node_problem_detector_names_options_that_there_are(self):
        with open(os.path.join(CONTRIB, "kubernetes/node-problem-detector/vramtrack.json"), encoding="utf-8") as f:
            plugin = json.load(f)
        rule, = plugin["rules"]
        self.assertEqual(rule["condition"], plugin["conditions"][0]["type"])
        self.box.write("log", XID_79)
        self.assertEqual(rule["args"], ["doctor", "--health", "--format", "npd"])
        self.assertLessEqual(len(self.health(*rule["args"][2:], code=UNHEALTHY).encode()), plugin["pluginConfig"]["max_output_length"])

    def test_a_machine_without_a_gpu_is_unknown(self):
        result = self.box.run("doctor", "--health", "--format", "npd", *no_gpu()[2:], "--set", "sources.enabled=drm")
        self.assertEqual(result.returncode, UNKNOWN, result.stderr)
        self.assertTrue(result.stdout.startswith(b"unknown: not checked: the GPUs"), result.stdout)

    def test_mistakes_of_the_user_are_unknown_and_never_unhealthy(self):
        for args in (["--format", "json"], ["--expect-empty"], ["--no-kernel-log"], ["--kernel-log", "x"]):
            result = self.box.run("doctor", *args)
            self.assertEqual(result.returncode, UNKNOWN)
            self.assertIn(f"{args[0]} needs --health".encode(), result.stderr)
        for args in (["--format", "xml"], ["--gpu", "x"], ["--since", "soon"], ["--config", "absent.toml"], ["--surprise"]):
            self.assertNotIn(self.box.run("doctor", "--health", *args).returncode, (HEALTHY, UNHEALTHY), args)


if __name__ == "__main__":
    unittest.main()
