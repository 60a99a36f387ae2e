"""python -m vramtrack: the GPU memory that this process can see; `python -m vramtrack COMMAND ...` runs the program `vramtrack`."""
from __future__ import annotations

import os
import shutil
import sys
from importlib import metadata
from typing import List, Optional

from vramtrack.driver import DEFAULT_LIBRARY, DriverMemory
from vramtrack.errors import NoDeviceError
from vramtrack.printable import printable
from vramtrack.sources import default_source
from vramtrack.units import format_size
from vramtrack.version import __version__

_HELP = """python -m vramtrack            show the versions, the device and what is seen of its memory
python -m vramtrack check FILE find what keeps GPU memory in the source of a program
python -m vramtrack COMMAND    run the program vramtrack, for example: python -m vramtrack test -- python train.py
docs/python.md is the manual of the package."""


def _size(bytes_: Optional[int]) -> str:
    return "not known" if bytes_ is None else format_size(bytes_)


def program() -> Optional[str]:
    """The path of the program that was installed with this package, otherwise that of the one in PATH, if there is one."""
    try:
        files = metadata.files("vramtrack") or []
    except metadata.PackageNotFoundError:
        files = []
    installed = (str(file.locate().resolve()) for file in files if file.parts[-2:] == ("bin", "vramtrack"))
    return next((path for path in installed if os.access(path, os.X_OK)), shutil.which("vramtrack"))


def report() -> List[str]:
    """What this process can see, one line each."""
    lines = [f"vramtrack {__version__}, Python {sys.version.split()[0]}"]
    lines.append(f"program:  {program() or 'vramtrack is not in PATH; the package works without it'}")
    try:
        source = default_source()
    except NoDeviceError as error:
        return [*lines, f"device:   none: {error}"]
    torch = sys.modules.get("torch")
    if torch is not None:
        lines.append(f"torch:    {torch.__version__}")
    counters = source.counters()
    limit = source.limit_bytes()
    lines.append(f"device:   {source.device}, {source.name}, {_size(source.capacity_bytes())}" + (f", limit {_size(limit)}" if limit else ""))
    lines.append(f"in use:   {_size(source.device_used_bytes())} on the device, {_size(counters.allocated)} by tensors, {_size(counters.reserved)} reserved")
    pinned = source.host_pinned_bytes()
    if pinned is not None:
        lines.append(f"host:     {_size(pinned)} pinned")
    driver = DriverMemory(source.identity(), DEFAULT_LIBRARY)
    used = driver.read(0.0, anyway=True)
    own = None if used is None else used.get(os.getpid())
    lines.append(f"driver:   {_size(own)} by this process" if not driver.reason else f"driver:   no process figures: {driver.reason}")
    return lines


def main(arguments: List[str]) -> int:
    if arguments in (["-h"], ["--help"]):
        print(_HELP)
        return 0
    if arguments in (["-V"], ["--version"]):
        print(f"vramtrack {__version__}")
        return 0
    if not arguments:
        print("\n".join(printable(line) for line in report()))
        return 0
    if arguments[0] == "check":
        from vramtrack.check_command import main as check  # this Python is the one that the program would use

        return check(arguments[1:])
    path = program()
    if path is None:
        sys.stderr.write("vramtrack: the program vramtrack is not in PATH; the package alone has no command but check (see docs/python.md)\n")
        return 127
    os.execv(path, [path, *arguments])
    return 127  # never reached


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
