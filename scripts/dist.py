#!/usr/bin/env python3
"""Makes dist/: every package of this version, their checksums, a bill of materials and the release's notes.

    scripts/dist.py [--released] [STEP...]        steps: deb portable wheels aarch64 manual (default: all)

Each package is made by the make target of its name. What cannot be made here is listed with the reason, and the rest goes on; a
step that fails makes dist.py fail at its end. --released checks that CHANGELOG.md has a section of this version.
"""
import argparse
import hashlib
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
STEPS = ["deb", "portable", "wheels", "aarch64", "manual"]


def version():
    return (ROOT / "VERSION").read_text().strip()


def why_not(step):
    """Why a step cannot be done on this machine, or None."""
    if step == "aarch64":
        if os.uname().machine != "x86_64":
            return "is cross-built on x86-64; here `make deb portable` builds for this machine"
        if os.geteuid() != 0:
            return "needs root, for a chroot"
        if not shutil.which("mmdebstrap") and not shutil.which("apt-get"):
            return "needs mmdebstrap"
    return None


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def make(step):
    """Runs the target and prints how long it took. True when it went well."""
    reason = why_not(step)
    if reason:
        print(f"dist: {step}: not built: {reason}", flush=True)
        return True
    begun, used = time.monotonic(), cpu_s()
    done = subprocess.run(["make", "--no-print-directory", "-C", str(ROOT), step], check=False)
    outcome = "built" if done.returncode == 0 else "FAILED"
    print(f"dist: {step}: {outcome} in {time.monotonic() - begun:.0f} s ({cpu_s() - used:.0f} s of CPU)", flush=True)
    return done.returncode == 0


def packages():
    names = [*DIST.glob("*.deb"), *DIST.glob("*.tar.gz"), *DIST.glob("*.whl")]
    return sorted(names)


def builds(paths):
    """Which build folder a package is from, for the bill of materials. What is cross-built is linked with the same libraries."""
    for path in paths:
        if path.suffix == ".deb":
            yield path, "build/release"
        elif "-linux-" in path.name and path.suffix == ".gz":
            yield path, "build/portable"


def write(name, *command):
    with open(DIST / name, "w") as out:
        subprocess.run([str(part) for part in command], stdout=out, check=True, cwd=ROOT)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", metavar="STEP")
    parser.add_argument("--released", action="store_true")
    arguments = parser.parse_args()
    unknown = set(arguments.steps) - set(STEPS)
    if unknown:
        parser.error(f"unknown step '{sorted(unknown)[0]}'; expected {', '.join(STEPS)}")
    DIST.mkdir(exist_ok=True)
    notes = f"vramtrack-{version()}-notes.md"
    write(notes, sys.executable, "scripts/release_notes.py", version(), *(["--released"] if arguments.released else []))
    if not arguments.steps:
        for old in [*packages(), *DIST.glob("*.cdx.json"), *DIST.glob("SHA256SUMS")]:
            old.unlink()

    failed = [step for step in arguments.steps or STEPS if not make(step)]

    made = packages()
    if made:
        of = [f"--build={path.name}={folder}" for path, folder in builds(made) if (ROOT / folder / "build.ninja").exists()]
        write(f"vramtrack-{version()}.cdx.json", sys.executable, "scripts/sbom.py", version(), *of, *made)
    listed = [*made, *sorted(DIST.glob("*.cdx.json")), DIST / notes]
    with open(DIST / "SHA256SUMS", "w") as sums:
        for path in listed:
            sums.write(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    for path in [*listed, DIST / "SHA256SUMS"]:
        print(f"{path.stat().st_size / 1024:9.0f} KiB  dist/{path.name}")
    if failed:
        sys.exit(f"dist: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
