"""Holds this many MiB until it is killed; exits with 1 and torch's message where there is not enough."""
import signal
import sys

import torch

try:
    held = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    sys.exit(print(error) or 1)
print("held", flush=True)
signal.pause()
