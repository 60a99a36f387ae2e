"""Serves requests, keeps the words of what went wrong, and meets out-of-memory errors with a smaller batch."""
import torch
from torch import nn

model = nn.Linear(64, 4096).cuda()
failures = []


@torch.no_grad()
def answer(request, rows):
    if request % 40 == 7:
        torch.empty(1 << 40, device="cuda")  # more than there is
    features = model(torch.zeros(rows, 64, device="cuda"))
    if request % 4 == 0:
        raise ValueError(f"request {request}: features are not finite")
    return features.mean().item()


for request in range(400):
    try:
        answer(request, rows=32)
    except ValueError as error:
        failures.append(str(error))
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        model(torch.zeros(8, 64, device="cuda"))
print(len(failures), "failed")
