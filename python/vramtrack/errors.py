"""The package's own exceptions. Invalid values raise ValueError. An exception whose `is_verdict` is true has a message of vramtrack about
memory; explain() reads only the errors that led to it."""


class NoDeviceError(RuntimeError):
    """There is no GPU memory to read. The message states the reason and the remedy."""


class SimulatedOutOfMemoryError(RuntimeError):
    """A simulated device has run out of memory. It stands in for torch.cuda.OutOfMemoryError."""


class LeakError(AssertionError):
    """A leak gate failed: memory grows with every iteration. `result` has the figures and `sites` the lines that grow."""

    is_verdict = True

    def __init__(self, message, result=None, sites=()):
        super().__init__(message)
        self.result = result
        self.sites = list(sites)
