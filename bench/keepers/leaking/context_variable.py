"""What was seen during a request, in a variable of the context."""
import contextvars
import time
from tensors import T

trace = contextvars.ContextVar("trace")


def note(tensor):
    trace.get().append(tensor)


def main():
    trace.set([])
    for _ in range(340):
        note(T(1 << 14))
        T(1 << 16)
        time.sleep(0.004)


main()
# KEPT BY trace
