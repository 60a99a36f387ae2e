"""A process as a server or trainer starts it: its hooks run, it uses a GPU, and it says what watches it.

    program.py verl|vllm|sglang|nothing
"""
import json
import sys
import time

what = sys.argv[1]
if what == "verl":
    import verl  # noqa: F401
elif what == "vllm":
    from vllm.plugins import load_general_plugins

    load_general_plugins()
elif what == "sglang":
    from sglang.srt.plugins import load_plugins

    load_plugins()

workers = sys.modules.get("vramtrack.workers")
import torch  # noqa: E402

held = torch.ones(2**20, device="cuda:1")
until = time.monotonic() + (60 if workers is not None and workers._options is not None else 0)
while time.monotonic() < until and not (workers.watches() and workers.watches()[1].samples):
    time.sleep(0.05)
watches = workers.watches() if workers is not None else {}
print("WATCHES", json.dumps({device: [len(watch.samples) > 0, watch.directory] for device, watch in watches.items()}))
