"""A chat server. Each session has a cache of keys and values; a session that ends by itself is not removed."""
import torch

LAYERS, HEADS, WIDTH = 2, 4, 64
sessions = {}


def decode_token(session):
    past = sessions.setdefault(session, [torch.zeros(2, HEADS, 0, WIDTH, device="cuda") for _ in range(LAYERS)])
    for layer in range(LAYERS):
        new = torch.randn(2, HEADS, 1, WIDTH, device="cuda")
        past[layer] = torch.cat([past[layer], new], dim=2)  # LEAK HERE


for session in range(100):
    for token in range(30):
        decode_token(session)
    if session % 3 == 0:
        del sessions[session]
