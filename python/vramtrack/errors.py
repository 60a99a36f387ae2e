"""The package's own exceptions. Values that cannot be used raise ValueError, as everywhere in Python."""


class NoDeviceError(RuntimeError):
    """There is no GPU memory to read here; the text says why and what to do."""


class SimulatedOutOfMemoryError(RuntimeError):
    """A simulated device has no memory left, as torch.cuda.OutOfMemoryError would say it."""


class LeakError(AssertionError):
    """A leak gate has failed: memory grows with every iteration. `result` holds the figures, `sites` the growing lines."""

    def __init__(self, message, result=None, sites=()):
        super().__init__(message)
        self.result = result
        self.sites = list(sites)
