"""`vramtrack trace` from outside, on traces that Python wrote as docs/formats/trace.md describes them.

    python3 tests/cli/trace.py build/release/vramtrack            run
    python3 tests/cli/trace.py build/release/vramtrack --update   rewrite tests/golden/trace/*.txt
"""
import gzip
import json
import re
import sys
import unittest

from sandbox import TESTS, Sandbox
from trace_writer import Trace, leaking_trace

UPDATE = "--update" in sys.argv
if UPDATE:
    sys.argv.remove("--update")
BINARY = sys.argv.pop(1)
GOLDEN = TESTS / "golden" / "trace"


class TraceFiles(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        (self.box.work / "leak").write_bytes(leaking_trace().bytes())

    def run_it(self, *args, code=0):
        result = self.box.run("trace", *args)
        self.assertEqual(result.returncode, code, result.stderr.decode())
        return result.stdout.decode() if code in (0, 1) else result.stderr.decode()

    def golden(self, name, text):
        path = GOLDEN / f"{name}.txt"
        if UPDATE:
            GOLDEN.mkdir(exist_ok=True)
            path.write_text(text)
        self.assertEqual(path.read_text(), text)

    def test_goldens(self):
        self.golden("report", self.run_it("report", "leak", code=1))
        self.golden("top", self.run_it("top", "leak"))
        self.golden("diff", self.run_it("diff", "--from", "epoch#2", "--to", "epoch#5", "leak"))
        self.golden("folded", self.run_it("export", "--format", "folded", "leak"))

    def test_the_json_is_as_documented(self):
        report = json.loads(self.run_it("report", "--format", "json", "leak", code=1))
        self.assertEqual(list(report), ["schema", "program", "duration_s", "verdict", "residual_bytes", "findings", "sites"])
        self.assertEqual(report["schema"], "vramtrack.trace_report.v1")
        self.assertIs(report["verdict"]["leak"], True)
        for site in report["sites"]:
            self.assertEqual(list(site), ["leak", "suspected", "site", "call", "live_bytes", "live_count", "growth_bytes_per_s", "oldest_s",
                                          "share", "frames"])  # fmt: skip
            self.assertEqual(list(site["frames"][0]), ["function", "file", "line", "python"])
        first, *others = report["sites"]
        self.assertEqual((first["leak"], first["live_bytes"], first["live_count"]), (True, 300 * 4096, 300))
        self.assertEqual(first["frames"][0], {"function": "train_step", "file": "/home/me/train.py", "line": 42, "python": True})
        self.assertEqual([site["leak"] for site in others], [False] * len(others))
        self.assertEqual(report["residual_bytes"], (300 << 20) - 40 * 2048 - 4096)

    def test_exits_as_it_says(self):
        calm = Trace()
        stack = calm.stack(("/home/me/a.py", 1, "f"))
        for _ in range(100):
            calm.alloc(4096, 100, stack)
            calm.free(4096)
        (self.box.work / "calm").write_bytes(calm.bytes())
        self.assertTrue(self.run_it("report", "calm").startswith("No leak\n"))
        (self.box.work / "short").write_bytes(Trace().bytes())
        self.assertTrue(self.run_it("report", "short").startswith("Cannot tell\n"))
        self.assertIn("no such file", self.run_it("report", "missing", code=2).lower())
        (self.box.work / "other").write_text("hello")
        self.assertIn("other is neither a trace", self.run_it("report", "other", code=2))
        self.assertIn("it has epoch at 0.009s", self.run_it("diff", "--from", "nothing", "leak", code=2))
        self.assertIn("name two traces", self.run_it("diff", "leak", code=2))

    def test_a_trace_that_was_cut_off_says_so(self):
        whole = leaking_trace().bytes()
        (self.box.work / "cut").write_bytes(whole[:-30])
        text = self.run_it("report", "cut", code=1)
        self.assertRegex(text, r"note: cut: the trace is cut off within a chunk at byte \d+")

    def test_suppressions_and_own_code(self):
        (self.box.work / "known").write_text("# accepted\nleak:*/train.py\n")
        self.assertIn("suppressed", self.run_it("report", "--suppressions", "known", "leak"))
        report = json.loads(self.run_it("report", "--format", "json", "--library", "/home/me/train.py", "leak", code=1))
        self.assertTrue(report["sites"][0]["leak"])

    def test_exports(self):
        page = self.run_it("flamegraph", "--from", "epoch#2", "leak")
        self.assertIn("train_step", page)
        both = self.run_it("flamegraph", "--beside", "leak", "leak")
        self.assertEqual(both.count("<iframe"), 2)
        self.assertIn("nothing-there", self.run_it("flamegraph", "--beside", "nothing-there", "leak", code=2))
        self.assertNotIn("build", re.search(r"<body.*", page, re.S)[0].replace("rebuild", ""))
        timeline = self.run_it("page", "leak")
        part, = json.loads(re.search(r'id="data">(.*?)</script>', timeline, re.S)[1])["parts"]
        leak, = [layer for layer in part["layers"] if "train.py:42 train_step" in layer["site"]]
        self.assertEqual(leak["steps"][-1], 300 * 4096)
        self.assertIn("epoch", {mark["words"] for mark in part["marks"]})
        events = json.loads(self.run_it("export", "--format", "chrome", "leak"))
        self.assertGreater(len(events["traceEvents"] if isinstance(events, dict) else events), 300)
        self.assertGreater(self.run_it("export", "--format", "csv", "leak").count("\n"), 600)
        json.loads(self.run_it("export", "--format", "speedscope", "leak"))
        self.run_it("export", "--format", "pprof", "--output", "p.gz", "leak")
        self.assertIn(b"train_step", gzip.decompress((self.box.work / "p.gz").read_bytes()))
        self.assertIn("pin", self.run_it("export", "--format", "folded", "--host", "leak"))

    def test_categories(self):
        trace, torch = Trace(), "/venv/lib/python3.11/site-packages/torch"
        main = ("/home/me/train.py", 3, "main")
        weights = trace.stack((f"{torch}/nn/modules/module.py", 1, "Module._apply"), main)
        state = trace.stack((f"{torch}/optim/adam.py", 2, "Adam._init_group"), (f"{torch}/optim/adam.py", 9, "Adam.step"), main)
        own = trace.stack(main)
        trace.alloc(0x1000, 512, weights)
        trace.alloc(0x2000, 512, own)
        trace.mark("begin")
        trace.alloc(0x3000, 1024, state)
        trace.alloc(0x4000, 256, own)
        trace.put("label", trace.text("Cache.keys"), trace.now_us, 0x4000, trace.text("kv_cache"))
        trace.mark("end")
        (self.box.work / "kinds").write_bytes(trace.bytes())
        found = json.loads(self.run_it("report", "--format", "json", "kinds"))["verdict"]["categories"]
        self.assertEqual({each["category"]: (each["bytes"], each["told_bytes"]) for each in found},
                         {"optimizer_state": (1024, 0), "weights": (512, 0), "kv_cache": (256, 256), "unknown": (512, 0)})  # fmt: skip
        self.assertIn("optimizer state 1.0 KiB, weights 512 bytes, KV cache 256 bytes, unknown 512 bytes", self.run_it("report", "kinds"))
        moments = ("--from", "begin", "--to", "end", "kinds")
        diff = json.loads(self.run_it("diff", "--format", "json", *moments))
        self.assertEqual(diff["categories"], [{"category": "optimizer_state", "change_bytes": 1024, "change_count": 1},
                                              {"category": "unknown", "change_bytes": 256, "change_count": 1}])  # fmt: skip
        self.assertRegex(self.run_it("diff", *moments), r"by category\n +\+1.0 KiB +\+1 blocks  optimizer state\n")

    def test_two_traces_are_compared(self):
        (self.box.work / "longer").write_bytes(leaking_trace(steps=400).bytes())
        diff = json.loads(self.run_it("diff", "--format", "json", "leak", "longer"))
        self.assertEqual([site["change_bytes"] for site in diff["sites"]], [100 * 4096])
        self.assertEqual(diff["sites"][0]["frames"][0]["line"], 42)


if __name__ == "__main__":
    unittest.main()
