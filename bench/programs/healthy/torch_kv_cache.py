"""A chat server. Each session's cache of keys and values grows with its tokens, and goes with the session."""
import random

import torch

LAYERS, HEADS, WIDTH = 2, 4, 64
sessions = {}
random.seed(7)


def decode_token(past):
    for layer in range(LAYERS):
        new = torch.randn(2, HEADS, 1, WIDTH, device="cuda")
        past[layer] = torch.cat([past[layer], new], dim=2)


for tick in range(400):
    if len(sessions) < 8 and random.random() < 0.4:
        sessions[tick] = ([torch.zeros(2, HEADS, 0, WIDTH, device="cuda") for _ in range(LAYERS)], tick + random.randint(10, 80))
    for session, (past, ends) in list(sessions.items()):
        decode_token(past)
        if tick >= ends:
            del sessions[session]
