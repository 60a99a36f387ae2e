#!/usr/bin/env python3
"""Makes the documents say what is true once a release has been published.

    scripts/published.py --url URL [FILE...]      URL: of the published files; default: every document that has such lines

Lines that become true stand in a comment, <!-- published: ... -->, in which VERSION and URL stand for the release's; lines that end to be
true stand between <!-- until published --> and <!-- end -->. Run after publication; the documents say today's truth until then. The
release's own manual has the published text at once (scripts/site.py --published).
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--url", required=True)
    arguments = parser.parse_args()
    for file in arguments.files or documents():
        text = file.read_text()
        shown = published(text, version(), arguments.url)
        if shown == text:
            sys.exit(f"published: {file} has no lines of <!-- published: --> or <!-- until published -->")
        file.write_text(shown)


if __name__ == "__main__":
    main()
