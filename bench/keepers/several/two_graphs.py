"""Losses of training and of validation, each with the graph that made it: one forward() for both."""
import time
from tensors import T


def forward(x):
    for _ in range(3):
        x = T(1 << 14, x)
        T(1 << 12)
    return x


def fit():
    train_losses, valid_losses = [], []
    for _ in range(300):
        loss = T(512, forward(T(1 << 15)))
        train_losses.append(loss)
        valid = T(512, forward(T(1 << 15)))
        valid_losses.append(valid)
        time.sleep(0.004)


fit()
# KEPT BY train_losses
# KEPT BY valid_losses
