"""Programs of programs/ that a test starts, on the doubles."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("VRAMTRACK_BUILD_DIR", HERE.parent.parent / "build/release"))


def start(program, *arguments, env=None):
    return subprocess.Popen([sys.executable, HERE / "programs" / program, *map(str, arguments)], env={**os.environ, **(env or {})},
                            stdout=subprocess.PIPE, text=True)  # fmt: skip
