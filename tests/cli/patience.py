"""How long tests wait for what should come soon. One factor for all: VRAMTRACK_TEST_PATIENCE, 5 by default; the sanitized builds set more."""
import os

FACTOR = float(os.environ.get("VRAMTRACK_TEST_PATIENCE", 5))


def patience(seconds):
    """The deadline, in seconds, for what an idle machine does within `seconds`."""
    return seconds * FACTOR
