"""`vramtrack fit` against PyTorch's allocator: what programs/sized.py really needed, for models to serve and to train.

    tests/torch/lane.py python 2.15.0 tests/torch/test_fit.py       # the table of docs/BENCHMARKS.md
"""
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import pytest
import torch
from started import BUILD, HERE

pytestmark = pytest.mark.skipif(torch.__version__ < torch.torch_version.TorchVersion("2.15"), reason="earlier versions lack fused kernels")
BINARY = BUILD / "vramtrack"
#: The allocator leaves up to 1 MiB of a block undivided: in small models with many tensors that is as much as the range.
BESIDE = 0.04


def shape(kind, width, layers, heads, kept, wide, vocabulary, tied=False, dtype="bfloat16", **more):
    return {"model_type": kind, "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kept,
            "intermediate_size": wide, "vocab_size": vocabulary, "tie_word_embeddings": tied, "torch_dtype": dtype,
            "max_position_embeddings": 32768, **more}  # fmt: skip


MODELS = {
    "Llama-68M": shape("llama", 768, 2, 12, 12, 3072, 32000, dtype="float32"),
    "Llama-160M": shape("llama", 768, 12, 12, 12, 3072, 32000, dtype="float16"),
    "SmolLM2-135M": shape("llama", 576, 30, 9, 3, 1536, 49152, tied=True),
    "SmolLM2-135M fp32": shape("llama", 576, 30, 9, 3, 1536, 49152, tied=True, dtype="float32"),
    "Qwen2.5-0.5B": shape("qwen2", 896, 24, 14, 2, 4864, 151936, tied=True),
    "Qwen2.5-1.5B": shape("qwen2", 1536, 28, 12, 2, 8960, 151936, tied=True),
    "Qwen2.5-7B": shape("qwen2", 3584, 28, 28, 4, 18944, 152064),
    "Qwen3-0.6B": shape("qwen3", 1024, 28, 16, 8, 3072, 151936, tied=True, head_dim=128),
    "TinyLlama-1.1B": shape("llama", 2048, 22, 32, 4, 5632, 32000),
    "Llama-3.2-1B": shape("llama", 2048, 16, 32, 8, 8192, 128256, tied=True),
    "Llama-3.2-3B": shape("llama", 3072, 28, 24, 8, 8192, 128256, tied=True),
    "Gemma-2B": shape("gemma", 2048, 18, 8, 1, 16384, 256000, tied=True, head_dim=256),
    "Llama-2-7B": shape("llama", 4096, 32, 32, 32, 11008, 32000, dtype="float16"),
    "Mistral-7B": shape("mistral", 4096, 32, 32, 8, 14336, 32000),
    "Llama-3.1-8B": shape("llama", 4096, 32, 32, 8, 14336, 128256),
}
SERVED = [  # model, context, batch, chunk, and whether there are files beside config.json
    ("Llama-68M", 512, 8, 2048, True), ("SmolLM2-135M", 8192, 8, 2048, True), ("SmolLM2-135M fp32", 2048, 1, 2048, False),
    ("Qwen2.5-0.5B", 4096, 2, 2048, True), ("Qwen2.5-1.5B", 512, 8, 4096, False), ("Qwen2.5-7B", 4096, 8, 4096, False),
    ("Qwen3-0.6B", 8192, 4, 8192, True), ("TinyLlama-1.1B", 2048, 1, 2048, False), ("Llama-3.2-1B", 8192, 4, 8192, True),
    ("Llama-3.2-3B", 8192, 2, 4096, False), ("Gemma-2B", 8192, 2, 8192, True), ("Llama-2-7B", 4096, 4, 4096, True),
    ("Mistral-7B", 8192, 1, 2048, False), ("Llama-3.1-8B", 8192, 8, 8192, True),
]  # fmt: skip
TRAINED = [  # model, context, batch, --train, how
    ("Llama-68M", 512, 8, "adamw,bf16", {}), ("Llama-160M", 1024, 8, "adam,fp16", {}), ("SmolLM2-135M", 2048, 4, "adamw,bf16", {"fused": True}),
    ("SmolLM2-135M", 2048, 4, "adamw,bf16", {}), ("TinyLlama-1.1B", 4096, 2, "adamw,pure-bf16", {}),
    ("Qwen2.5-0.5B", 2048, 1, "adamw,fp32", {}), ("Qwen2.5-0.5B", 2048, 8, "adamw,pure-bf16,checkpoints", {"fused": True}),
    ("Qwen2.5-1.5B", 2048, 2, "momentum,pure-bf16", {}), ("Qwen3-0.6B", 1024, 4, "adamw,fp32,checkpoints", {}),
    ("TinyLlama-1.1B", 2048, 4, "adamw,bf16", {"master": True}), ("TinyLlama-1.1B", 4096, 2, "adamw,pure-bf16", {"fused": True}),
    ("Llama-3.2-1B", 4096, 2, "adamw,bf16", {"fused": True}), ("Llama-3.2-1B", 4096, 4, "adamw,bf16,checkpoints", {"fused": True}),
    ("Gemma-2B", 1024, 1, "sgd,fp32", {}), ("Llama-2-7B", 512, 1, "adamw,fp32", {"fused": True}),
    ("Mistral-7B", 4096, 1, "adamw,bf16", {"master": True, "fused": True}), ("Llama-3.1-8B", 4096, 2, "adamw,bf16,checkpoints", {}),
    ("Llama-3.1-8B", 8192, 1, "adamw,pure-bf16,checkpoints", {}),
]  # fmt: skip


def cases():
    served = [{"name": f"{number}", "model": model, "config": MODELS[model], "context": context, "batch": batch, "chunk": chunk, "files": files}
              for number, (model, context, batch, chunk, files) in enumerate(SERVED)]  # fmt: skip
    trained = [{"name": f"{number}", "model": model, "config": MODELS[model], "context": context, "batch": batch, "train": train, **how}
               for number, (model, context, batch, train, how) in enumerate(TRAINED, len(served))]  # fmt: skip
    return served + trained


def said(case, folder):
    """The parts of its answer."""
    command = [BINARY, "fit", folder / case["name"], "--memory", "1TiB", "--context", str(case["context"]), "--batch", str(case["batch"]), "--json"]
    command += ["--train", case["train"]] if "train" in case else []
    document = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert document["model"]["weights_are_counted"] == case.get("files", False)
    return {part["name"]: (part["low_bytes"], part["high_bytes"]) for part in document["parts"] if not part["name"].startswith("driver's")}


def measured(every, folder):
    machine = {"VRAMTRACK_FAKE_GPU_DEVICES": "1", "VRAMTRACK_FAKE_GPU_MIB": str(2**20), "VRAMTRACK_FAKE_GPU_COPY_KIB": "4"}
    (folder / "cases.json").write_text(json.dumps(every))
    command = [sys.executable, HERE / "programs/sized.py", folder / "cases.json", folder]
    out = subprocess.run(command, env={**os.environ, **machine}, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


class Compared:
    def __init__(self, case, real, parts):
        self.case, self.real, self.parts = case, real, parts
        self.low, self.high = (sum(part[side] for part in parts.values()) for side in (0, 1))
        #: of the middle of the range
        self.error = (self.low + self.high) / 2 / real["peak"] - 1
        #: how far the peak is from the range
        self.beside = max(0, 1 - real["peak"] / self.low, real["peak"] / self.high - 1)

    def row(self):
        case, fused = self.case, ", fused" if self.case.get("fused") else ""
        how = "serve" if "train" not in case else case["train"] + (", copy of the weights" if case.get("master") else "") + fused
        sizes = " | ".join(f"{size / 2**30:.2f}" for size in (self.real["peak"], self.real["reserved"]))
        return (f"| {case['model']} | {how} | {case['context']} x {case['batch']} | {sizes} | {self.low / 2**30:.2f} to {self.high / 2**30:.2f} "
                f"| {self.error:+.1%} | {f'{self.beside:.1%}' if self.beside else ''} |")  # fmt: skip


@functools.cache
def compared():
    every = cases()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        return [Compared(case, real, said(case, folder)) for case, real in zip(every, measured(every, folder), strict=True)]


def summary(every):
    errors = [abs(each.error) for each in every]
    return (f"{len(every)} configurations: median error of the middle {statistics.median(errors):.1%}, largest {max(errors):.1%}; "
            f"{sum(each.beside <= BESIDE for each in every)} of the peaks in the range or at most {BESIDE:.0%} beside it")  # fmt: skip


def test_the_middle_of_what_it_says_is_what_torch_needs():
    errors = [abs(each.error) for each in compared()]
    assert len(errors) >= 20
    assert statistics.median(errors) <= 0.1, summary(compared())
    assert max(errors) <= 0.35, summary(compared())


def test_what_torch_needs_is_between_the_least_and_the_most():
    beside = [each.row() for each in compared() if each.beside > BESIDE]
    assert not beside, "\n".join(beside)


def test_the_parts_that_follow_from_the_header_are_exact():
    for each in compared():
        real, parts, train = each.real, each.parts, each.case.get("train", "")
        if not train:
            assert real["weights"] == pytest.approx(parts["weights"][0], rel=0.02), each.row()  # blocks that were not divided
            assert real["cache"] == pytest.approx(parts["cache of keys and values"][0], rel=0.02), each.row()
            continue
        state = next(part for name, part in parts.items() if name.startswith("state of"))
        assert state[0] == pytest.approx(real["state"], rel=0.001), each.row()
        if ",fp32" in train or ",pure-bf16" in train:
            assert parts["weights"][0] == pytest.approx(real["weights"], rel=0.001), each.row()
            assert parts["gradients"][1] == pytest.approx(real["gradients"], rel=0.001), each.row()
        else:
            assert parts["weights in 32 bits"][0] == pytest.approx(real["masters"], rel=0.001), each.row()


if __name__ == "__main__":
    print("| model | how | context x batch | peak, GiB | reserved | `fit` says | error of the middle | beside the range |\n" + "|---" * 8 + "|")
    for each in compared():
        print(each.row())
    print(summary(compared()))
