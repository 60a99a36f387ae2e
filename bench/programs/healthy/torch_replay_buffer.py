"""Reinforcement learning with a replay buffer of 400 transitions: a list that fills, then its oldest place is next."""
import torch
from torch import nn

CAPACITY = 400
policy = nn.Linear(84 * 84, 6).cuda()
optimizer = torch.optim.Adam(policy.parameters())
replay = []
for step in range(1200):
    frame = torch.zeros(84 * 84, device="cuda")
    with torch.no_grad():
        action = policy(frame).argmax()
    if len(replay) < CAPACITY:
        replay.append(frame)
    else:
        replay[step % CAPACITY] = frame
    if step % 10 == 9:
        loss = policy(torch.stack(replay[:32])).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
