"""The package as it is when installed. In a build's tests: `pip install` of the tree into a fresh folder, without the network, of
the program and the extension that were already built; what is tested is what is packed, and how it is found. Where the package under test is an
installed wheel (scripts/wheels.sh): that one."""
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import vramtrack
from vramtrack import _core

SOURCE = os.environ.get("VRAMTRACK_SOURCE_DIR")
BUILD = os.environ.get("VRAMTRACK_BUILD_DIR")


def installed_already():
    try:
        folder = pathlib.Path(importlib.metadata.distribution("vramtrack").locate_file(""))
    except importlib.metadata.PackageNotFoundError:
        return None
    return folder if pathlib.Path(vramtrack.__file__).parent == folder / "vramtrack" else None


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    if installed_already():
        return installed_already()
    pytest.importorskip("scikit_build_core")
    if not SOURCE or not BUILD or not shutil.which("cmake"):
        pytest.skip("run by ctest, which says where the sources and the build are")
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--no-index", "--prefix", folder,
               "--disable-pip-version-check", "--config-settings", f"cmake.define.VRAMTRACK_PYTHON_PREBUILT={BUILD}",
               "--config-settings", "cmake.version=>=3.25",  # nothing is compiled here, so the stable ABI is not looked for
               "--config-settings", f"build-dir={folder}-build", SOURCE]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "VRAMTRACK_SETUP": "0"})
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"


def run(installed, code, **more):
    env = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run([sys.executable, *code], capture_output=True, text=True, env=env, cwd=installed, **more)


def test_it_imports_and_detects(installed):
    code = "import vramtrack; print(vramtrack.__file__); print(vramtrack.detect([0, 1], [1, 2]).state)"
    done = run(installed, ["-c", code])
    assert done.stdout == f"{installed}/vramtrack/__init__.py\ntoo_short\n", done.stderr


@pytest.fixture(scope="module")
def program(installed):
    return installed.parents[2] / "bin" / "vramtrack"


def test_the_program_is_there(program, tmp_path):
    rows = "".join(f"2026/01/05 08:{i // 6:02}:{i % 6 * 10:02}, {2000 + 60 * i}\n" for i in range(240))
    (tmp_path / "run.csv").write_text("timestamp, memory.used [MiB]\n" + rows)
    done = subprocess.run([program, "analyze", "run.csv", "--capacity", "24GiB"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and "LEAK" in done.stdout, done.stdout + done.stderr


def test_the_module_starts_the_program_that_came_with_it(installed, program):
    if installed_already() is None:
        command = [sys.executable, "-m", "vramtrack", "--version"]  # the package's own answer; its commands are the program's
        assert subprocess.run(command, capture_output=True, text=True, cwd=installed).stdout == f"vramtrack {vramtrack.__version__}\n"
    code = "from vramtrack.__main__ import program; print(program())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=installed,
                          env={**os.environ, "PYTHONPATH": str(installed), "PATH": "/nowhere"})  # fmt: skip
    assert done.stdout == f"{program.resolve()}\n", done.stderr


def test_the_program_finds_its_probe_and_names_a_line(program, tmp_path):
    if not SOURCE or not shutil.which("cc"):
        pytest.skip("needs the sources and a C compiler, for the program that leaks")
    script = pathlib.Path(SOURCE) / "tests" / "packages" / "named_line.sh"
    for arguments in (["make", tmp_path], ["run", tmp_path, program]):
        done = subprocess.run(["sh", script, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_manual_and_completions_are_there(program):
    for name in ("man/man1/vramtrack.1.gz", "bash-completion/completions/vramtrack", "zsh/site-functions/_vramtrack",
                 "fish/vendor_completions.d/vramtrack.fish"):  # fmt: skip
        assert (program.parent.parent / "share" / name).exists(), name


def test_all_of_the_package_is_there_and_nothing_else(installed):
    if not SOURCE:
        pytest.skip("run by ctest and scripts/wheels.sh, which say where the sources are")
    (info,) = installed.glob("vramtrack-*.dist-info")
    there = {line.split(",")[0] for line in (info / "RECORD").read_text().splitlines()}
    there = {name for name in there if "__pycache__" not in name and not name.startswith((info.name, "../"))}
    wanted = {path.name for path in (pathlib.Path(SOURCE) / "python" / "vramtrack").iterdir()} - {"__pycache__"}
    assert there == {f"vramtrack/{name}" for name in wanted | {pathlib.Path(_core.__file__).name}}
    assert "vramtrack/py.typed" in there and "vramtrack/_core.pyi" in there
    metadata = (info / "METADATA").read_text()
    assert f"Version: {vramtrack.__version__}" in metadata and "Requires-Python: >=3.9" in metadata


def test_the_wheels_tag_is_its_extensions(installed):
    (info,) = installed.glob("vramtrack-*.dist-info")
    tags = {line.split(": ")[1] for line in (info / "WHEEL").read_text().splitlines() if line.startswith("Tag: ")}
    if _core.__file__.endswith(".abi3.so"):  # one for all from 3.12 on
        wanted = "cp312-abi3"
    else:
        wanted = "cp{0}{1}-cp{0}{1}".format(*sys.version_info)
    assert {tag.rsplit("-", 1)[0] for tag in tags} == {wanted}


def test_licences_of_what_is_linked_in_are_there(installed):
    if not installed_already():
        pytest.skip("nothing is linked in by an installation that builds nothing")
    (info,) = installed.glob("vramtrack-*.dist-info")
    text = (info / "licenses" / "THIRD_PARTY_LICENSES").read_text()
    assert "==== zlib1g-dev" in text and "==== nanobind" in text and "Wenzel Jakob" in text and "==== tsl::robin_map" in text


def test_pytest_finds_the_plugin(installed):
    done = run(installed, ["-m", "pytest", "--help"])
    assert "--vramtrack" in done.stdout, done.stderr


def test_stubs_name_all_there_is():
    stubs = (pathlib.Path(vramtrack.__file__).parent / "_core.pyi").read_text()
    for name in dir(_core):
        if not name.startswith("_"):
            assert f"class {name}" in stubs or f"def {name}(" in stubs or f"{name}: " in stubs, name
