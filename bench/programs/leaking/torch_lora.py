"""Serves tenants with an adapter each. Adapters are loaded when a tenant comes, and stay when it goes."""
import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, inputs, outputs, rank=16):
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, inputs, device="cuda"))  # LEAK HERE
        self.up = nn.Parameter(torch.zeros(outputs, rank, device="cuda"))

    def forward(self, x):
        return x @ self.down.T @ self.up.T


base = nn.Linear(4096, 1024).cuda()
adapters = {}


@torch.no_grad()
def serve(tenant):
    if tenant not in adapters:
        adapters[tenant] = Adapter(4096, 1024)
    x = torch.randn(8, 4096, device="cuda")
    return base(x) + adapters[tenant](x)


for request in range(600):
    serve(tenant=request // 4)
