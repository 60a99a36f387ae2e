#!/usr/bin/env python3
"""Runs `vramtrack test` with the limit that a baseline allows, and keeps the baseline. action.yml says what the variables are.

The baseline holds, for each mark, the upper bound of the growth per iteration that a run had. A later run may grow by the limit, or by
that bound where it is higher: a program that leaks already does not fail until it leaks more. The bound only ever falls, except when a
run is accepted: growth that creeps up from one change to the next is not followed.
"""
import json
import math
import os
import pathlib
import shlex
import subprocess
import sys
import xml.etree.ElementTree as xml

OUTCOMES = {0: "passes", 1: "leaks", 2: "untested", 3: "program_failed"}
KIND = "vramtrack.leak-gate-baseline.v1"
NEVER_A_LIMIT = "1 TiB"  # of an accepted run: it is measured, not judged


def setting(name):
    return os.environ.get("LEAK_GATE_" + name, "").strip()


def read_baseline(path):
    """The bounds by mark; none without a file."""
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text())
        if content["kind"] != KIND:
            raise ValueError(f"its kind is {content['kind']!r}")
        return {str(mark): float(bytes_) for mark, bytes_ in content["growth_high_bytes"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"::error::{path} is not a baseline of the leak gate ({error}); delete it, and accept a new run")


def read_measured(path):
    """{mark: (growth, upper bound)} in bytes per iteration. Writers of one mark (rank0, rank1, ...) share its baseline: the fastest."""
    measured = {}
    figures = {}
    for entry in xml.parse(path).iter("property"):
        name, _, what = entry.get("name", "").rpartition(".")
        figures.setdefault(name, {})[what] = entry.get("value", "")
    for name, values in figures.items():
        try:
            growth, high = float(values["growth_bytes_per_iteration"]), float(values["growth_high_bytes"])
        except (KeyError, ValueError):
            continue
        mark = name.partition(".")[0]
        if math.isfinite(high):
            measured[mark] = max((growth, high), measured.get(mark, (growth, high)), key=lambda pair: pair[1])
    return measured


def word_of(limit):
    """The word after the slash."""
    return limit.partition("/")[2].strip() or "iter"


def command(limit, junit):
    parts = [setting("VRAMTRACK") or "vramtrack", "test", "--limit", limit, "--junit", str(junit)]
    for option, value in (("--mark", setting("MARK")), ("--error-rate", setting("ERROR_RATE"))):
        if value:
            parts += [option, value]
    return [*parts, "--", "bash", "-c", setting("PROGRAM")]


def tell(outcome, measured, allowed, words):
    growth = max((pair[0] for pair in measured.values()), default=math.nan)
    if os.environ.get("GITHUB_OUTPUT"):
        with open(os.environ["GITHUB_OUTPUT"], "a") as out:
            out.write(f"outcome={outcome}\ngrowth_bytes={'' if math.isnan(growth) else f'{growth:.0f}'}\n")
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(os.environ["GITHUB_STEP_SUMMARY"], "a") as out:
            out.write(f"### Leak gate: {outcome.replace('_', ' ')}\n\n")
            if measured:
                out.write("| mark | growth per iteration | upper bound |\n|---|---|---|\n")
                for mark, (grown, high) in sorted(measured.items()):
                    out.write(f"| `{mark}` | {grown / 2**20:.3f} MiB | {high / 2**20:.3f} MiB |\n")
            out.write(f"\nAllowed: {allowed}. {words}\n")


def main():
    path = pathlib.Path(setting("BASELINE") or ".vramtrack-baseline.json")
    junit = pathlib.Path(setting("JUNIT") or "vramtrack-leak-gate.xml")
    limit = setting("LIMIT") or "0.2 MiB/iter"
    accept = setting("ACCEPT").lower() == "true"
    if not setting("PROGRAM"):
        sys.exit("::error::the input 'program' is empty")
    baseline = read_baseline(path)
    junit.unlink(missing_ok=True)

    # The gate is run once: a second verdict on the same program would have its own error rate. So the limit is known before it.
    known = baseline.get(setting("MARK")) if setting("MARK") else max(baseline.values(), default=None)
    allowed = limit
    if accept:
        allowed = f"{NEVER_A_LIMIT}/{word_of(limit)}"
    elif known is not None and known > bytes_of(limit):
        allowed = f"{known / 2**20:.6f} MiB/{word_of(limit)}"
    line = command(allowed, junit)
    print("::group::" + shlex.join(line), flush=True)
    done = subprocess.run(line, check=False)
    print("::endgroup::", flush=True)
    outcome = OUTCOMES.get(done.returncode, "untested")
    measured = read_measured(junit) if junit.exists() else {}
    if outcome == "untested" and junit.exists() and next(xml.parse(junit).iter("skipped"), None) is not None:
        outcome = "inconclusive"

    words = ""
    if outcome == "passes":
        kept = {mark: high if accept else min(high, baseline.get(mark, high)) for mark, (_, high) in measured.items()}
        kept = {mark: max(0.0, bytes_) for mark, bytes_ in kept.items()}
        if kept and kept != baseline:
            path.write_text(json.dumps({"kind": KIND, "growth_high_bytes": {**baseline, **kept}}, indent=1, sort_keys=True) + "\n")
            words = f"The baseline {path} was written."
            print(f"::notice::{words}")
    elif outcome == "leaks":
        words = f"GPU memory grows faster than {allowed}" + (", the baseline" if allowed != limit else "") + (
            ". Fix it, or run the action once with accept: true to make this growth the baseline.")
        print(f"::error::{words}")
    else:
        words = {"inconclusive": "Growth above the limit is neither shown nor excluded: run more iterations.", "untested": "The program could not be tested.", "program_failed": "The program itself failed."}[outcome]
        print(f"::error::{words} The log above says why.")
    tell(outcome, measured, allowed, words)
    sys.exit(done.returncode)


def bytes_of(limit):
    """Of a limit such as '0.2 MiB/iter'. What vramtrack does not read, it says itself."""
    units = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 1e3, "mb": 1e6, "gb": 1e9, "k": 2**10, "m": 2**20, "g": 2**30}
    text = limit.partition("/")[0].strip().lower()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        return float(number) * units[text[len(number) :].strip()]
    except (KeyError, ValueError):
        return math.inf  # then it stands as it is


if __name__ == "__main__":
    main()
