#!/usr/bin/env python3
"""Analyses every recording of a folder and prints a table: file, series, samples, skipped lines, verdict.

    bench/traces.py BINARY FOLDER...

Exits 1 when a file could not be analysed at all, or when a skipped line was counted but not named.
"""
import json
import pathlib
import re
import subprocess
import sys
import time

# What a recording does not say and its publisher does, or cannot be told from the file.
OPTIONS = {
    "alibaba_genai2026_gpu_mem.csv.gz": ["--capacity", "49140MiB"],
}


def words(series):
    verdict = series["verdict"]
    text = f"LEAK {verdict['pattern']}" if verdict["leak"] else verdict["state"]
    end = verdict["oom_in_s"]
    return text + (f", out of memory in {end['mid'] / 3600:.1f} h" if end else "")


def options_of(path):
    # The memory of a host is judged only if the format is named.
    return OPTIONS.get(path.name, []) + (["--input-format", "csv"] if path.name.startswith("aux_") else [])


def main():
    binary, folders = sys.argv[1], [pathlib.Path(folder) for folder in sys.argv[2:]]
    files = sorted(path for folder in folders for path in folder.iterdir() if path.is_file())
    failures = 0
    totals = {"series": 0, "samples": 0, "skipped": 0, "alerting": 0}
    begun = time.monotonic()
    print(f"{'file':46} {'series':>6} {'samples':>9} {'skipped':>7}  verdicts")
    for path in files:
        command = [binary, "analyze", "--format", "json", "--timezone", "UTC", *options_of(path), str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            failures += 1
            print(f"{path.name:46} FAILED ({done.returncode}): {done.stderr.strip()}")
            continue
        series = [json.loads(line) for line in done.stdout.splitlines()]
        samples = sum(one["samples"] for one in series)
        skipped = max((one["skipped_lines"] for one in series), default=0)
        verdicts = {}
        for one in series:
            verdicts[words(one)] = verdicts.get(words(one), 0) + 1
        listed = sorted(verdicts.items(), key=lambda item: (not item[0].startswith("LEAK"), -item[1]))
        shown = "; ".join(f"{count} x {text}" if count > 1 else text for text, count in listed[:6])
        alerting = sum(1 for one in series if one["alerts"])
        print(f"{path.name:46} {len(series):6} {samples:9} {skipped:7}  {shown}"
              + (f"; {len(listed) - 6} other verdicts" if len(listed) > 6 else "")
              + (f" [{alerting} series raised an alert]" if alerting else ""))
        # The same for every series of a recording.
        warnings = list(dict.fromkeys(text for one in series for text in one["warnings"]))
        named = [text for text in warnings if text.startswith("skipped ")]
        for text in warnings[:8]:
            print(f"    {text}")
        if skipped and not any(re.search(re.escape(path.name) + r":\d+", line) for line in named):
            failures += 1
            print("    skipped lines are counted but none is named")
        for key, value in (("series", len(series)), ("samples", samples), ("skipped", skipped), ("alerting", alerting)):
            totals[key] += value
    print(f"{len(files)} files, {totals['series']} series, {totals['samples']} samples, {totals['skipped']} lines skipped, "
          f"{totals['alerting']} series raised an alert, {failures} failures, {time.monotonic() - begun:.1f} s")
    return 1 if failures else 0


sys.exit(main())
