"""The package's version: that of its C++ core."""
from vramtrack._core import version as __version__

__all__ = ["__version__"]
