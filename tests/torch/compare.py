"""What `vramtrack snapshot` says of each real snapshot, against the truth beside it.

    compare.py VRAMTRACK SNAPSHOT_DIR...

Every byte count must equal torch's own counter, every expected line must be named, and the verdict must be right. A file without an
out-of-memory event is never called a leak by `oom`, and labels, pinned host memory and what others hold are shown. Exits 1 when anything
differs. tests/fixtures/torch has some of these files, which every test run compares.
"""
import json
import os
import pathlib
import subprocess
import sys


class Comparison:
    def __init__(self, tool):
        self.tool = tool
        self.files = 0
        self.mismatches = []

    def ask(self, command, *files):
        """(answer or None, what it said otherwise); leaks and oom exit with 1 where something leaks."""
        done = subprocess.run([self.tool, "snapshot", *command.split(), "--json", *files], capture_output=True, text=True)
        try:
            return json.loads(done.stdout), ""
        except ValueError:
            return None, (done.stderr or done.stdout).strip()

    def miss(self, where, *words):
        self.mismatches.append((where, " ".join(map(str, words))))
        print("differs:", where, *words, flush=True)

    def situation(self, sidecar):
        truth = json.loads(sidecar.read_text())
        where = f"{sidecar.parent.parent.name}/{truth['situation']}"
        files = [str(sidecar.parent / shot["file"]) for shot in truth["snapshots"]]
        for shot, file in zip(truth["snapshots"], files):
            self.files += 1
            self.counters(where, truth["situation"], shot, file)
            self.no_oom(where, "oom" in truth["situation"], shot, file)
        expect = truth["snapshots"][-1]["expect"]
        if len(files) > 1:
            self.leaks(where, expect, files)
        if "oom" in truth["situation"]:
            self.oom(where, expect, truth["snapshots"][-1]["device_bytes"][0], files[-1])

    def counters(self, where, situation, shot, file):
        where = f"{where} {os.path.basename(file)}"
        answer, said = self.ask("summary", file)
        if answer is None:
            self.miss(where, "summary:", said)
            return
        devices = {device["device"]: device for device in answer["snapshots"][0]["devices"] if not device["is_host"]}
        for number, torch in enumerate(shot["devices"]):
            ours = devices.get(number, {})
            wanted = {"reserved_bytes": torch["reserved_bytes"], "allocated_bytes": torch["allocated_bytes"]}
            if "expandable" not in situation:  # a snapshot shows each mapped range as a segment, the counter one per reservation
                wanted["segments"] = torch["segment"]
            if torch["active_bytes"] == torch["allocated_bytes"]:  # torch counts what waits for a stream as requested, too
                wanted["requested_bytes"] = torch["requested_bytes"]
            for name, value in wanted.items():
                if value is not None and ours.get(name, 0) != value:
                    self.miss(where, f"device {number}: {name} is {ours.get(name, 0)}, torch counts {value}")
            active = ours.get("allocated_bytes", 0) + ours.get("pending_free_bytes", 0)
            if active != torch["active_bytes"]:
                self.miss(where, f"device {number}: allocated and pending are {active}, torch counts {torch['active_bytes']}")
        sites = [site for device in devices.values() for site in device["sites"]]
        top = shot["expect"].get("top")
        if top and not any(has_line(site, top) for site in sites):
            self.miss(where, f"summary does not name {top}, but {[site['site'] for site in sites[:3]]}")

        if "pending" in shot["expect"]:
            pending = sum(device["pending_free_bytes"] for device in devices.values())
            if pending != shot["expect"]["pending"]:
                self.miss(where, f"{pending} bytes are pending, expected {shot['expect']['pending']}")
        host = [device for device in answer["snapshots"][0]["devices"] if device["is_host"]]
        if shot["expect"].get("host") and not (host and host[0]["requested_bytes"] and host[0]["sites"] and host[0].get("trace")):
            self.miss(where, "summary shows no pinned host memory")
        labels = {label["label"] for site in sites for label in site.get("labels", [])}
        if missing := set(shot["expect"].get("labels", [])) - labels:
            self.miss(where, f"summary does not show the labels {sorted(missing)}, but {sorted(labels)}")

    def no_oom(self, where, has_oom, shot, file):
        """What oom says of a file that ran out of nothing."""
        answer, said = self.ask("oom", file)
        if answer is None:
            if any(device["reserved_bytes"] for device in shot["devices"]):
                self.miss(where, "oom:", said)
            return
        for device in answer["devices"]:
            if not has_oom and (device["has_oom"] or device["condition"] != "steady"):
                self.miss(where, f"oom says {device['condition']} without an event: {device['because']}")

    def leaks(self, where, expect, files):
        answer, said = self.ask("leaks", *files)
        if answer is None:
            self.miss(where, "leaks:", said)
            return
        is_leak = expect["verdict"].startswith("leak")
        # Two snapshots show growth; three are needed to call it a leak.
        if (answer["condition"] == "leak") != is_leak and not (is_leak and len(files) < 3):
            self.miss(where, f"leaks says {answer['condition']}, expected {expect['verdict']}: {answer['because']}")
        for line in [expect.get("top"), expect.get("second"), *expect.get("grows", [])]:
            if line and is_leak and not any(has_line(site, line) for site in answer["sites"]):
                self.miss(where, f"leaks does not name {line}, but {[site['site'] for site in answer['sites'][:3]]}")

    def oom(self, where, expect, capacity_bytes, file):
        answer, said = self.ask(f"oom --capacity {capacity_bytes}", file)
        if answer is None:
            self.miss(where, "oom:", said)
            return
        devices = [device for device in answer["devices"] if device["has_oom"]]
        if not devices:
            self.miss(where, "oom sees no out-of-memory event")
        right = {expect["verdict"], *expect.get("accept", [])}
        for device in devices:
            if device["condition"].replace("_", " ") not in right:
                self.miss(where, f"oom says {device['condition']}, expected {' or '.join(sorted(right))}: {device['because']}")
            if device["condition"] == "outside" and "% of the device" not in device["because"] and "%)" not in device["because"]:
                self.miss(where, f"oom does not name the share of others: {device['because']}")
            named = device["risers"] if device["condition"] == "leak" else device["sites"]
            if expect.get("top") and not any(has_line(site, expect["top"]) for site in named[:1]):
                self.miss(where, f"oom names first {[site['site'] for site in named[:1]]}, expected {expect['top']}")
        asked = [device.get("asked_bytes") for device in devices]
        if expect.get("requested") and expect["requested"] not in asked:
            self.miss(where, f"oom says that {asked} bytes were asked for, torch says {expect['requested']}")
        line = expect.get("oom") or expect.get("top")
        if line and line not in frames_in(answer):
            self.miss(where, f"oom does not name {line}")


def has_line(site, line):
    return any(f"{frame['file']}:{frame['line']}" == line for frame in site["stack"] or [])


def frames_in(value):
    """Every FILE:LINE of a frame anywhere in an answer."""
    if isinstance(value, dict):
        own = {f"{value['file']}:{value['line']}"} if "file" in value and "line" in value else set()
        return own.union(*map(frames_in, value.values()))
    return set().union(*map(frames_in, value)) if isinstance(value, list) else set()


def main(tool, *folders):
    comparison = Comparison(tool)
    for folder in folders:
        for sidecar in sorted(pathlib.Path(folder).glob("*.json")):
            comparison.situation(sidecar)
    print(f"{comparison.files} snapshots, {len(comparison.mismatches)} differences")
    return 1 if comparison.mismatches else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
