"""`pip install` of the tree into a fresh folder, without the network, and the package as it then is. The extension is the one
that was built already: what is tested is what is packed, and how it is found."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import vramtrack
from vramtrack import _core

SOURCE = os.environ.get("VRAMTRACK_SOURCE_DIR")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    pytest.importorskip("scikit_build_core")
    if not SOURCE or not shutil.which("cmake"):
        pytest.skip("run by ctest, which says where the sources are")
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--no-index", "--target", folder,
               "--disable-pip-version-check", "--config-settings", f"cmake.define.VRAMTRACK_PYTHON_PREBUILT={_core.__file__}",
               "--config-settings", "cmake.version=>=3.25",  # nothing is compiled here, so the stable ABI is not looked for
               "--config-settings", f"build-dir={folder}-build", SOURCE]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "VRAMTRACK_SETUP": "0"})
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run(installed, code, **more):
    env = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run([sys.executable, *code], capture_output=True, text=True, env=env, cwd=installed, **more)


def test_it_imports_and_detects(installed):
    code = "import vramtrack; print(vramtrack.__file__); print(vramtrack.detect([0, 1], [1, 2]).state)"
    done = run(installed, ["-c", code])
    assert done.stdout == f"{installed}/vramtrack/__init__.py\ntoo_short\n", done.stderr


def test_all_of_the_package_is_there_and_nothing_else(installed):
    there = {path.name for path in (installed / "vramtrack").iterdir()} - {"__pycache__"}
    wanted = {path.name for path in (pathlib.Path(SOURCE) / "python" / "vramtrack").iterdir()} - {"__pycache__"}
    assert there == wanted | {pathlib.Path(_core.__file__).name}
    assert "py.typed" in there and "_core.pyi" in there
    (info,) = installed.glob("*.dist-info")
    metadata = (info / "METADATA").read_text()
    assert f"Version: {vramtrack.__version__}" in metadata and "Requires-Python: >=3.9" in metadata
    assert {path.name for path in installed.iterdir()} <= {"vramtrack", info.name, "bin"}


def test_pytest_finds_the_plugin(installed):
    done = run(installed, ["-m", "pytest", "--help"])
    assert "--vramtrack" in done.stdout, done.stderr


def test_stubs_name_all_there_is():
    stubs = (pathlib.Path(vramtrack.__file__).parent / "_core.pyi").read_text()
    for name in dir(_core):
        if not name.startswith("_"):
            assert f"class {name}" in stubs or f"def {name}(" in stubs or f"{name}: " in stubs, name
