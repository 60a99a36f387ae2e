"""Four threads compute embeddings into a queue of eight places, which another one empties."""
import queue
import threading

import torch

embeddings = queue.Queue(maxsize=8)
table = torch.randn(1000, 512, device="cuda")


def embed(batches):
    for _ in range(batches):
        ids = torch.zeros(128, dtype=torch.long, device="cuda")
        embeddings.put(table[ids])


workers = [threading.Thread(target=embed, args=(150,), name=f"embedder {i}") for i in range(4)]
for worker in workers:
    worker.start()
total = torch.zeros(512, device="cuda")
for batch in range(600):
    total += embeddings.get().sum(dim=0)
for worker in workers:
    worker.join()
