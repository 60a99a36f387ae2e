"""Log records that are buffered until an error comes, with the tensor as their argument."""
import logging
import logging.handlers
import time
from tensors import T

log = logging.getLogger("train")
log.setLevel(logging.DEBUG)
log.propagate = False
log.addHandler(logging.handlers.MemoryHandler(100000))


def step(number):
    loss = T(512, T(1 << 14))
    log.debug("step %d: loss %s", number, loss)
    T(1 << 16)


for number in range(340):
    step(number)
    time.sleep(0.004)
# KEPT BY buffer
