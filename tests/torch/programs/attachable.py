"""A training loop with three habits, for `vramtrack attach`: it keeps each loss with its graph in a list, and each tenth activation in an
attribute; the batch that it keeps for a moment only is replaced.

    attachable.py          continues until its standard input ends; each line gets what the recorder is set to
"""
import select
import sys

import torch

import vramtrack


class Trainer:
    def __init__(self):
        self.weights = torch.nn.Parameter(torch.ones(512, 512, device="cuda"))
        self.history = []
        self.batch = None

    def step(self, number):
        self.batch = torch.randn(512, 512, device="cuda")
        hidden = (self.batch * self.weights).sin()
        if number % 10 == 0:
            self.history.append(hidden.detach().clone())  # HISTORY
        return hidden.sum()  # LOSS


losses = []
trainer = Trainer()
number = 0
print("ready", flush=True)
while True:
    if number < 4000:
        losses.append(trainer.step(number))
        number += 1
    vramtrack.mark("step")
    if select.select([sys.stdin], [], [], 0.005)[0]:
        if not sys.stdin.readline():
            break
        print(torch._C._cuda_isHistoryEnabled(), flush=True)
