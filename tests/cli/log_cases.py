"""Small logs and messages of the shape of public ones, by the real binary: each with the facts its reader needs."""
import sys
import unittest

from log_case import Case, LogTests
from sandbox import FIXTURES

BINARY = sys.argv.pop(1)
FOLDER = FIXTURES / "log_cases"


class Logs(LogTests):
    binary = BINARY

    def read(self, name, *args):
        return Case(self.sandbox, *args, str(FOLDER / name))

    def devices(self, case):
        return {row["series"]["device"] for row in case.rows if row["series"]["metric"] == "device_used"}

    def leaks(self, case):
        return any(row["verdict"]["leak"] for row in case.rows)

    def test_gpus_are_never_merged(self):
        for name in ("one_row_missing_8gpus.csv", "split_reading_8gpus.csv", "gpu_and_constant_index.csv"):
            with self.subTest(name):
                self.assertEqual(self.devices(self.read(name)), {str(gpu) for gpu in range(8)})

    def test_a_log_without_memory_is_no_card_without_memory(self):
        case = self.read("amdsmi_metric_without_memory.csv")
        for words in ("no column of used memory", "'mem' is the temperature of the memory", "'mem_voltage'", "amd-smi metric --mem-usage"):
            self.assert_refused(case, words)
        self.assertNotIn("no memory of its own", case.error)

    def test_bytes_behind_a_word(self):
        case = self.read("bytes_after_a_word.log")
        self.assertFalse(self.leaks(case), case.text)
        self.assertEqual(case.of()["samples"], 31)

    def test_a_suggested_pattern_reads_all_rows(self):
        refused = self.read("table_with_deltas.txt")
        self.assert_refused(refused, "reads 40 of the 40 lines")
        pattern = refused.error.split("for example '")[1].split("'")[0]
        case = self.read("table_with_deltas.txt", "--line-pattern", pattern)
        self.assertEqual(case.of()["samples"], 40)
        self.assertFalse(self.leaks(case), case.text)

    def test_a_program_that_repeats_itself_is_not_several_gpus(self):
        read = " ".join(self.read("nodes_of_one_gpu.log").text.split())
        pattern = read.split("to correct it: --line-pattern '")[1].split("'")[0]
        for args in ((), ("--line-pattern", pattern), ("--line-pattern", "start_vram: (?<used>[0-9]+) -", "--unit", "B")):
            with self.subTest(args=args):
                case = self.read("nodes_of_one_gpu.log", *args)
                self.assertEqual(self.devices(case), {"0"})
                self.assertFalse(self.leaks(case), case.text)
                self.assertNotIn("3 GPUs", case.text + case.error)

    def test_used_memory_never_exceeds_the_total(self):
        case = self.read("avail_and_usage_of_a_stage.log")
        self.assertIn("100.4/110.2 GiB now", case.text)

    def test_each_run_begins_higher_until_one_does_not_fit(self):
        case = self.read("step_per_run_until_full.csv")
        self.assertEqual(case.code, 1, case.text)
        self.assertTrue(self.leaks(case), case.text)

    def test_scrapes_of_exporters(self):
        for name, device in (("exporters_own_pod.om", "GPU-0002"), ("ray_metrics.om", "10.0.4.4/0")):
            with self.subTest(name):
                case = self.read(name)
                self.assertEqual(case.code, 1, case.text + case.error)
                self.assertEqual([row["series"]["device"] for row in case.rows if row["verdict"]["leak"]], [device], case.text)
                self.assertNotIn("dcgm-exporter-", case.text)


class Messages(LogTests):
    """`explain` of a message: what it must say, and what it must not."""

    binary = BINARY

    def test_each_says_what_its_reader_must_know(self):
        for name, words, never in (
            ("raylet_summary.txt", ["HOST MEMORY", "Ray ended 3 workers"], []),
            ("arena_alloc_failed.txt", ["FULL: 1.75 GiB were requested", "58.56 GiB of the GTT's 62.47 GiB", "amdgpu.gttsize"], ["CANNOT TELL"]),
            ("omniverse_vulkan.txt", ["CANNOT TELL", "not who holds it"], []),
            (
                "trtllm_creation_table.txt",
                ["TOO BIG: KV cache, which could not be created", "108.86 GiB of the device's 140.06 GiB", "28.85 GiB of Model", "free_gpu_memory_fraction", "max_tokens"],
                ["OTHERS"],
            ),
            ("llamacpp_fit.txt", ["TOO BIG", "24.26 GiB", "21.82 GiB"], []),
            ("mps_other_allocations.txt", ["HELD OUTSIDE THE ALLOCATOR"], ["CUDA_VISIBLE_DEVICES", "vramtrack holders"]),
            ("pinned_zero_mib.txt", ["pinning does not work here"], ["0 bytes were requested"]),
        ):
            with self.subTest(name):
                told = " ".join(self.sandbox.run("explain", str(FOLDER / name)).stdout.decode().split())
                for each in words:
                    self.assertIn(each, told)
                for each in never:
                    self.assertNotIn(each, told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
