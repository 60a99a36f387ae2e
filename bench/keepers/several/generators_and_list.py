"""Generators that wait for ever, and a list."""
import time
from tensors import T


def stream(number):
    cache = T(1 << 14)
    yield number
    yield cache


def serve():
    sessions, replies = [], []
    for number in range(400):
        session = stream(number)
        next(session)
        sessions.append(session)
        replies.append(T(1 << 12))
        T(1 << 16)
        time.sleep(0.003)


serve()
# KEPT BY sessions
# KEPT BY replies
