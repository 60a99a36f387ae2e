#!/usr/bin/env python3
"""Packs what record.py wrote into labelled recordings: pack.py RAW TARGET. Format: tests/recordings/README.md.

Recordings that TARGET already has stay, except for those of the same name. Prints a line a run; one that failed, or that
says too little, is left out and the line says why. A dry run is never packed into tests/recordings: recordings there
are real. Exit 0: something was packed; 1: nothing was; 2: refused.
"""
import bisect
import csv
import gzip
import io
import pathlib
import statistics
import sys

REAL = pathlib.Path(__file__).resolve().parent.parent / "recordings"
MARGIN_S = 2.0  # of the device alone before and after the process
NEAR_S = 0.25  # a program's own row belongs to the sample nearest to it, at most so far away
LEAST_SAMPLES = 20
LABELS = ["name", "framework", "kind", "leak", "pattern", "twin", "expandable", "wave", "start_s", "onset_s", "oom_s", "end_s",
          "cap_bytes", "process_limit_bytes", "device_capacity_bytes", "gpu", "driver", "version", "recorded"]
SERIES = ["t_s", "device_used_bytes", "process_used_bytes", "allocated_bytes", "reserved_bytes"]


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def read_samples(path):
    """[(time, {pid: bytes})] in order of time; pid 0 is the device."""
    ticks = []
    for row in rows_of(path):
        if row["used_bytes"] is None:
            continue  # the last line of a recording that was cut off
        time_s = float(row["time_s"])
        if not ticks or ticks[-1][0] != time_s:
            ticks.append((time_s, {}))
        ticks[-1][1][int(row["pid"])] = int(row["used_bytes"])
    return ticks


def read_truth(path):
    """Times, and (allocated, reserved) at each; a last line that was cut off is dropped."""
    whole = [row for row in rows_of(path) if row["live_bytes"]]
    return [float(row["time_s"]) for row in whole], [(row["allocated_bytes"], row["reserved_bytes"]) for row in whole]


def nearest(times, time_s):
    """Index of the time nearest to time_s, or None when none is near."""
    place = bisect.bisect(times, time_s)
    best = min((i for i in (place - 1, place) if 0 <= i < len(times)), key=lambda i: abs(times[i] - time_s), default=None)
    return best if best is not None and abs(times[best] - time_s) <= NEAR_S else None


def pack_run(run, ticks, truth, events, machine):
    """(label, series rows) of one run, or the reason why there is none. events: {name: (time, detail)}, the first of each."""
    if run["exit_status"] != "0":
        return f"ended with {run['exit_status']}"
    missing = [name for name in ("start", "end") if name not in events]
    if missing:
        return f"has no event '{missing[0]}'"
    started, ended, pid = float(run["started_s"]), float(run["ended_s"]), int(run["pid"])
    kept = [tick for tick in ticks if started - MARGIN_S <= tick[0] <= ended + MARGIN_S]
    if len(kept) < LEAST_SAMPLES:
        return f"has only {len(kept)} samples"
    if run["leak"] == "1" and "onset" not in events:
        return "is to leak and did not begin to"
    if run["leak"] == "0" and "oom" in events:
        return "is healthy and ran out of memory: its cap is too small for it"
    zero = kept[0][0]
    times, values = truth
    series, overheads = [], []
    for time_s, used in kept:
        place = nearest(times, time_s)
        allocated, reserved = values[place] if place is not None else ("", "")
        process = used.get(pid, "") if started <= time_s <= ended else ""
        if process != "" and reserved and time_s >= events["start"][0]:
            overheads.append(process - int(reserved))
        series.append((f"{time_s - zero:.2f}", used.get(0, ""), process, allocated, reserved))

    def since_zero(name):
        return f"{events[name][0] - zero:.2f}" if name in events else ""

    label = {**{key: run[key] for key in ("name", "framework", "kind", "leak", "pattern", "twin", "expandable", "wave", "cap_bytes")},
             "start_s": since_zero("start"), "onset_s": since_zero("onset"), "oom_s": since_zero("oom"), "end_s": since_zero("end"),
             # Negative overheads happen: a reading of the driver is a moment older than the program's.
             "process_limit_bytes": int(run["cap_bytes"]) + max(0, round(statistics.median(overheads))) if overheads else "",
             "device_capacity_bytes": machine["capacity_bytes"], "gpu": machine["gpu"], "driver": machine["driver"],
             "version": events.get("framework", (0, ""))[1], "recorded": machine["recorded"]}
    return label, series


def as_csv(header, rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONE)  # fails rather than quotes
    writer.writerows([header, *rows])
    return text.getvalue()


def main(arguments):
    if len(arguments) != 2:
        print("usage: pack.py RAW TARGET", file=sys.stderr)
        return 2
    raw, target = map(pathlib.Path, arguments)
    machine = {row["key"]: row["value"] for row in rows_of(raw / "machine.csv")}
    if machine["dry_run"] != "0" and target.resolve() == REAL:
        print(f"pack: {raw} is a dry run; {target} is for real recordings only", file=sys.stderr)
        return 2
    target.mkdir(parents=True, exist_ok=True)
    ticks = read_samples(raw / "samples.csv")
    known = rows_of(target / "labels.csv") if (target / "labels.csv").exists() else []
    labels = []
    for run in rows_of(raw / "runs.csv"):
        name = run["name"]
        events, truth = {}, ([], [])
        if (raw / f"{name}.events.csv").exists():
            for row in rows_of(raw / f"{name}.events.csv"):
                events.setdefault(row["event"], (float(row["time_s"]), row["detail"] or ""))
            truth = read_truth(raw / f"{name}.truth.csv")
        packed = pack_run(run, ticks, truth, events, machine)
        if isinstance(packed, str):
            print(f"{name}: left out: it {packed}")
            continue
        label, series = packed
        (target / f"{name}.csv.gz").write_bytes(gzip.compress(as_csv(SERIES, series).encode(), 9, mtime=0))
        labels.append([label[column] for column in LABELS])
        seen = sum(1 for row in series if row[2] != "")
        print(f"{name}: {len(series)} samples, process seen in {seen}" + (f", out of memory at {label['oom_s']} s" if label["oom_s"] else ""))
    if not labels:
        print("pack: nothing could be packed", file=sys.stderr)
        return 1
    packed_names = {label[0] for label in labels}
    labels += [[row[column] for column in LABELS] for row in known if row["name"] not in packed_names]
    (target / "labels.csv").write_text(as_csv(LABELS, sorted(labels)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
