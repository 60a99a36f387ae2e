"""What docs/python.md says to write for each trainer and server, with the real one."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
MIB = 2**20

if "VRAMTRACK_TORCH_LANE" not in os.environ:
    pytest.skip("these tests need their own environment: tests/trainers/trainers.py", allow_module_level=True)


def watches(what, **environment):
    own = {name: value for name, value in os.environ.items() if name != "VRAMTRACK_WATCH"}
    done = subprocess.run([sys.executable, HERE / "program.py", what], env={**own, "VRAMTRACK_FAKE_GPU_DEVICES": "2", **environment}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("WATCHES ")).partition(" ")[2])


@pytest.mark.parametrize("what", ["verl", "vllm", "sglang"])
def test_a_process_of_it_is_watched_where_the_word_is_set(what, tmp_path):
    assert watches(what, VRAMTRACK_WATCH=str(tmp_path)) == {"1": [True, str(tmp_path)]}
    assert watches(what) == {}


def test_verl_takes_it_as_its_external_library():
    assert watches("nothing", VRAMTRACK_WATCH="1") == {}
    assert watches("verl", VRAMTRACK_WATCH="1", VERL_USE_EXTERNAL_PLUGINS="none", VERL_USE_EXTERNAL_MODULES="vramtrack.workers") == {"1": [True, None]}


def test_ray_train(tmp_path):
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    def train():
        import json
        import os
        import time

        import ray.train
        import torch
        import vramtrack.workers

        model = torch.nn.Linear(512, 512).to(ray.train.torch.get_device())
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        until = time.monotonic() + 120
        while time.monotonic() < until and not vramtrack.workers.watches():
            time.sleep(0.05)
        for _ in range(7):
            model(torch.ones(8, 512, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        (watch,) = vramtrack.workers.watches().values()
        found = {"steps": watch._marks.series["step"].count, "samples": len(watch.samples), "pid": os.getpid()}
        (tmp_path / "found.json").write_text(json.dumps(found))

    ray.init(num_cpus=2, num_gpus=1, include_dashboard=False, runtime_env={"worker_process_setup_hook": "vramtrack.workers.start"})
    try:
        trainer = TorchTrainer(train, scaling_config=ScalingConfig(num_workers=1, use_gpu=True), torch_config=TorchConfig(backend="gloo"),
                               run_config=RunConfig(storage_path=str(tmp_path)))  # fmt: skip
        trainer.fit()
    finally:
        ray.shutdown()
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["steps"] == 7 and found["samples"] >= 1 and found["pid"] != os.getpid()


def test_trl(tmp_path):
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from trl import SFTConfig, SFTTrainer

    import vramtrack.huggingface

    words = ["<pad>", "<eos>", *"the quick brown fox jumps over a lazy dog".split()]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
    config = LlamaConfig(vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, attn_implementation="eager")
    device = vramtrack.SimulatedDevice(capacity_bytes=24 * 2**30)
    device.allocate(100 * MIB)
    callback = vramtrack.huggingface.VramtrackCallback(source=device)  # it counts tokens: on the doubles of CUDA nothing is computed
    trainer = SFTTrainer(
        model=LlamaForCausalLM(config),
        args=SFTConfig(output_dir=str(tmp_path), max_steps=6, per_device_train_batch_size=2, report_to=[], save_strategy="no", bf16=False, use_cpu=True,
                       gradient_checkpointing=False, dataloader_num_workers=0, logging_steps=3),  # fmt: skip
        train_dataset=Dataset.from_dict({"text": ["the quick brown fox jumps over a lazy dog"] * 32}),
        processing_class=tokenizer,
        callbacks=[callback],
    )
    trainer.train()
    watch = callback.watch
    assert watch._marks.series["step"].count == 6 and watch.samples[-1].allocator_allocated == 100 * MIB


def test_lightning_fabric():
    import torch
    from lightning.fabric import Fabric

    from vramtrack.fabric import VramtrackCallback

    callback = VramtrackCallback()
    fabric = Fabric(accelerator="cuda", devices=1, callbacks=[callback])
    fabric.launch()
    model = torch.nn.Linear(64, 64)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.1))
    for _ in range(2):
        for _ in range(3):
            fabric.backward(model(torch.ones(4, 64, device=fabric.device)).sum())
            optimizer.step()
            optimizer.zero_grad()
        fabric.call("on_train_epoch_end")
    watch = callback.watch
    assert (watch._marks.series["step"].count, watch._marks.series["epoch"].count) == (6, 2)
    fabric.call("on_fit_end")
    assert callback.watch is None and watch._thread is None


def test_lightning():
    import lightning
    import torch

    import vramtrack.lightning

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(64, 64)

        def training_step(self, batch, index):
            return self.layer(batch[0]).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(12, 64)), batch_size=4)
    callback = vramtrack.lightning.VramtrackCallback()
    trainer = lightning.Trainer(accelerator="gpu", devices=1, max_epochs=2, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, callbacks=[callback])  # fmt: skip
    trainer.fit(Model(), data)
    series = callback.watch._marks.series
    assert (series["step"].count, series["epoch"].count) == (6, 2) and callback.watch.samples[-1].allocator_allocated > 0
