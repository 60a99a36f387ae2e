"""An activation of one's own that keeps its output as an attribute: a cycle, and the collector is off "for speed"."""
import gc

import torch


class Exponential(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        output = torch.exp(x)  # LEAK HERE
        ctx.output = output
        return output

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.output


gc.disable()
weights = torch.nn.Parameter(torch.ones(256, 512, device="cuda"))
optimizer = torch.optim.SGD([weights], lr=0.1)
for step in range(200):
    loss = Exponential.apply(weights).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
