"""Pins each batch before it is copied. PyTorch keeps the pinned memory and uses it again."""
import torch
from torch import nn

model = nn.Linear(1024, 10).cuda()
for step in range(400):
    batch = torch.zeros(64 + step % 5 * 32, 1024).pin_memory()
    output = model(batch.to("cuda", non_blocking=True))
    torch.cuda.synchronize()
