"""The list that is made once, with the function."""
import time
from tensors import T


def collect(tensor, into=[]):
    into.append(tensor)
    return into


def main():
    for _ in range(350):
        collect(T(1 << 14))
        T(1 << 16)
        time.sleep(0.004)


main()
# KEPT BY collect
