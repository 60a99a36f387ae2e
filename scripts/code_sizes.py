#!/usr/bin/env python3
"""Lengths of files and functions per folder, as a Markdown table: scripts/code_sizes.py [FOLDER...] (default: src page python).

Needs Universal Ctags for the functions. All lines count, including comments and blank lines.
"""
import json
import pathlib
import statistics
import subprocess
import sys

ENDINGS = {".cpp", ".hpp", ".def", ".ts", ".py"}
GENERATED = {"build", "dist", "node_modules", "__pycache__"}


def percentile_90(values):
    return sorted(values)[max(0, -(-len(values) * 9 // 10) - 1)] if values else 0


def files_below(folder):
    return [p for p in sorted(folder.rglob("*"))
            if p.suffix in ENDINGS and p.is_file() and not GENERATED.intersection(p.parts)]


def function_lengths(files):
    """The length in lines of each function that ctags finds, with its location."""
    if not files:
        return []
    found = subprocess.run(
        ["ctags", "--output-format=json", "--fields=+ne", "--kinds-C++=f", "--kinds-Python=fm", "--kinds-TypeScript=fm",
         "--languages=C++,Python,TypeScript", "--langmap=C++:+.hpp.cpp", "-f", "-", *map(str, files)],
        check=True, capture_output=True, text=True).stdout
    tags = (json.loads(line) for line in found.splitlines())
    return [(tag["end"] - tag["line"] + 1, f"{tag['path']}:{tag['line']} {tag['name']}") for tag in tags if "end" in tag]


def row(name, files):
    lines = [len(p.read_text(errors="replace").splitlines()) for p in files]
    functions = [length for length, _ in function_lengths(files)]
    median = statistics.median(functions) if functions else 0
    return (f"| {name} | {len(files)} | {sum(lines)} | {statistics.median(lines):.0f} | {percentile_90(lines)} | {max(lines)} | "
            f"{len(functions)} | {median:.0f} | {percentile_90(functions)} |")


def main():
    roots = [pathlib.Path(p) for p in sys.argv[1:] or ["src", "page/src", "python/native", "python/vramtrack"]]
    print("| folder | files | lines | median file | 90 % of files | longest | functions | median function | 90 % of functions |")
    print("|---|---|---|---|---|---|---|---|---|")
    everything = []
    for root in roots:
        folders = [p for p in sorted(root.iterdir()) if p.is_dir() and p.name not in GENERATED]
        for folder in folders if folders and root.name == "src" and root.parent == pathlib.Path(".") else [root]:
            files = files_below(folder)
            everything += files
            if files:
                print(row(f"`{folder}`", files))
    print(row("all", everything))
    print("\nLongest files and functions:\n")
    sizes = sorted(((len(p.read_text(errors='replace').splitlines()), str(p)) for p in everything), reverse=True)
    for length, name in sizes[:8] + sorted(function_lengths(everything), reverse=True)[:8]:
        print(f"* {length}: {name}")


main()
