"""A server with a list of blocks for each session; sessions that are over stay."""
import collections
import time
from tensors import T


def serve():
    sessions = collections.defaultdict(list)
    for request in range(360):
        user = "user-%d" % (request // 4)
        sessions[user].append(T(1 << 14))
        T(1 << 16)
        time.sleep(0.004)


serve()
# KEPT BY sessions
