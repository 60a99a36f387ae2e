#!/usr/bin/env python3
"""The hooks of vramtrack in the real Lightning, TRL, Ray Train, verl, vLLM and SGLang: on the PyTorch of the lane (tests/torch), in a virtual
environment of their own in build/trainers.

    trainers.py [--build BUILD] [PYTEST_ARGUMENT...]
    trainers.py --pin                # rewrite requirements.txt from the .in files, with uv

Exits with 77, and says why, where they are not available.
"""
import argparse
import hashlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
FOLDER = SOURCE / "build/trainers"
TORCH = "2.15.0"

spec = importlib.util.spec_from_file_location("lane", HERE.parent / "torch/lane.py")
lane = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lane)


def install():
    state = hashlib.sha256((HERE / "requirements.txt").read_bytes()).hexdigest() + " " + sys.version.split()[0]
    marker = FOLDER / "complete"
    if lane.is_as_wanted(marker, state):
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    marker.unlink(missing_ok=True)
    subprocess.run([lane.PYTHON, "-m", "venv", "--clear", FOLDER / "venv"], check=True)
    # --no-deps: PyTorch is the lane's, and NVIDIA's libraries would be found before the doubles.
    pip = [FOLDER / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir", "--no-deps", "--require-hashes"]
    done = subprocess.run([*pip, "-r", HERE / "requirements.txt"], capture_output=True, text=True)
    if done.returncode:
        raise lane.Unavailable(f"the trainers could not be installed: {lane.last_words(done.stderr + done.stdout)}")
    (next((FOLDER / "venv").glob("lib/python3*/site-packages")) / "lane.pth").write_text(f"{lane.site_packages(TORCH)}\n")
    marker.write_text(state)


def pin():
    compile_ = ["uv", "pip", "compile", "-q", "--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate"]
    full, plugins = (subprocess.run([*compile_, *options], cwd=HERE, check=True, capture_output=True, text=True).stdout
                     for options in (["requirements.in"], ["--no-deps", "plugins.in"]))  # fmt: skip
    not_the_lanes = [pin for pin in re.split(r"\n(?=\w)", full.strip()) if not re.match(r"(torch|triton|nvidia-[\w-]+|cuda-[\w-]+)==", pin)]
    (HERE / "requirements.txt").write_text("\n".join(["# Written by tests/trainers/trainers.py --pin.", *not_the_lanes, plugins]))


def as_installed():
    """A folder with what an installed vramtrack says of itself: its entry points, by which the plugins are found."""
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    folder = FOLDER / "metadata"
    about = folder / "vramtrack-0.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: vramtrack\nVersion: 0\n")
    groups = [f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()) for group, points in project["entry-points"].items()]
    (about / "entry_points.txt").write_text("\n".join(groups))
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release")
    parser.add_argument("--pin", action="store_true")
    args, options = parser.parse_known_args()
    if args.pin:
        return pin()
    build = args.build.resolve()
    try:
        lane.prepare(TORCH, build)
        install()
    except lane.Unavailable as reason:
        print(f"trainers: SKIPPED: {reason}", flush=True)
        return lane.SKIPPED
    environment = lane.environment(TORCH, build)
    environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], str(as_installed())])
    pytest = [FOLDER / "venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *(options or [HERE])]
    return subprocess.run(pytest, env={**environment, "VRAMTRACK_FAKE_GPU_DEVICES": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
