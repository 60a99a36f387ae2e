"""The package's own exceptions. Invalid values raise ValueError. An exception whose `is_verdict` is true holds vramtrack's own words
about memory; explain() looks only at the errors that led to it."""


class NoDeviceError(RuntimeError):
    """There is no GPU memory to read. The message says why and what to do."""


class SimulatedOutOfMemoryError(RuntimeError):
    """A simulated device has run out of memory. It stands in for torch.cuda.OutOfMemoryError."""


class LeakError(AssertionError):
    """A leak gate failed: memory grows with every iteration. `result` has the figures and `sites` the lines that grow."""

    is_verdict = True

    def __init__(self, message, result=None, sites=()):
        super().__init__(message)
        self.result = result
        self.sites = list(sites)
