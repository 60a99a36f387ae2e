"""A list of nodes that refer to the one before."""
import time
from tensors import T


class Node:
    def __init__(self, value, before):
        self.value, self.before = value, before


def main():
    tail = None
    for _ in range(340):
        tail = Node(T(1 << 14), tail)
        T(1 << 16)
        time.sleep(0.004)


main()
# KEPT BY tail
