"""vramtrack fit: models on disk against the fake NVML's GPUs, and its answers, errors and exit statuses."""
import json
import os
import re
import struct
import sys
import unittest

from sandbox import TESTS, Sandbox, expect_golden, no_gpu

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")
CONFIG = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
          "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16", "max_position_embeddings": 131072}
GI = 2**30


class Fit(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        self.box.write("llama/config.json", json.dumps(CONFIG))

    def fit(self, *args, code):
        result = self.box.run("fit", *args)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_yes_no_and_unsure_have_exit_statuses(self):
        said = self.fit("llama", "--memory", "80GiB", "--context", "32k", "--batch", "8", code=0).stdout.decode()
        expect_golden(self, "fit_yes.txt", said)
        said = self.fit("llama/config.json", "--memory", "24GiB", "--context", "32k", "--batch", "8", code=1).stdout.decode()
        expect_golden(self, "fit_no.txt", said)
        document = json.loads(self.fit("llama", "--memory", "24GiB", "--json", code=0).stdout)
        between = (document["need_low_bytes"] + document["need_high_bytes"]) / 2 / 2**20
        said = self.fit("llama", "--memory", f"{int(between)}MiB", code=3).stdout.decode()
        self.assertTrue(said.startswith("unsure: "), said)

    def test_heads_that_cannot_be_divided_among_the_gpus(self):
        said = self.fit("llama", "--memory", "80GiB", "--shards", "3", code=1).stdout.decode()
        expect_golden(self, "fit_heads.txt", said)

    def test_it_says_what_to_change_and_that_this_is_enough(self):
        args = ("--memory", "24GiB", "--batch", "8")
        document = json.loads(self.fit("llama", *args, "--context", "32k", "--json", code=1).stdout)
        self.assertEqual(document["schema"], "vramtrack.fit.v1")
        what = [change["what"] for change in document["changes"]]
        tokens = next(w.split()[3].replace(",", "") for w in what if w.startswith("a context of"))
        self.fit("llama", *args, "--context", tokens, code=0)
        batch = next(w.split()[3] for w in what if w.startswith("a batch of"))
        self.fit("llama", "--memory", "24GiB", "--batch", batch, "--context", "32k", code=0)
        shards = next(w.split()[0] for w in what if "such GPUs" in w)
        self.fit("llama", *args, "--context", "32k", "--shards", shards, code=0)

    def test_the_example_of_the_manual(self):
        text = (TESTS.parent / "docs/fit.md").read_text()
        example = re.search(r"^    \$ vramtrack fit (.*)\n((?:    .*\n|\n)+)", text, re.MULTILINE)
        self.box.write("Llama-3.1-8B/config.json", json.dumps(CONFIG))
        said = self.fit(*example[1].split(), code=1).stdout.decode()
        self.assertEqual(said, re.sub(r"^    ", "", example[2].rstrip("\n") + "\n", flags=re.MULTILINE))

    def test_training(self):
        said = self.fit("llama", "--memory", "80GiB", "--train", "adamw,bf16", "--context", "4096", code=1).stdout.decode()
        self.assertIn("state of adamw", said)
        self.assertIn("LoRA", said)
        self.fit("llama", "--memory", "80GiB", "--train", "adamw8bit,bf16,lora,checkpoints", "--context", "4096", code=0)

    @unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
    def test_it_is_compared_with_what_is_free_on_a_gpu_here(self):
        self.box.write("nvml.txt", "gpu 0 uuid=GPU-0 name=Fake total=80G used=70G reserved=1G\ngpu 1 uuid=GPU-1 name=Fake total=80G used=10G\n")
        machine = ["--source", "nvml", "--set", f"sources.nvml-library={FAKE}"]

        def asked(*args, code):
            result = self.box.run("fit", "llama", "--json", *machine, *args, env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
            self.assertEqual(result.returncode, code, result.stderr)
            return json.loads(result.stdout) if code != 2 else result.stderr

        self.assertEqual((asked(code=0)["where"], asked(code=0)["free_bytes"]), ("GPU 1", 70 * GI))
        self.assertEqual(asked("--gpu", "0", code=1)["free_bytes"], 9 * GI)
        self.assertIn(b"there is no GPU 5 here", asked("--gpu", "5", code=2))

    def test_files_that_cannot_be_read(self):
        self.box.write("model.safetensors", "x")
        (self.box.work / "cut.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 1))
        (self.box.work / "zip.gguf").write_bytes(b"PK\x03\x04" * 100)
        for path, said in (("none", "none: there is no such file or folder; models are read from disk, not fetched"),
                           ("cut.gguf", "cut.gguf: offset 24: the file ends within its header; was it downloaded completely?"),
                           ("zip.gguf", "zip.gguf: offset 0: a GGUF file begins with 'GGUF'"), (".", "there is no config.json in this folder")):
            with self.subTest(path):
                self.assertIn(said, self.fit(path, "--memory", "24GiB", code=2).stderr.decode())
        self.box.write("llama/model.safetensors", "x")
        self.assertIn(b"model.safetensors: offset 1: the file ends within the 8 bytes", self.fit("llama", "--memory", "24GiB", code=2).stderr)

    def test_wrong_options(self):
        for args, said in ((["--context", "8q"], b"write, for example, 8192 or 32k"), (["--context", "0"], b"--context: must be greater than zero"),
                           (["--cache", "q9"], b"'q9' is not a known type of cache"), (["--train", "x"], b"'x' is not known; expected an optimizer"),
                           (["--utilization", "2"], b"not a number from 0.01 to 1")):
            with self.subTest(args):
                self.assertIn(said, self.fit("llama", "--memory", "24GiB", *args, code=2).stderr)
        result = self.box.run("fit", "llama", *no_gpu())
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"no GPU found", result.stderr)
        self.assertIn(b"--memory 24GiB", result.stderr)


if __name__ == "__main__":
    unittest.main()
