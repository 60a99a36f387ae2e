#!/usr/bin/env python3
"""Prints the section of CHANGELOG.md for one version, for the release's page.

    scripts/release_notes.py VERSION [--released] [CHANGELOG.md]

Between releases it is the section Unreleased. With --released, it is the version's section, and nothing may be left under
Unreleased, because it would be in the packages but not in the notes.
"""
import argparse
import pathlib
import re
import sys


def sections(text):
    """The changelog's sections by the first word of their headings, each without its heading."""
    parts = re.split(r"^## +(.+)$", text, flags=re.MULTILINE)
    return {heading.split()[0].strip("[]"): body.strip() for heading, body in zip(parts[1::2], parts[2::2])}


def notes(text, version, released=False):
    """The Markdown for the version. Raises LookupError if there is none."""
    found = sections(text)
    unreleased = found.get("Unreleased")
    if released and unreleased:
        raise LookupError(f"there are changes under '## Unreleased'; move them to '## {version}'")
    body = found.get(version) if released or not unreleased else unreleased
    if not body:
        raise LookupError(f"no section '## {version}'")
    return f"# vramtrack {version}{' (not released)' if unreleased else ''}\n\n{body}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version")
    parser.add_argument("changelog", nargs="?", default=pathlib.Path(__file__).parents[1] / "CHANGELOG.md", type=pathlib.Path)
    parser.add_argument("--released", action="store_true")
    arguments = parser.parse_args()
    try:
        sys.stdout.write(notes(arguments.changelog.read_text(), arguments.version, arguments.released))
    except LookupError as error:
        sys.exit(f"release_notes: {arguments.changelog}: {error.args[0]}")


if __name__ == "__main__":
    main()
