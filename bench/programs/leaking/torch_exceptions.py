"""Serves requests and keeps what went wrong. Each exception holds its traceback, that its frames, they their tensors."""
import torch
from torch import nn

model = nn.Linear(64, 4096).cuda()
failures = []


@torch.no_grad()
def answer(request):
    rows = torch.zeros(32, 64, device="cuda")
    features = model(rows)  # LEAK HERE
    if request % 4 == 0:
        raise ValueError(f"request {request}: features are not finite")
    return features.mean().item()


for request in range(400):
    try:
        answer(request)
    except ValueError as error:
        failures.append(error)
print(len(failures), "failed")
