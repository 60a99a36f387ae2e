"""A thread computes an embedding for each request into a queue. The other side takes one for two, and forgets the rest."""
import queue
import threading

import torch

requests = queue.Queue(maxsize=1)
embeddings = queue.Queue()
table = torch.randn(1000, 512, device="cuda")


def embed():
    for _ in iter(requests.get, None):
        ids = torch.zeros(128, dtype=torch.long, device="cuda")
        embeddings.put(table[ids])  # LEAK HERE


worker = threading.Thread(target=embed, name="embedder")
worker.start()
total = torch.zeros(512, device="cuda")
for batch in range(400):
    requests.put(batch)
    if batch % 2 == 0:
        total += embeddings.get().sum(dim=0)
requests.put(None)
worker.join()
