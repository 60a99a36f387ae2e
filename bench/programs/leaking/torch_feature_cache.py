"""Encodes documents, and caches what it encoded by the document's id. No id comes twice."""
import torch
from torch import nn


class Retriever:
    def __init__(self):
        self.encoder = nn.Sequential(nn.Embedding(1000, 256), nn.Linear(256, 256)).cuda()
        self.cache = {}

    @torch.no_grad()
    def encode(self, document, tokens):
        if document not in self.cache:
            self.cache[document] = self.encoder(tokens)  # LEAK HERE
        return self.cache[document]


retriever = Retriever()
query = torch.randn(256, device="cuda")
for document in range(600):
    tokens = torch.zeros(128 + document % 64, dtype=torch.long, device="cuda")
    scores = retriever.encode(document, tokens) @ query
