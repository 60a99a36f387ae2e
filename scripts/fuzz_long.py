#!/usr/bin/env python3
"""Runs every fuzz target, one after another, and reports which ran, what they covered and what they found.

    scripts/fuzz_long.py BUILD_DIR [--seconds 3600] [--only NAME ...]

The targets share the time. A target that finds something is started again until its time is up or it has found five
inputs. Inputs go to BUILD_DIR/corpus/NAME, findings to BUILD_DIR/crash-NAME-*. The tables (Markdown) and the line
coverage by llvm-cov are made at the end, from all inputs. Exit status: 1 if anything was found.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from fuzz_limits import limits

ROOT = Path(__file__).resolve().parent.parent
# Measured in wall time, because on a busy machine the fuzzer may get no processor for seconds.
OPTIONS = ["-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-timeout=60", "-print_final_stats=1"]
MOST_FINDINGS = 5


def inputs(build, name):
    grown = build / "corpus" / name
    grown.mkdir(parents=True, exist_ok=True)
    return [str(grown), str(ROOT / "fuzz" / "corpus" / name)]


def run(build, name, seconds):
    """Fuzzes one target; returns its figures."""
    target, log = build / f"fuzz_{name}", build / f"fuzz-{name}.log"
    log.write_text("")
    before = set(build.glob(f"crash-{name}-*"))
    end, executions, edges, findings, failed = time.monotonic() + seconds, 0, 0, 0, 0
    while (left := int(end - time.monotonic())) > 0 and failed < MOST_FINDINGS:
        command = [str(target), *OPTIONS, f"-max_len={limits()[name]}", f"-max_total_time={left}", f"-artifact_prefix={build}/crash-{name}-"]
        ended = subprocess.run(command + inputs(build, name), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env=dict(os.environ, LLVM_PROFILE_FILE="/dev/null"))
        text = ended.stderr.decode(errors="replace")
        with log.open("a") as out:
            out.write(text)
        executions += sum(map(int, re.findall(r"^stat::number_of_executed_units: *(\d+)", text, re.M)))
        edges = max([edges, *map(int, re.findall(r"\bcov: (\d+)", text))])
        if ended.returncode == 0:
            break
        failed += 1
    findings = max(failed, len(set(build.glob(f"crash-{name}-*")) - before))
    return {"executions": executions, "edges": edges, "findings": findings}


def summaries(build, targets, profile):
    """For each file of src/ in `targets`: (lines that ran, lines)."""
    objects = [str(build / f"fuzz_{targets[0]}")] + [f"-object={build}/fuzz_{name}" for name in targets[1:]]
    export = subprocess.run(["llvm-cov", "export", "-summary-only", f"-instr-profile={profile}", *objects],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    found = {}
    for file in json.loads(export.stdout)["data"][0]["files"]:
        path = os.path.normpath(file["filename"])
        if path.startswith(f"{ROOT}/src/"):
            lines = file["summary"]["lines"]
            found[path[len(f"{ROOT}/src/"):]] = (lines["covered"], lines["count"])
    return found


def coverage(build, targets, figures):
    """Runs all inputs once more with coverage: the lines of src/ per target, and those of all targets per module."""
    folder = build / "profile"
    folder.mkdir(exist_ok=True)
    profiles = []
    for name in targets:
        raw, profile = folder / f"{name}.profraw", folder / f"{name}.profdata"
        subprocess.run([str(build / f"fuzz_{name}"), "-runs=0", *OPTIONS, *inputs(build, name)], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, LLVM_PROFILE_FILE=str(raw)))
        subprocess.run(["llvm-profdata", "merge", "-sparse", str(raw), "-o", str(profile)], check=True)
        profiles.append(str(profile))
        figures[name]["lines"] = sum(ran for ran, _ in summaries(build, [name], profile).values())
    subprocess.run(["llvm-profdata", "merge", "-sparse", *profiles, "-o", str(folder / "all.profdata")], check=True)
    files = summaries(build, targets, folder / "all.profdata")
    modules = {}
    for file, (ran, count) in files.items():
        module = "agent/server" if file.startswith("agent/server/") else file.split("/")[0]
        have = modules.setdefault(module, [0, 0])
        have[0] += ran
        have[1] += count
    return modules


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    targets = sorted(f.stem[: -len("_fuzz")] for f in (ROOT / "fuzz").glob("*_fuzz.cpp"))
    targets = [name for name in targets if not arguments.only or name in arguments.only]
    figures = {}
    for i, name in enumerate(targets):
        print(f"fuzz: {name} ({i + 1} of {len(targets)})", file=sys.stderr, flush=True)
        figures[name] = run(build, name, max(1, arguments.seconds // len(targets)))
        print(f"fuzz: {name}: {figures[name]}", file=sys.stderr, flush=True)
    modules = coverage(build, targets, figures)

    print(f"{arguments.seconds // len(targets)} s for each target\n")
    print("| target | inputs tried | edges | lines of src/ run | findings |\n|---|---|---|---|---|")
    for name in targets:
        f = figures[name]
        print(f"| {name} | {f['executions']} | {f['edges']} | {f['lines']} | {f['findings']} |")
    total = sum(f["executions"] for f in figures.values()), sum(f["findings"] for f in figures.values())
    print(f"| all | {total[0]} | | {sum(ran for ran, _ in modules.values())} | {total[1]} |\n")
    print("| module | lines run | of | share |\n|---|---|---|---|")
    for module, (ran, count) in sorted(modules.items()):
        print(f"| {module} | {ran} | {count} | {100 * ran / max(1, count):.0f} % |")
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
