#!/usr/bin/env python3
"""Builds the manual as a site into build/site/html with mkdocs (mkdocs.yml): `make manual`.

Stages the documents under their paths in the repository, with the files that they link to, so that the same relative links work here
and in a checkout. A link without a target makes the build fail.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build" / "site" / "source"
LINK = re.compile(r"\]\(([^)\s#]+)")


def documents():
    tracked = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [ROOT / name for name in tracked if not name.startswith(("tests/", "page/", "fuzz/"))]


def stage(path):
    target = SOURCE / path.relative_to(ROOT)
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)


def stage_all():
    """Copies the documents to SOURCE."""
    shutil.rmtree(SOURCE.parent, ignore_errors=True)
    for page in documents():
        stage(page)
        for link in LINK.findall(page.read_text()):
            linked = (page.parent / link).resolve()
            if "://" not in link and linked.is_file():
                stage(linked)


def main():
    stage_all()
    python = ROOT / "build" / "mkdocs"
    wanted = (ROOT / "scripts" / "requirements-site.txt").read_text()
    done = python / "complete"
    if not done.exists() or done.read_text() != wanted:
        shutil.rmtree(python, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", python], check=True)
        subprocess.run([python / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "-r",
                        ROOT / "scripts" / "requirements-site.txt"], check=True)
        done.write_text(wanted)
    return subprocess.run([python / "bin" / "mkdocs", "build", "--quiet", "--strict"], cwd=ROOT,
                          env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
