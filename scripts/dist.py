#!/usr/bin/env python3
"""Makes dist/: every package of this version, their checksums, a bill of materials, the release's notes and install.sh.

    scripts/dist.py [--released] [--url URL] [STEP...]        steps: deb portable wheels aarch64 manual chart container (default: all)

Each package is made by the make target with its name. Packages that cannot be made here are listed with the reason, and the rest continues; a
step that fails makes dist.py fail at its end. --released checks that CHANGELOG.md has a section for this version, and with --url makes the
documents in the work tree, which every package contains, describe the state after publication (scripts/published.py). --url: where the files of this release will be, from which install.sh downloads them. With the step `none`, no package is made: dist/ is
described as it is.
"""
import argparse
import hashlib
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

import published

ROOT = pathlib.Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
STEPS = ["deb", "portable", "wheels", "aarch64", "manual", "chart", "container"]


def version():
    return (ROOT / "VERSION").read_text().strip()


def why_not(step):
    """The reason why a step cannot run on this machine, or None."""
    if step == "aarch64":
        if os.uname().machine != "x86_64":
            return "is cross-built on x86-64; here `make deb portable` builds for this machine"
        if os.geteuid() != 0:
            return "needs root, for a chroot"
        if not shutil.which("mmdebstrap") and not shutil.which("apt-get"):
            return "needs mmdebstrap"
    if step == "container":
        engine = shutil.which("podman") or shutil.which("docker")
        if not engine or subprocess.run([engine, "info"], capture_output=True, check=False).returncode != 0:
            return "needs podman, or docker and its engine"
    return None


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def make(step):
    """Runs the target and prints how long it took. Returns whether it succeeded."""
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
    return sorted(path for kind in ("*.deb", "*.tar.gz", "*.whl", "*.tgz", "*.tar") for path in DIST.glob(kind))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def builds(paths):
    """The build folder that a package comes from, for the bill of materials. Cross-built packages are linked with the same libraries."""
    for path in paths:
        if path.suffix == ".deb":
            yield path, "build/release"
        elif "-linux-" in path.name and path.suffix == ".gz":
            yield path, "build/portable"


def installer(text, url, archives):
    """install.sh for this release: `archives` are (name, SHA-256)."""
    lines = "\n".join(f"{digest}  {name}" for name, digest in archives)
    for name, value in (("version", version()), ("releases", url), ("checksums", f"'{lines}'")):
        text, count = re.subn(rf"^{name}=('')?$", lambda _, name=name, value=value: f"{name}={value}", text, count=1, flags=re.MULTILINE)
        if count != 1:
            raise LookupError(f"scripts/install.sh has no line '{name}='")
    return text


def write(name, *command):
    with open(DIST / name, "w") as out:
        subprocess.run([str(part) for part in command], stdout=out, check=True, cwd=ROOT)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", metavar="STEP")
    parser.add_argument("--released", action="store_true")
    parser.add_argument("--url", default="")
    arguments = parser.parse_args()
    unknown = set(arguments.steps) - {*STEPS, "none"}
    if unknown:
        parser.error(f"unknown step '{sorted(unknown)[0]}'; expected {', '.join(STEPS)} or none")
    if arguments.url and not re.fullmatch(r"https://[A-Za-z0-9._~:/%-]+", arguments.url):
        parser.error(f"--url '{arguments.url}' is no https:// address")
    DIST.mkdir(exist_ok=True)
    notes = f"vramtrack-{version()}-notes.md"
    write(notes, sys.executable, "scripts/release_notes.py", version(), *(["--released"] if arguments.released else []))
    if not arguments.steps:
        for old in [*packages(), *DIST.glob("*.cdx.json"), *DIST.glob("SHA256SUMS")]:
            old.unlink()

    if arguments.released and arguments.url:
        published.publish(published.documents(), arguments.url)
    failed = [step for step in arguments.steps or STEPS if step != "none" and not make(step)]

    made = packages()
    if made:
        of = [f"--build={path.name}={folder}" for path, folder in builds(made) if (ROOT / folder / "build.ninja").exists()]
        write(f"vramtrack-{version()}.cdx.json", sys.executable, "scripts/sbom.py", version(), *of, *made)
    script = DIST / "install.sh"
    portable = [(path.name, digest(path)) for path in made if re.fullmatch(r"vramtrack-.*-linux-\w+\.tar\.gz", path.name)]
    script.write_text(installer((ROOT / "scripts" / "install.sh").read_text(), arguments.url, portable))
    script.chmod(0o755)
    listed = [*made, *sorted(DIST.glob("*.cdx.json")), script, DIST / notes]
    (DIST / "SHA256SUMS").write_text("".join(f"{digest(path)}  {path.name}\n" for path in listed))
    for path in [*listed, DIST / "SHA256SUMS"]:
        print(f"{path.stat().st_size / 1024:9.0f} KiB  dist/{path.name}")
    if failed:
        sys.exit(f"dist: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
