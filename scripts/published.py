#!/usr/bin/env python3
"""Shows the lines of the documents that are true once a release has been published.

    scripts/published.py --url URL [FILE...]      URL: of the published files; default: README.md, docs/install.md

Such lines stand in a comment, <!-- published: ... -->, in which VERSION and URL stand for the release's. Run after publication; the
documents say today's truth until then.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def published(text, version, url):
    """The document's text with its comments' lines shown. Raises LookupError where it has none."""
    shown, count = re.subn(r"<!-- published:\n(.*?)\n-->\n", lambda found: found[1].replace("VERSION", version).replace("URL", url) + "\n", text,
                           flags=re.DOTALL)  # fmt: skip
    if count == 0:
        raise LookupError("has no lines of <!-- published: -->")
    return shown


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path, default=[ROOT / "README.md", ROOT / "docs" / "install.md"])
    parser.add_argument("--url", required=True)
    arguments = parser.parse_args()
    for file in arguments.files:
        try:
            file.write_text(published(file.read_text(), (ROOT / "VERSION").read_text().strip(), arguments.url))
        except LookupError as error:
            sys.exit(f"published: {file} {error}")


if __name__ == "__main__":
    main()
