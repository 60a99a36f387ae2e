"""A default argument that is filled, and an ordered dictionary."""
import collections
import time
from tensors import T

table = collections.OrderedDict()


def embed(number, memo={}):
    memo[number] = T(1 << 13)
    table[number] = T(1 << 12)
    T(1 << 17)


for number in range(400):
    embed(number)
    time.sleep(0.003)
# KEPT BY memo
# KEPT BY table
