"""scikit-build-core, preceded by what `make` does too: the Debian packages that the C++ sources need are installed.

On a machine without apt, or where nothing may be installed, CMake says what it misses. VRAMTRACK_SETUP=0 skips it.
"""
import os
import pathlib
import shutil
import subprocess

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F401,F403  the hooks that are not wrapped here

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _set_up():
    if os.environ.get("VRAMTRACK_SETUP", "1") == "0" or not shutil.which("apt-get"):
        return
    if os.geteuid() != 0:
        # A password cannot be asked for here: pip hides the terminal. Without sudo CMake names what is missing.
        if not shutil.which("sudo") or subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode:
            return
    subprocess.run([str(_ROOT / "scripts" / "setup.sh"), "wheel"], check=False)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _set_up()
    return _build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _set_up()
    return _build.build_editable(wheel_directory, config_settings, metadata_directory)
