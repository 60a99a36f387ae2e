#!/usr/bin/env python3
"""Real PyTorch without a GPU: its CUDA wheels on the doubles of tests/fake/gpu.

    lane.py [--build BUILD] install VERSION...            # the virtual environment, and the libraries it runs on
    lane.py [--build BUILD] python VERSION ARGUMENT...    # its Python, with vramtrack as BUILD has it
    lane.py [--build BUILD] test VERSION... [-- PYTEST_ARGUMENT...]
    lane.py [--build BUILD] snapshots [VERSION...]        # make and check the snapshots of situations.py
    lane.py pin VERSION                                   # rewrite requirements/VERSION.txt

Everything lies in build/torch/VERSION and stays there. Where a version cannot be installed (no registry, another machine than
x86-64, a Python without that wheel), the reason is printed and the exit status is 77.
"""
import argparse
import hashlib
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
LANE = SOURCE / "build" / "torch"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
SKIPPED = 77
VERSIONS = sorted((path.stem for path in (HERE / "requirements").glob("*.txt")), key=lambda v: [int(part) for part in v.split(".")])


class Unavailable(Exception):
    """The version is not available here; the message says why."""


def venv(version):
    return LANE / version / "venv"


def site_packages(version):
    return next(venv(version).glob("lib/python3*/site-packages"))


def requirements(version):
    return HERE / "requirements" / f"{version}.txt"


def is_as_wanted(marker, state):
    return marker.exists() and marker.read_text() == state


def megabytes(folder):
    return int(subprocess.run(["du", "-sm", folder], check=True, capture_output=True, text=True).stdout.split()[0])


def last_words(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "no output")


def install(version):
    """Seconds that it took; 0 if it was there."""
    if platform.machine() != "x86_64":
        raise Unavailable(f"the pinned wheels are for x86_64, and this machine is {platform.machine()}")
    if version not in VERSIONS:
        raise Unavailable(f"tests/torch/requirements has no {version}; there are {', '.join(VERSIONS)}")
    state = hashlib.sha256(requirements(version).read_bytes()).hexdigest() + " " + sys.version.split()[0]
    marker = LANE / version / "complete"
    if is_as_wanted(marker, state):
        return 0
    begun = time.monotonic()
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.unlink(missing_ok=True)
    subprocess.run([PYTHON, "-m", "venv", "--clear", venv(version)], check=True)
    pip = [venv(version) / "bin/pip", "install", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
    # --no-deps: NVIDIA's libraries would be found before the doubles (the wheel's RPATH), and take 4 GB.
    done = subprocess.run([*pip, "--quiet", "--no-deps", "--only-binary=:all:", "-r", requirements(version)], capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"torch {version} could not be installed: {last_words(done.stderr + done.stdout)}")
    marker.write_text(state)
    seconds = time.monotonic() - begun
    print(f"torch {version}: installed in {seconds:.0f} s, {megabytes(venv(version))} MB", flush=True)
    return seconds


def link(version, build):
    """The libraries, where the doubles or the wheel changed."""
    archives = build / "fake_gpu"
    sources = [*sorted(archives.glob("*.a")), *sorted((SOURCE / "tests/fake/gpu").glob("*.py")), SOURCE / "tests/fake/gpu/stub.h"]
    if not list(archives.glob("*.a")):
        raise SystemExit(f"lane: {archives} is empty: cmake --build {build} --target fake_gpu")
    digest = hashlib.sha256((LANE / version / "complete").read_bytes())
    for path in sources:
        digest.update(path.read_bytes())
    marker = LANE / version / "linked"
    if is_as_wanted(marker, digest.hexdigest()):
        return
    begun = time.monotonic()
    linker = [sys.executable, SOURCE / "tests/fake/gpu/link_libraries.py", archives, site_packages(version) / "torch/lib", LANE / version / "lib"]
    subprocess.run(linker, check=True, stdout=subprocess.DEVNULL)
    marker.write_text(digest.hexdigest())
    print(f"torch {version}: the libraries it runs on linked in {time.monotonic() - begun:.0f} s", flush=True)


def prepare(version, build):
    install(version)
    link(version, build)


def environment(version, build):
    lib = LANE / version / "lib"
    return {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join([str(lib), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]),
        "PYTHONPATH": str(build / "python"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),  # nothing is computed; threads would only be started
        "TORCH_DISABLE_ADDR2LINE": "1",  # else an error spends half a minute on the lines of torch's own frames
        "VRAMTRACK_SOURCE_DIR": str(SOURCE),
        "VRAMTRACK_BUILD_DIR": str(build),
        "VRAMTRACK_TORCH_LANE": str(lib),
    }


def run(version, build, *arguments, **variables):
    return subprocess.run([venv(version) / "bin/python", *arguments], env={**environment(version, build), **variables}).returncode


#: The machine of the tests: that of python/tests/bench_torch.py.
MACHINE = {"VRAMTRACK_FAKE_GPU_DEVICES": "2", "VRAMTRACK_FAKE_GPU_MIB": "81920,40960"}
#: What of the package's tests runs on PyTorch itself; the others simulate their own device.
PACKAGE_TESTS = [SOURCE / "python/tests" / name for name in ("test_on_torch.py", "test_torch_source.py", "test_driver.py", "test_documented_blocks.py")]


def test_one(version, build, options):
    return run(version, build, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(options or [HERE, *PACKAGE_TESTS]), **MACHINE)


def snapshots_of(version, build, _):
    out = LANE / version / "snapshots"
    shutil.rmtree(out, ignore_errors=True)
    made = run(version, build, HERE / "situations.py", out)
    return run(version, build, HERE / "compare.py", build / "vramtrack", out) or made


def each(do, versions, build, options=()):
    """0; 1 where one failed, else SKIPPED where one was not available."""
    codes = set()
    for version in versions:
        try:
            prepare(version, build)
        except Unavailable as reason:
            print(f"torch lane: SKIPPED {version}: {reason}", flush=True)
            codes.add(SKIPPED)
            continue
        begun = time.monotonic()
        failed = do(version, build, options)
        print(f"torch {version}: {'failed' if failed else 'passed'} in {time.monotonic() - begun:.0f} s", flush=True)
        codes.add(1 if failed else 0)
    return 1 if 1 in codes else max(codes, default=0)


#: What torch and the tests import, by name; the versions are pip's choice on the day of `pin`.
IMPORTED = ["typing_extensions", "filelock", "sympy", "networkx", "jinja2", "fsspec", "setuptools", "pytest==8.4.2", "hypothesis==6.141.1"]
#: The Pythons of the supported distributions.
PYTHONS = ["3.11", "3.12", "3.13"]


def resolved(python, *options):
    """(name, version, sha256) of what pip would install."""
    report = [venv(VERSIONS[-1]) / "bin/pip" if venv(VERSIONS[-1]).exists() else "pip", "install", "--dry-run", "--quiet", "--ignore-installed",
              "--disable-pip-version-check", "--no-cache-dir", "--only-binary=:all:", "--python-version", python, "--target", "/nonexistent",
              "--report", "-", *options]  # fmt: skip
    done = subprocess.run(report, capture_output=True, text=True)
    if done.returncode:
        return []
    return [(item["metadata"]["name"].lower(), item["metadata"]["version"], item["download_info"]["archive_info"]["hashes"]["sha256"])
            for item in json.loads(done.stdout)["install"]]  # fmt: skip


def pin(version):
    numpy = "numpy<2" if version.startswith(("2.1.", "2.2.")) else "numpy<2.3"
    pins = {}
    for python in PYTHONS:
        wheel = resolved(python, "--no-deps", f"torch=={version}")
        for name, number, sha256 in [*wheel, *(resolved(python, numpy, *IMPORTED) if wheel else [])]:
            pins.setdefault((name, number), set()).add(sha256)
    lines = [f"# Written by `tests/torch/lane.py pin {version}`. Installed with --no-deps: none of NVIDIA's packages is."]
    for (name, number), hashes in sorted(pins.items()):
        lines.append(f"{name}=={number}" + "".join(f" \\\n    --hash=sha256:{sha256}" for sha256 in sorted(hashes)))
    requirements(version).write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release")
    parser.add_argument("command", choices=["install", "python", "test", "snapshots", "pin"])
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    build, words = args.build.resolve(), args.arguments
    try:
        if args.command == "install":
            return each(lambda *_: 0, words, build)
        elif args.command == "python":
            prepare(words[0], build)
            python = venv(words[0]) / "bin/python"
            os.execve(python, [python, *words[1:]], environment(words[0], build))
        elif args.command == "test":
            cut = words.index("--") if "--" in words else len(words)
            return each(test_one, words[:cut], build, words[cut + 1 :])
        elif args.command == "snapshots":
            return each(snapshots_of, words or VERSIONS, build)
        else:
            pin(words[0])
    except Unavailable as reason:
        print(f"torch lane: SKIPPED {words[0]}: {reason}", flush=True)
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
