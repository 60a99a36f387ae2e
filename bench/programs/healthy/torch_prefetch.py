"""Prefetches batches to the device on its own stream: one is in use, one on its way."""
import torch
from torch import nn


class Prefetcher:
    def __init__(self, batches):
        self.batches = iter(batches)
        self.stream = torch.cuda.Stream()
        self.coming = None
        self.fetch()

    def fetch(self):
        batch = next(self.batches, None)
        with torch.cuda.stream(self.stream):
            self.coming = None if batch is None else batch.to("cuda", non_blocking=True)

    def __iter__(self):
        while self.coming is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            batch = self.coming
            batch.record_stream(torch.cuda.current_stream())
            self.fetch()
            yield batch


dataset = (torch.zeros(64, 1024) for _ in range(400))
model = nn.Linear(1024, 1024).cuda()
for batch in Prefetcher(dataset):
    output = model(batch)
