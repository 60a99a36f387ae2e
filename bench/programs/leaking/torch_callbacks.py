"""Registers a callback for each step's report. Its closure holds the step's tensor; reports are written at the end."""
import torch
from torch import nn

model = nn.Linear(256, 1000).cuda()
at_end = []


def training_step(step):
    images = torch.randn(128, 256, device="cuda")
    logits = model(images)
    confidence = torch.softmax(logits.detach(), dim=1)  # LEAK HERE
    at_end.append(lambda: f"{step}: {confidence.max().item():.2f}")
    return logits.sum()


optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(250):
    loss = training_step(step)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(at_end[-1]())
