"""A tape as in a small autograd of one's own, with slots, which is never cleared."""
import time
from tensors import T


class Node:
    __slots__ = ("value", "parents")

    def __init__(self, value, *parents):
        self.value, self.parents = value, parents


class Tape:
    __slots__ = ("tape",)

    def __init__(self):
        self.tape = []

    def add(self, node):
        self.tape.append(node)
        return node


graph = Tape()


def loss(x):
    a = graph.add(Node(T(1 << 14), x))
    return graph.add(Node(T(512), a))


for _ in range(330):
    loss(Node(T(1 << 13)))
    time.sleep(0.004)
# KEPT BY tape
