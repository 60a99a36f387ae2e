"""Attention masks, cached by length with a bound of 64. The lengths are those of the texts: hundreds."""
import functools

import torch


@functools.lru_cache(maxsize=64)
def causal_mask(length):
    return torch.ones(length, length, device="cuda").tril()


def attend(length):
    scores = torch.randn(length, length, device="cuda")
    return (scores * causal_mask(length)).sum()


for request in range(900):
    attend(64 + request * 37 % 461)
