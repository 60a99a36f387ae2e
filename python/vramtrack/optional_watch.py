"""A Watch for the callbacks of trainers, which must not end a training on the CPU."""
from __future__ import annotations

import warnings
from typing import Any, Dict, Optional

from vramtrack.errors import NoDeviceError
from vramtrack.printable import printable
from vramtrack.watch import Watch


def watch_or_warn(options: Dict[str, Any]) -> Optional[Watch]:
    """A Watch for a callback; None, with a warning, on a machine without a device: a training on the CPU continues."""
    try:
        return Watch(**options)
    except NoDeviceError as error:
        warnings.warn(printable(f"vramtrack is not watching: {error}"), stacklevel=3)
        return None
