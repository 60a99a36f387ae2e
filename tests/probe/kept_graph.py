"""Keeps each step's loss, and with it the graph that made it: what programs.py runs. With a word behind it, it ends without giving back."""
import os
import sys

from tensors import T


def forward(x):
    for _ in range(4):
        x = T(65536, x)
        T(4096)
    return x


def backward():
    for _ in range(4):
        T(1 << 16)


losses = []


def train(steps):
    for _ in range(steps):
        x = T(1 << 18)
        y = forward(x)
        loss = T(512, y)
        backward()
        losses.append(loss)


train(406)
if len(sys.argv) > 1:
    os._exit(0)
