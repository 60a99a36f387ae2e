"""`vramtrack snapshot` from outside, on snapshots that Python's own pickler wrote in every protocol and era.

    python3 tests/cli/snapshot.py build/release/vramtrack            run
    python3 tests/cli/snapshot.py build/release/vramtrack --update   rewrite tests/golden/snapshot/*.txt
"""
import bz2
import contextlib
import csv
import gzip
import io
import json
import os
import pathlib
import pickle
import re
import sqlite3
import sys
import unittest

import xprof_files
from recorder import LEAK_STACK, NATIVE, RUN, STEP, TORCH, leaking
from sandbox import MIB, TESTS, Sandbox, expect_golden

UPDATE = "--update" in sys.argv
if UPDATE:
    sys.argv.remove("--update")
BINARY = sys.argv.pop(1)
GOLDEN = TESTS / "golden" / "snapshot"
SITE = "me/project/train.py:88 train_step"
REAL = TESTS.parent.parent / "shared" / "traces" / "snapshots"


class DataOnly(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"asks for {module}.{name}")


def totals(segments):
    """What a device has reserved, allocated and been asked for, and its live blocks: added up by Python."""
    out = {}
    for segment in segments:
        live = [b for b in segment["blocks"] if b["state"] == "active_allocated"]
        sums = (segment["total_size"], sum(b["size"] for b in live), sum(b["requested_size"] for b in live), len(live))
        known = out.setdefault(segment["device"], [0, 0, 0, 0])
        out[segment["device"]] = [a + b for a, b in zip(known, sums)]
    return out


class Snapshot(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def write(self, name, snapshot, protocol=4):
        (self.box.work / name).write_bytes(pickle.dumps(snapshot, protocol=protocol))
        return name

    def run_it(self, *args, code=0):
        result = self.box.run("snapshot", *args)
        self.assertEqual(result.returncode, code, result.stderr.decode())
        return result.stdout.decode() if code in (0, 1) else result.stderr.decode()

    def json(self, *args, code=0):
        return json.loads(self.run_it(*args, "--json", code=code))

    def test_goldens(self):
        steps = [self.write(f"step{n}.pickle", leaking(n).snapshot()) for n in (1, 11, 21)]
        oom = self.write("oom.pickle", leaking(40, oom=990 * MIB).snapshot())
        (self.box.work / "evil.pickle").write_bytes(pickle.dumps({"segments": [os.system]}))
        cases = {"summary": ["summary", steps[2]], "leaks": ["leaks", *steps], "leaks_two": ["leaks", *steps[:2]],
                 "timeline": ["timeline", "--top", "3", steps[1]], "oom": ["oom", "--capacity", "16GiB", oom],
                 "folded": ["export", "--format", "folded", steps[2]], "executed": ["summary", "evil.pickle"],
                 "no_such_device": ["summary", "--device", "3", steps[0]], "one_file": ["leaks", steps[0]]}
        GOLDEN.mkdir(exist_ok=True)
        for name, args in cases.items():
            result = self.box.run("snapshot", *args)
            text = f"$ vramtrack snapshot {' '.join(args)}\n{result.stdout.decode()}"
            if result.stderr:
                text += f"--- stderr\n{result.stderr.decode()}"
            text += f"--- exit {result.returncode}\n"
            path = GOLDEN / f"{name}.txt"
            if UPDATE:
                path.write_text(text)
            self.assertEqual(text, path.read_text() if path.exists() else "", name)

    def test_every_protocol_and_packing_gives_the_same(self):
        snapshot = leaking(5).snapshot()
        answers = set()
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            name = self.write(f"p{protocol}.pickle", snapshot, protocol)
            raw = (self.box.work / name).read_bytes()
            (self.box.work / "packed.gz").write_bytes(gzip.compress(raw))
            (self.box.work / "padded").write_bytes(raw + b"\0\0")
            for file in (name, "packed.gz", "padded"):
                answer = self.json("summary", file)["snapshots"][0]
                del answer["file"], answer["file_bytes"]
                answers.add(json.dumps(answer))
        self.assertEqual(len(answers), 1)

    def test_summary_figures(self):
        device = self.json("summary", self.write("a.pickle", leaking(3).snapshot()))["snapshots"][0]["devices"][0]
        self.assertEqual(device["reserved_bytes"], 1024 * MIB)
        self.assertEqual(device["allocated_bytes"], 11 * 2 * MIB)
        self.assertEqual(device["requested_bytes"], 8 * (2 * MIB - 512) + 3 * MIB)
        self.assertEqual(device["pinned_bytes"], 1024 * MIB - 22 * MIB)
        self.assertEqual(device["trace"]["peak_live_bytes"], device["requested_bytes"] + 60 * MIB)
        self.assertEqual(device["sites"][1]["site"], SITE)

    def test_the_leak_is_the_line_that_leaks(self):
        files = [self.write(f"{n}.pickle", leaking(n).snapshot()) for n in (2, 12, 22)]
        answer = self.json("leaks", *files, code=1)
        self.assertEqual((answer["condition"], answer["is_certain"]), ("leak", True))
        self.assertEqual(answer["leaking_bytes"], 20 * MIB)
        self.assertEqual([s["site"] for s in answer["sites"]], [SITE])
        self.assertEqual(answer["sites"][0]["bytes"], [2 * MIB, 12 * MIB, 22 * MIB])
        healthy = [self.write(f"h{n}.pickle", leaking(n, keep=0).snapshot()) for n in (2, 12, 22)]
        self.assertEqual(self.json("leaks", *healthy)["condition"], "steady")
        backwards = self.json("leaks", *reversed(files))
        self.assertEqual(backwards["sites"][0]["growth_bytes"], -20 * MIB)

    def test_two_programs_cannot_be_compared(self):
        files = [self.write(f"{n}.pickle", leaking(n).snapshot()) for n in (2, 12)]
        other = leaking(12).snapshot()
        for block in other["segments"][0]["blocks"]:
            block["frames"] = [dict(f, filename="/other/" + f["filename"]) for f in block["frames"]]
        files[1] = self.write("other.pickle", other)
        result = self.box.run("snapshot", "leaks", *files)
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"hardly any stacks in common", result.stdout)
        # All blocks of an early one may be gone later: that is one program.
        segment = dict(other["segments"][0], blocks=other["segments"][0]["blocks"][:1], total_size=2 * MIB)
        early = self.write("early.pickle", {"segments": [segment], "device_traces": []})
        late = self.write("late.pickle", leaking(30).snapshot())
        self.assertTrue(self.json("leaks", early, late, code=1)["is_comparable"])

    def test_doubts_are_said(self):
        files = [self.write(f"{n}.pickle", leaking(n).snapshot()) for n in (2, 12)]
        self.assertEqual(self.json("leaks", *files, code=1)["notes"], [])
        self.assertIn("[2] was taken before [1]", self.json("leaks", *reversed(files))["notes"][0])
        more = leaking(12).snapshot()
        more["segments"].append(dict(leaking(12).snapshot()["segments"][0], device=1))
        notes = self.json("leaks", files[0], self.write("more.pickle", more), code=1)["notes"]
        self.assertEqual(notes, ["[1] has device 0, [2] has 0, 1"])

    def test_a_leak_does_not_hide_behind_another_device(self):
        files = []
        for n in (2, 12, 22):
            snapshot = leaking(n).snapshot()
            other = leaking(44 - 2 * n).snapshot()["segments"][0]
            snapshot["segments"].append(dict(other, device=1, address=other["address"] + (1 << 40), blocks=[
                dict(b, address=b["address"] + (1 << 40)) for b in other["blocks"]]))
            files.append(self.write(f"{n}.pickle", snapshot))
        answer = self.json("leaks", *files, code=1)
        self.assertEqual((answer["condition"], answer["leaking_bytes"]), ("leak", 20 * MIB))
        self.assertEqual([(d["device"], d["condition"]) for d in answer["devices"]], [(0, "leak"), (1, "steady")])
        text = self.run_it("leaks", *files, code=1)
        self.assertRegex(text, r"^device 0: LEAK: ")
        self.assertIn("\ndevice 1: no leak: ", text)
        self.assertIn("--used applies to one device", self.run_it("leaks", "--used", "1GiB,2GiB,3GiB", *files, code=2))

    def test_growth_of_no_one_site(self):
        files = []
        for n in range(3):
            r = leaking(1, keep=0)
            for k in range(n + 1):  # notebook cells, each with its own line
                r.allocate(2 * MIB - 512, [NATIVE, TORCH, dict(STEP, line=1000 + k)])
                r.allocate(2 * MIB - 512, [NATIVE, TORCH, dict(STEP, line=2000 + k)])
            files.append(self.write(f"{n}.pickle", r.snapshot()))
        answer = self.json("leaks", *files, code=1)
        self.assertEqual((answer["condition"], answer["is_certain"]), ("leak", False))
        self.assertIn("not at any single site", answer["because"])

    def test_sizes_that_vary_are_not_certain(self):
        def one(size):
            r = leaking(1, keep=0)
            r.allocate(size, LEAK_STACK)
            return self.write(f"{size}.pickle", r.snapshot())
        sizes = [MIB + n * 150 * 1024 for n in range(5)]
        answer = self.json("leaks", *map(one, sizes[:3]), code=1)
        self.assertEqual((answer["condition"], answer["is_certain"]), ("leak", False))
        self.assertIn("1 of 6 sets", answer["next_step"])
        self.assertTrue(self.json("leaks", *map(one, sizes), code=1)["is_certain"])

    def test_an_oom_is_told_by_the_summary(self):
        text = self.run_it("summary", self.write("oom.pickle", leaking(40, oom=990 * MIB).snapshot()))
        self.assertIn("it ran OUT OF MEMORY once in ", text)
        self.assertNotIn("OUT OF MEMORY", self.run_it("summary", self.write("fine.pickle", leaking(40).snapshot())))

    def test_a_line_is_told_once(self):
        r = leaking(3)
        for n in range(4):
            r.allocate(MIB, [NATIVE, TORCH, STEP, dict(RUN, line=100 + n)])
        text = self.run_it("summary", self.write("a.pickle", r.snapshot()))
        self.assertEqual(text.count("train.py:88 train_step"), 1)
        self.assertRegex(text, r"7\.0 MiB +\S+ % +7 blocks  \S+ train_step  \(5 stacks\)")

    def test_standard_input(self):
        self.write("a.pickle", leaking(3).snapshot())
        done = self.box.run("snapshot", "summary", "-", stdin=(self.box.work / "a.pickle").read_bytes())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"standard input: ", done.stdout)

    def test_what_was_meant_is_named(self):
        self.write("a.pickle", leaking(1).snapshot())
        oom = self.write("oom.pickle", leaking(5, oom=990 * MIB).snapshot())
        said = [self.run_it(*args, code=2) for args in (["sumary", "a.pickle"], ["summary", "--jsn", "a.pickle"], ["oom", "--capacity", "512MiB", oom])]
        expect_golden(self, "snapshot_meant.txt", "".join(said) + self.box.run("analyze", "a.pickle").stderr.decode())

    def events(self, steps, keep=4096):
        """A program that releases what each step takes, except for `keep` bytes."""
        lines = ["# vramtrack allocation events 1", "0 + 0x10 1048576 load@/home/me/model.py:12;main@/home/me/run.py:3"]
        for n in range(steps):
            lines.append(f"{n + 1} + 0x20 524288 step@/home/me/train.py:88;main@/home/me/run.py:7")
            if keep:
                lines.append(f"{n + 1.25} + {0x1000 + n} {keep} remember@/home/me/train.py:91;main@/home/me/run.py:7")
            lines.append(f"{n + 1.5} - 0x20")
        return "\n".join(lines) + "\n"

    def test_a_log_of_events_is_read_by_every_verb(self):
        (self.box.work / "events.log").write_text(self.events(500))
        (self.box.work / "steady.log").write_text(self.events(500, keep=0))
        (self.box.work / "packed.log.gz").write_bytes(gzip.compress(self.events(500).encode()))
        summary = self.json("summary", "events.log")["snapshots"][0]["devices"][0]
        self.assertEqual(summary["requested_bytes"], 1048576 + 500 * 4096)
        self.assertEqual(summary["reserved_bytes"], summary["requested_bytes"])
        self.assertEqual(summary, self.json("summary", "packed.log.gz")["snapshots"][0]["devices"][0])
        leaks = self.json("leaks", "events.log", code=1)
        self.assertEqual((leaks["condition"], leaks["is_certain"]), ("leak", True))
        self.assertIn("train.py:91 remember", leaks["sites"][0]["site"])
        self.assertEqual(len(leaks["snapshots"]), 5)
        self.assertIn("events.log at +", leaks["snapshots"][0]["file"])
        self.assertIn("LEAK: 1 site grew at each ", self.run_it("leaks", "events.log", code=1))
        self.assertEqual(self.json("leaks", "steady.log")["condition"], "steady")
        timeline = self.json("timeline", "events.log")["devices"][0]
        self.assertEqual(timeline["end"]["live_bytes"], summary["requested_bytes"])
        self.assertEqual(timeline["entries"], 1501)
        self.assertIn("peak 1: ", self.run_it("timeline", "events.log"))
        self.assertIn("remember", self.run_it("export", "--format", "folded", "events.log"))
        rows = list(csv.DictReader(io.StringIO(self.run_it("export", "--format", "csv", "events.log"))))
        self.assertEqual(len(rows), 1501)
        self.assertEqual(int(rows[-1]["reserved_bytes"]), summary["requested_bytes"])
        self.run_it("flamegraph", "--output", "live.html", "events.log")

    def test_a_log_of_events_that_cannot_be_read_names_the_line(self):
        (self.box.work / "bad.log").write_text(self.events(3) + "9 + 0x99 64KiB\n")
        for verb in ("summary", "timeline", "leaks"):
            self.assertIn("bad.log:12: ", self.run_it(verb, "bad.log", code=2))
        (self.box.work / "short.log").write_text("0 + 1 1\n")
        self.assertIn("too few events", self.run_it("leaks", "short.log", code=2))
        self.assertIn("--device 3", self.run_it("timeline", "--device", "3", "short.log", code=2))
        self.assertIn(b"(allocation-events: ", self.box.run("analyze", "short.log").stderr)

    def test_heap_profiles_of_jax(self):
        first, second = (str(TESTS / "fixtures" / "jax" / name) for name in ("step3.prof", "step8.prof"))
        summary = self.run_it("summary", first)
        self.assertIn("device 0: 11.0 MiB are live", summary)
        self.assertIn("/home/me/train.py:4 layer", summary)
        self.assertNotIn("empty_cache", summary)
        self.assertIn("layer", self.run_it("export", "--format", "folded", first))
        self.run_it("flamegraph", "--output", "live.html", first)
        said = [self.run_it("leaks", first, second, code=1), self.run_it("timeline", first, code=2), self.run_it("oom", first),
                self.box.run("trace", "report", first).stderr.decode()]
        expect_golden(self, "snapshot_heap.txt", "\n".join(said), [(re.escape(str(TESTS / "fixtures")), "FIXTURES")])

    def test_profiles_of_xprof(self):
        names = {True: "leak.xplane.pb", False: "steady.xplane.pb.gz"}
        for leaks, name in names.items():
            raw = xprof_files.xspace(xprof_files.training(leaks=leaks))
            (self.box.work / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        summary = self.json("summary", names[True])["snapshots"][0]
        gpu, host = summary["devices"]
        self.assertEqual((gpu["requested_bytes"], host["requested_bytes"], host["is_host"]), ((512 - 300 + 12) * MIB, 8 * MIB, True))
        sites = {site["site"]: site for site in gpu["sites"]}
        self.assertEqual(sites["metrics/history/ConcatV2"]["bytes"], 12 * MIB)
        self.assertEqual(sites["metrics/history/ConcatV2"]["labels"][0]["label"], "float[512,512]")
        self.assertEqual(gpu["trace"]["live_at_start_bytes"], 512 * MIB)
        text = self.run_it("summary", names[True])
        self.assertIn("labels: float[512,512] (12.0 MiB)", text)
        leaks = self.json("leaks", names[True], code=1)
        self.assertEqual(leaks["condition"], "leak")
        self.assertEqual(leaks["sites"][0]["site"], "metrics/history/ConcatV2")
        self.assertEqual(self.json("leaks", names[False])["condition"], "steady")
        timeline = self.run_it("timeline", names[True])
        self.assertRegex(timeline, r"peak 1: 58\d\.\d MiB live")
        self.assertIn("model/dense/MatMul", timeline)
        self.assertIn("GPU_0_bfc;output;metrics/history/ConcatV2", self.run_it("export", "--format", "folded", names[True]))
        self.run_it("flamegraph", "--peak", "--output", "live.html", names[True])
        self.run_it("page", "--output", "page.html", names[True])
        self.assertIn("no out-of-memory", self.run_it("oom", names[True]))
        self.assertIn("(xplane: profiles of XProf", self.box.run("analyze", names[True]).stderr.decode())

    def test_memory_profiles_of_xprof(self):
        made = xprof_files.training()
        whole = xprof_files.memory_profile(made)
        sampled, later = (xprof_files.memory_profile(xprof_files.training(steps, frees_old=False), most=20) for steps in (12, 21))
        (self.box.work / "memory_profile.json.gz").write_bytes(gzip.compress(json.dumps(whole).encode()))
        (self.box.work / "memory_profile.pb").write_bytes(xprof_files.as_message(whole))
        (self.box.work / "sampled.json").write_text(json.dumps(sampled))
        (self.box.work / "later.pb").write_bytes(xprof_files.as_message(later))
        (self.box.work / "space.xplane.pb").write_bytes(xprof_files.xspace(made))
        space = self.json("summary", "space.xplane.pb")["snapshots"][0]["devices"]
        for name in ("memory_profile.json.gz", "memory_profile.pb"):
            told = self.json("summary", name)["snapshots"][0]["devices"]
            for device in (*told, *space):
                device.get("trace", {}).pop("first_time_us", None)
                device.get("trace", {}).pop("last_time_us", None)
            self.assertEqual(told, space)
            self.assertEqual(self.json("leaks", name, code=1)["sites"][0]["site"], "metrics/history/ConcatV2")
        peak = self.run_it("summary", "sampled.json")
        self.assertIn("unused preallocated device memory", peak)
        self.assertIn("labels: float[4096,4096] (64.0 MiB)", peak)
        self.assertIn("name at least two", self.run_it("leaks", "sampled.json", code=2))
        self.assertIn("metrics/history/ConcatV2", self.run_it("leaks", "sampled.json", "later.pb", code=1))
        timeline = self.run_it("timeline", "sampled.json")
        self.assertIn("samples; live at the beginning", timeline)
        self.assertIn("model/dense/MatMul", timeline)
        self.assertIn("MatMul", self.run_it("export", "--format", "folded", "sampled.json"))
        self.assertIn(b"live at the peak", self.box.run("snapshot", "summary", "sampled.json").stderr)

    def test_outside_the_allocator(self):
        files = [self.write(f"h{n}.pickle", leaking(n, keep=0).snapshot()) for n in (2, 12)]
        self.assertEqual(self.json("leaks", "--used", "2GiB,3GiB", *files)["condition"], "outside")
        self.assertIn("--used has 1 sizes for 2", self.run_it("leaks", "--used", "2GiB", *files, code=2))

    def test_a_device_that_gave_everything_back(self):
        events = [{"action": action, "addr": 1 << 40, "size": 512, "stream": 0} for action in ("alloc", "free_requested", "free_completed")]
        (self.box.work / "empty.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [events, []]}))
        told = self.box.run("snapshot", "summary", "empty.pickle")
        self.assertEqual(told.returncode, 0, told.stderr.decode())
        self.assertIn("device 0: nothing is reserved", told.stdout.decode())

    def test_a_ring_that_lost_its_beginning(self):
        whole = self.write("whole.pickle", leaking(20).snapshot())
        cut = self.write("cut.pickle", leaking(20).snapshot(ring=501))
        rows = [list(csv.DictReader(io.StringIO(self.run_it("export", "--format", "csv", f)))) for f in (whole, cut)]
        self.assertEqual([r["live_bytes"] for r in rows[0][-501:]], [r["live_bytes"] for r in rows[1]])

    def test_oom_is_a_leak_or_too_big(self):
        leak = self.json("oom", self.write("l.pickle", leaking(60, keep=2 * MIB - 1, oom=900 * MIB).snapshot()))["devices"][0]
        self.assertEqual(leak["condition"], "leak")
        self.assertEqual(leak["risers"][0]["site"], SITE)
        big = self.json("oom", self.write("b.pickle", leaking(5, keep=0, oom=4096 * MIB).snapshot()))["devices"][0]
        self.assertEqual(big["condition"], "too_big")

    def test_oom_without_an_entry_is_never_a_leak(self):
        name = self.write("a.pickle", leaking(60).snapshot())
        told = self.json("oom", name)["devices"][0]
        self.assertEqual((told["has_oom"], told["condition"]), (False, "steady"))
        self.assertIn("1 site kept rising", told["because"])
        self.assertNotIn("0 bytes", self.run_it("oom", name).split("\n")[0])

    def test_oom_of_what_a_watch_wrote(self):
        snapshot = leaking(20).snapshot()
        snapshot["device_traces"] = [[]]
        snapshot["vramtrack_oom"] = {"device": 0, "asked_bytes": 300 * MIB, "device_free_bytes": 4000 * MIB,
                                     "device_total_bytes": 8192 * MIB, "allowed_bytes": 1200 * MIB}
        # The cache would suffice if it were in one piece, which it is.
        names = [self.write("vramtrack-oom-1.pickle", snapshot), self.write("vramtrack-oom-2.pickle", leaking(5, oom=4096 * MIB).snapshot())]
        snapshot["segments"][0]["blocks"][-1]["state"] = "active_allocated"
        names.append(self.write("vramtrack-oom-3.pickle", snapshot))
        self.assertEqual(self.json("oom", names[2])["devices"][0]["condition"], "limit")
        told = self.json("oom", *names)
        self.assertEqual([one["file"] for one in told["snapshots"]], names)
        self.assertEqual(told["devices"], told["snapshots"][0]["devices"])
        self.assertEqual(told["snapshots"][2]["devices"][0]["capacity_bytes"], 8192 * MIB)
        text = self.run_it("oom", *names)
        for name in names:
            self.assertIn(f"{name}\ndevice 0: ", text)

    def test_labels_are_shown(self):
        r = leaking(2)
        r.allocate(3 * MIB // 2, LEAK_STACK)
        r.trace[-1]["user_metadata"] = "step 7"
        r.trace[-1]["compile_context"] = "0/1"
        r.event("annotate", r.trace[-1]["addr"], 3 * MIB // 2, [], user_metadata="saved for backward")
        r.oom(990 * MIB, 10 * MIB)
        r.trace[-1].update(user_metadata="step 8", pool_id=(2, 0))
        snapshot = r.snapshot()
        snapshot["segments"].append(dict(snapshot["segments"][0], address=1 << 44, segment_pool_id=(3, 0), total_size=2 * MIB, blocks=[
            {"address": 1 << 44, "size": 2 * MIB, "requested_size": 2 * MIB, "state": "active_allocated", "frames": LEAK_STACK}]))
        name = self.write("a.pickle", snapshot)
        site = next(s for s in self.json("summary", name)["snapshots"][0]["devices"][0]["sites"] if "train_step" in s["site"])
        self.assertEqual([(each["kind"], each["label"], each["bytes"]) for each in site["labels"]],
                         [("pool", "CUDA graph 3", 2 * MIB), ("metadata", "step 7", 3 * MIB // 2),
                          ("annotation", "saved for backward", 3 * MIB // 2), ("compile_context", "compiling 0/1", 3 * MIB // 2)])
        self.assertIn("(1.5 MiB), saved for backward (1.5 MiB) and 1 more", self.run_it("summary", name))
        self.assertIn("CUDA graph 3 large", self.run_it("summary", name))
        oom = self.json("oom", name)["devices"][0]
        self.assertEqual((oom["asked_metadata"], oom["asked_pool_id"]), ("step 8", [2, 0]))
        self.assertIn(", step 8, CUDA graph 2\n", self.run_it("oom", name))
        self.assertIn("labels: step 7 (1.5 MiB)", self.run_it("oom", name))
        row = [row for row in csv.DictReader(io.StringIO(self.run_it("export", "--format", "csv", name))) if row["label"]]
        self.assertEqual([(each["action"], each["label"]) for each in row],
                         [("alloc", "step 7; compiling 0/1"), ("annotate", "saved for backward"), ("oom", "step 8")])
        self.assertEqual(row[2]["pool"], "2.0")

    def test_pinned_host_memory(self):
        files = []
        for n in (1, 2, 3):
            snapshot = leaking(1, keep=0).snapshot()
            host = leaking(n).snapshot()
            snapshot["host_segments"] = [dict(segment, device=-1) for segment in host["segments"]]
            snapshot["host_traces"] = host["device_traces"][0]
            files.append(self.write(f"{n}.pickle", snapshot))
        told = self.json("leaks", *files)
        self.assertEqual((told["condition"], told["host"]["condition"], told["host"]["leaking_bytes"]), ("steady", "leak", 2 * MIB))
        self.assertIn("\nhost (pinned memory): LEAK: ", self.run_it("leaks", *files))
        self.assertEqual(self.json("leaks", "--host", *files, code=1)["condition"], "leak")
        devices = self.json("summary", files[2])["snapshots"][0]["devices"]
        self.assertEqual([(d["is_host"], len(d["sites"])) for d in devices], [(False, 1), (True, 2)])
        self.assertIn("\nhost: pinned host memory\n", self.run_it("summary", files[2]))
        self.assertTrue(self.run_it("timeline", "--host", files[2]).startswith("host: "))
        plain = self.write("plain.pickle", leaking(1).snapshot())
        self.assertIn("record_pinned_host_memory=True", self.run_it("timeline", "--host", plain, code=2))

    def test_exports_are_what_they_say(self):
        name = self.write("a.pickle", leaking(3).snapshot())
        self.run_it("export", "--format", "speedscope", "--output", "s.json", name)
        scope = json.loads((self.box.work / "s.json").read_text())
        profile = scope["profiles"][0]
        self.assertEqual(sum(profile["weights"]), profile["endValue"])
        self.assertLess(max(max(s) for s in profile["samples"]), len(scope["shared"]["frames"]))
        self.run_it("export", "--format", "pprof", "--output", "p.pb.gz", name)
        self.assertIn(b"inuse_space", gzip.decompress((self.box.work / "p.pb.gz").read_bytes()))
        events = json.loads(self.run_it("export", "--format", "chrome", name))["traceEvents"]
        self.assertTrue(any(e["ph"] == "C" for e in events))
        for more in ([], ["--peak"]):
            page = self.run_it("flamegraph", *more, name)
            self.assertIn("model.py:54 forward", page)
            self.assertIsNone(re.search(r"https?://|src=|@import", page), "loads nothing")
        both = self.run_it("flamegraph", name, name)
        self.assertEqual(both.count("<iframe"), 2)
        self.assertNotIn("<script", both)  # it is within an attribute
        self.assertIn("two side by side", self.run_it("flamegraph", name, name, name, code=2))

    def test_the_page_has_what_the_timeline_has(self):
        name = self.write("a.pickle", leaking(30, oom=990 * MIB).snapshot())
        page = self.run_it("page", name)
        self.assertIsNone(re.search(r"<(script|link|img)[^>]*(src|href)=|@import|fetch\(|XMLHttpRequest", page), "loads nothing")
        part, = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["parts"]
        device, = json.loads(self.run_it("timeline", "--json", name))["devices"]
        points = part["points"]
        self.assertEqual(max(points["live"]), device["peaks"][0]["live_bytes"])
        self.assertEqual(points["event"], sorted(points["event"]))
        for at, live in enumerate(points["live"]):  # the layers include everything: there are fewer sites than layers
            steps = [list(zip(layer["steps"][::2], layer["steps"][1::2])) for layer in part["layers"]]
            self.assertEqual(sum(([value for point, value in each if point <= at] or [0])[-1] for each in steps), live)
        failure, = [mark for mark in part["marks"] if mark["failure"]]
        self.assertIn("out of memory", failure["words"])
        (_, reserved, _, blocks), = part["segments"]
        self.assertEqual((reserved, sum(blocks[1::4])), (1024 * MIB, 1024 * MIB))
        self.assertIn("no data for this device", self.run_it("page", "--device", "3", name, code=2))

    def test_usage_errors(self):
        for args in ([], ["oom"], ["export", "a.pickle"], ["export", "--format", "xml", "a.pickle"], ["summary", "--top", "0", "a.pickle"],
                     ["oom", "--capacity", "many", "a.pickle"], ["oom", "--capacity", "80", "a.pickle"]):
            self.assertIn("--help'", self.run_it(*args, code=2))

    def test_unreadable_files(self):
        for name, raw, why in (("missing", None, "No such file"), ("empty", b"", "is empty"), ("text", b"hello there", "not a pickle"),
                               ("zip", b"PK\x03\x04....", "zip archive"), ("bz2", bz2.compress(b"x"), "heap profiles in pprof's format"),
                               ("t.xplane.pb", b"\n\x10\x08\x01\x12\x0c/host:python\x1a\x00", "save_device_memory_profile"),
                               ("cut", pickle.dumps(leaking(2).snapshot(), 4)[:-1], "cut off"),
                               ("cut.gz", gzip.compress(pickle.dumps(leaking(2).snapshot(), 4))[:-50], "cut off")):
            if raw is not None:
                (self.box.work / name).write_bytes(raw)
            self.assertIn(why, self.run_it("summary", name, code=2))
        self.assertIn("/no/such/folder", self.run_it("summary", "--output", "/no/such/folder/x", self.write("a", leaking(1).snapshot()), code=2))

    def test_without_a_trace_it_says_how_to_get_one(self):
        snapshot = leaking(1).snapshot()
        snapshot["device_traces"] = [[]]
        name = self.write("a.pickle", snapshot)
        self.assertIn("_record_memory_history()", self.run_it("timeline", name, code=2))
        self.assertIn("_record_memory_history()", self.run_it("oom", name))
        self.assertIn("the file has no trace", self.run_it("oom", name))
        self.run_it("summary", name)
        empty = self.write("empty.pickle", {"segments": [], "device_traces": [[]]})
        self.assertIn("PYTORCH_NO_CUDA_MEMORY_CACHING", self.run_it("summary", empty))
        self.assertIn("neither a trace nor any memory", self.run_it("oom", empty, code=2))
        self.run_it("summary", self.write("bare.pickle", snapshot["segments"]))

    @unittest.skipUnless(REAL.is_dir(), f"no recordings in {REAL}; they are not part of the repository")
    def test_real_snapshots(self):
        for file in sorted(REAL.glob("*.pickle")):
            for args in (["flamegraph"], ["export", "--format", "folded"]):
                self.assertTrue(self.run_it(*args, str(file)))
            with open(file, "rb") as f:
                truth = DataOnly(f).load()
            told = self.json("summary", str(file))["snapshots"][0]["devices"]
            self.assertEqual({d["device"]: [d[k] for k in ("reserved_bytes", "allocated_bytes", "requested_bytes", "live_blocks")]
                              for d in told if d["reserved_bytes"]}, totals(truth["segments"]), file.name)
            for d in told:
                entries = truth["device_traces"][d["device"]]
                self.assertEqual(d.get("trace", {}).get("entries", 0), len(entries), file.name)
        answer = self.json("oom", str(REAL / "code_location_3gpu_oom.pickle"))["devices"]
        self.assertEqual([(d["device"], d["condition"]) for d in answer], [(1, "full")])

    def nsys_export(self, name, rows=""):
        """As nsys 2024.6 exports it, of what is read; the unit tests have the rest."""
        with contextlib.closing(sqlite3.connect(self.box.work / name)) as database:
            database.executescript(
                "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
                "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER, contextId INTEGER,"
                "  address INTEGER, pc INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER, name TEXT, correlationId INTEGER);"
                "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,"
                "  correlationId INTEGER, nameId INTEGER, returnValue INTEGER, callchainId INTEGER);"
                "CREATE TABLE CUDA_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth INTEGER, PRIMARY KEY (id, stackDepth));"
                "INSERT INTO StringIds VALUES (1, 'cudaMalloc_v3020'), (2, 'remember(int)'), (3, '/opt/job/train'), (4, 'main');"
                "INSERT INTO CUDA_CALLCHAINS VALUES (5, 2, 3, 0), (5, 4, 3, 1);" + rows)  # fmt: skip
            for step in range(600):
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 1, 0, 5)", (step * 10**9, step * 10**9 + 9, 7 << 24 | 3, step + 1))  # fmt: skip
                event = "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (?, ?, 0, 1, ?, 0, ?, 2, ?, NULL, ?)"
                database.execute(event, (step * 10**9 + 5, 7 << 24, 0x7F0000000000 + step * MIB, MIB, 0, step + 1))
                database.execute(event, (step * 10**9 + 6, 7 << 24, 0x10, 4096, 0, 0))
                database.execute(event, (step * 10**9 + 7, 7 << 24, 0x10, 4096, 1, 0))
            database.commit()
        return name

    def test_an_nsys_export(self):
        name = self.nsys_export("report.sqlite")
        text = self.run_it("leaks", name, code=1)
        self.assertIn("remember(int)", text)
        self.assertIn("600.0 MiB", self.run_it("summary", name))
        self.assertIn("remember(int)", self.run_it("timeline", name))
        (self.box.work / "report.gz").write_bytes(gzip.compress((self.box.work / name).read_bytes()))
        self.assertEqual(self.run_it("leaks", "report.gz", code=1).replace("report.gz", name), text)
        with contextlib.closing(sqlite3.connect(self.box.work / "other.sqlite")) as database:
            database.execute("CREATE TABLE t (x)")
        self.assertIn("has no CUDA memory events", self.run_it("summary", "other.sqlite", code=2))


if __name__ == "__main__":
    unittest.main(verbosity=1)
