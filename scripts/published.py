#!/usr/bin/env python3
"""Updates the documents once a release has been published.

    scripts/published.py --url URL [FILE...]      URL: of the published files; default: every document that has such lines

Lines that become true are in a comment, <!-- published: ... -->, in which VERSION and URL stand for the release's; lines that cease to be
true are between <!-- until published --> and <!-- end -->. Run it after publication; until then, the documents describe the present state. The
release build runs it earlier, in a checkout that is thrown away, so that every package has the published text (scripts/dist.py --released).
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def published(text, version, url):
    """The document's text after publication; unchanged if nothing depends on it."""
    text = re.sub(r"<!-- until published -->\n.*?<!-- end -->\n", "", text, flags=re.DOTALL)
    return re.sub(r"<!-- published:\n(.*?)\n-->\n", lambda found: found[1].replace("VERSION", version).replace("URL", url) + "\n", text,
                  flags=re.DOTALL)  # fmt: skip


def version():
    return (ROOT / "VERSION").read_text().strip()


def documents():
    """The documents that differ."""
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
