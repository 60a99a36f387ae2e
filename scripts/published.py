#!/usr/bin/env python3
"""Makes the documents say what is true once a release has been published.

    scripts/published.py --url URL [FILE...]      URL: of the published files; default: every document that has such lines

Lines that become true stand in a comment, <!-- published: ... -->, in which VERSION and URL stand for the release's; lines that end to be
true stand between <!-- until published --> and <!-- end -->. Run after publication; the documents say today's truth until then. What is
built for a release runs it before, in a checkout that is thrown away, so that every package has the published text (scripts/dist.py --released).
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def published(text, version, url):
    """The document's text as of then; the same where nothing changes."""
    text = re.sub(r"<!-- until published -->\n.*?<!-- end -->\n", "", text, flags=re.DOTALL)
    return re.sub(r"<!-- published:\n(.*?)\n-->\n", lambda found: found[1].replace("VERSION", version).replace("URL", url) + "\n", text,
                  flags=re.DOTALL)  # fmt: skip


def version():
    return (ROOT / "VERSION").read_text().strip()


def documents():
    """Those that differ."""
    return [path for path in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))] if published(path.read_text(), "", "") != path.read_text()]


def publish(files, url):
    for file in files:
        text = file.read_text()
        shown = published(text, version(), url)
        if shown == text:
            sys.exit(f"published: {file} has no lines of <!-- published: --> or <!-- until published -->")
        file.write_text(shown)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--url", required=True)
    arguments = parser.parse_args()
    publish(arguments.files or documents(), arguments.url)


if __name__ == "__main__":
    main()
