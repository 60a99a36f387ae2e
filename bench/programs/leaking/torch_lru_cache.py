"""Attention masks, cached by length without a bound. The lengths are those of the texts: hundreds."""
import functools

import torch


@functools.lru_cache(maxsize=None)
def causal_mask(length):
    return torch.ones(length, length, device="cuda").tril()  # LEAK HERE


def attend(length):
    scores = torch.randn(length, length, device="cuda")
    return (scores * causal_mask(length)).sum()


for request in range(500):
    attend(64 + request * 37 % 461)
