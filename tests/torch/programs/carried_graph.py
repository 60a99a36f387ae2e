"""Loops in which one tensor carries the graphs of all steps on: there is never more than one object of Python that keeps them.

    carried_graph.py local|attribute|state|detached STEPS
"""
import sys
import time

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(256, 256, device="cuda") for _ in range(2)])


class Meter:
    def __init__(self):
        self.total = 0.0

    def update(self, value):
        self.total = self.total + value


def steps(count):
    for _ in range(count):
        yield torch.randn(64, 256, device="cuda")
        time.sleep(0.02)


def local(count):
    total = 0.0
    for x in steps(count):
        total += model(x).pow(2).mean()
    return total


def attribute(count):
    meter = Meter()
    for x in steps(count):
        meter.update(model(x).pow(2).mean())
    return meter


def state(count):
    hidden = torch.zeros(64, 256, device="cuda")
    for x in steps(count):
        hidden = torch.tanh(model(x) + hidden)
    return hidden


def detached(count):
    total = 0.0
    for x in steps(count):
        total += model(x).pow(2).mean().detach()
    return total


globals()[sys.argv[1]](int(sys.argv[2]))
