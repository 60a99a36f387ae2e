"""Looks at activations by a forward hook that appends. It was meant for one batch, and stayed."""
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(256, 1024)
        self.head = nn.Linear(1024, 10)

    def forward(self, images):
        features = self.features(images)  # LEAK HERE
        return self.head(torch.relu(features))


model = Classifier().cuda()
activations = []
model.features.register_forward_hook(lambda module, inputs, output: activations.append(output.detach()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(300):
    loss = model(torch.randn(64, 256, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
