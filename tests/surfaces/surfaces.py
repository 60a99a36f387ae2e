"""Six situations on every surface: the same words and tone in each.

    surfaces.py build/release/tests/surfaces/surfaces [--node NODE] [--python PYTHON --package FOLDER] [--table FILE]

The situations are made by hand (situations.cpp), so no detector decides what is tested. What each must say is written down here. A file
that shows conclusions and is not in SHOWS fails test_every_surface_is_driven: drive it here, then add it there.
"""
import argparse
import functools
import html
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--node")
parser.add_argument("--python")
parser.add_argument("--package")
parser.add_argument("--table", help="write the table as Markdown into this file")
ARGUMENTS = parser.parse_args()

# The situation: what every surface says of the GPU, and how.
EXPECTED = {
    "steady": ("steady", "ok"),
    "growing": ("growing, not yet decidable", "notice"),
    "leaking": ("LEAK (gradual leak)", "critical"),
    "ended by out-of-memory, steady now": ("LEAKED until memory ran out (since then: steady)", "warning"),
    "ended and growing again": ("LEAKED until memory ran out; now growing, not yet decidable", "warning"),
    "process ended": ("steady", "ok"),
}
# Of the process that ended.
EXPECTED_OF_PROCESS = {
    "ended by out-of-memory, steady now": ("ran out of memory, process ended", "warning"),
    "ended and growing again": ("ran out of memory, process ended", "warning"),
    "process ended": ("steady, process ended", "ok"),
}
# The words for its alert, if there is one: what it is, and how it ended.
ALERT = {
    "leaking": ("gradual leak", "still active"),
    "ended by out-of-memory, steady now": ("gradual leak", "memory ran out at 23.9 GiB, and pid 4242 ended"),
    "ended and growing again": ("gradual leak", "memory ran out at 23.9 GiB, and pid 4242 ended"),
}
# Of the whole machine: the words and tone with which each surface that has such a sentence begins it.
MACHINE = {
    "steady": ("no leak", "ok"),
    "growing": ("GPU 0 grows, too early to tell why", "notice"),
    "leaking": ("GPU 0 leaks", "critical"),
    "ended by out-of-memory, steady now": ("GPU 0 leaked and ran out of memory", "warning"),
    "ended and growing again": ("GPU 0 leaked and ran out of memory", "warning"),
    "process ended": ("no leak", "ok"),
}
END = "reached 23.9/24.0 GiB at 2026-01-05T09:30:00Z; pid 4242 (python train.py) ended then"
FORECAST = {"leaking": "out of memory in 0h 24m (19m–30m)", "growing": "full in 2h 00m if the growth continues",
            "ended and growing again": "full in 2h 00m if the growth continues"}

# How a tone looks on a surface.
ANSI = {"ok": "\x1b[32m", "notice": "\x1b[33m", "watch": "\x1b[1;31m", "warning": "\x1b[1;31m", "critical": "\x1b[1;31m", "faint": "\x1b[2m"}
ROLE = {"ok": "good", "notice": "notice", "watch": "bad", "warning": "bad", "critical": "critical", "faint": "faint"}
CLASS = {"ok": "ok", "notice": "notice", "watch": "bad", "warning": "bad", "critical": "bad", "faint": "faint"}

# Every file that shows conclusions, and the surface by which it is driven here.
SHOWS = {
    "src/agent/server/api_events.cpp": "API view",
    "src/cli/cmd_simulate.cpp": "notification",  # its summary names the alert as the notification does
    "src/period/document.cpp": "report text",
    "src/fleet/json.cpp": "fleet json",
    "src/fleet/text.cpp": "fleet text",
    "src/period/gather.cpp": "report text",  # the order of the processes
    "src/period/html.cpp": "report html",
    "src/period/json.cpp": "report json",
    "src/report/headline.cpp": "API view",
    "src/report/json.cpp": "analyze json",
    "src/report/metrics.cpp": "metrics",
    "src/report/status.cpp": "watch",
    "src/report/text.cpp": "analyze text",
    "src/report/view_json.cpp": "API view",
    "src/top/alerts.cpp": "top alerts",
    "src/top/detail.cpp": "top detail",
    "src/top/draw.cpp": "top overview",
    "src/top/device_cards.cpp": "top overview",
    "src/top/overview.cpp": "top overview",
    "src/top/predict.cpp": "top predict",
    "src/top/process_table.cpp": "top overview",
    "src/top/rows.cpp": "top overview",
    "page/src/fleet.ts": "fleet json",  # it shows the state as it comes
    "page/src/gpu.ts": "page",
    "page/src/overview.ts": "page",
    "page/src/parts.ts": "page",
    "page/src/processes.ts": "page",
    "python/vramtrack/confirmation.py": "Python",
    "python/vramtrack/verdict.py": "Python",
}
# What concludes in words, and so may be in report/conclusion_words alone.
CONCLUDES = re.compile(r"EndKind::(?!ended\b)\w+|AlertEnd::(?!standing\b)\w+|\bstate_words\(|\bpattern_words\(|\bstall_words\(")
MAY = {
    "src/report/conclusion.cpp": "it is what the others render",
    "src/report/conclusion_words.cpp": "it is where they are made",
    "src/report/words.cpp": "names of things",
    "src/report/words.hpp": "names of things",
    "src/core/incident.cpp": "which alerts are one leak",
    "src/top/detail.cpp": "the pattern of the winning finding, beside its figures",
    "src/top/feed_live.cpp": "an alert whose watch ended",
    "src/cli/cmd_simulate.cpp": "the truth of a scenario",
    "src/cli/cmd_analyze.cpp": "the exit code",
    "src/period/document.cpp": "counts the GPUs that ran out of memory, for the title",
    "src/period/lost_work.cpp": "what a crash lost",
    "src/period/money.cpp": "the exit code",
}


def rendered():
    out = subprocess.run([ARGUMENTS.program], check=True, stdout=subprocess.PIPE).stdout
    return {one["situation"]: one for one in json.loads(out)}


def page_of(all_of_them):
    if not ARGUMENTS.node:
        return None
    given = [{"view": json.loads(one["API view"]), "alerts": json.loads(one["API alerts"])} for one in all_of_them.values()]
    out = subprocess.run([ARGUMENTS.node, str(ROOT / "page/surfaces.mjs")], env={**os.environ, "TZ": "UTC"}, input=json.dumps(given).encode(), check=True, stdout=subprocess.PIPE).stdout
    return dict(zip(all_of_them, json.loads(out)))


PYTHON = """
import json, sys
from vramtrack.verdict import Series, _verdict
out = []
for line in json.load(sys.stdin):
    verdict = _verdict(line, "", Series(), "device_used")
    out.append({"words": verdict.told.headline, "tone": verdict.told.tone, "end": verdict.told.end, "forecast": verdict.told.forecast,
                "alerts": [[alert.told.what, alert.told.ended] for alert in verdict.alerts]})
print(json.dumps(out))
"""


def python_of(all_of_them):
    if not ARGUMENTS.python:
        return None
    given = [json.loads(one["analyze json"].splitlines()[0]) for one in all_of_them.values()]
    out = subprocess.run([ARGUMENTS.python, "-c", PYTHON], input=json.dumps(given).encode(), check=True, stdout=subprocess.PIPE,
                         env={"PYTHONPATH": ARGUMENTS.package, "PYTHONDONTWRITEBYTECODE": "1"}).stdout
    return dict(zip(all_of_them, json.loads(out)))


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def toned_line(text, begins):
    """The words after `begins` that have a colour, and their colour."""
    for line in text.splitlines():
        if not plain(line).startswith(begins):
            continue
        parts = re.findall(r"(\x1b\[[0-9;]*m)(.*?)\x1b\[0m", line)
        colour = parts[0][0] if parts else ""
        return "".join(words for tone, words in parts if tone == colour), colour
    return "", ""


def in_each_situation(test):
    def run(self):
        for situation, (words, tone) in EXPECTED.items():
            with self.subTest(situation):
                test(self, self.all[situation], situation, words, tone)

    return functools.wraps(test)(run)


class Surfaces(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.all = rendered()
        cls.page = page_of(cls.all)
        cls.python = python_of(cls.all)

    def test_the_situations_are_those_that_are_expected(self):
        self.assertEqual(list(self.all), list(EXPECTED))

    @in_each_situation
    def test_text(self, one, situation, words, tone):
        for surface, begins in (("analyze text", "GPU 0 NVIDIA A10: "), ("watch", "GPU 0 NVIDIA A10 "), ("report text", "GPU 0 NVIDIA A10: ")):
            self.assertEqual(toned_line(one[surface], begins), (words, ANSI[tone]), surface)

    @in_each_situation
    def test_report(self, one, situation, words, tone):
        self.assertIn(f"## GPU 0 NVIDIA A10: {words}\n".replace("(", r"\(") if r"\(" in one["report markdown"] else f"## GPU 0 NVIDIA A10: {words}\n", one["report markdown"])
        self.assertIn(f'<span class="{CLASS[tone]}">{html.escape(words, quote=False)}</span></h2>', one["report html"])
        told = json.loads(one["report json"])["series"][0]["told"]
        self.assertEqual((told["headline"], told["tone"]), (words, tone))

    @in_each_situation
    def test_json(self, one, situation, words, tone):
        lines = [json.loads(line) for line in one["analyze json"].splitlines()]
        views = [json.loads(one[view])["series"] for view in ("API view", "API view, commands hidden")]
        for told in [lines[0]["told"]] + [view[0]["told"] for view in views]:
            self.assertEqual((told["headline"], told["tone"]), (words, tone))
            self.assertEqual(told.get("forecast", ""), FORECAST.get(situation, ""))
        self.assertNotIn("train.py", one["API view, commands hidden"])
        if situation in EXPECTED_OF_PROCESS:
            for told in (lines[1]["told"], views[0][1]["told"]):
                self.assertEqual((told["headline"], told["tone"]), EXPECTED_OF_PROCESS[situation])

    @in_each_situation
    def test_top(self, one, situation, words, tone):
        # A leak begins with its severity there; its pattern stands where there is room.
        expected = ["CRITICAL", FORECAST[situation]] if situation == "leaking" else [words, FORECAST.get(situation, "")]
        for screen in ("overview", "predict", "detail"):
            if screen == "overview" and situation.startswith("ended"):
                expected = [words]  # the forecast is cut off in a column
            rows = one[f"top {screen}"]
            found = [text for row in rows for role, text in row if role == ROLE[tone]]
            for part in expected:
                self.assertTrue(any(part in text for text in found), f"{screen}: {part!r} in {found}")
            if situation == "leaking" and screen != "overview":
                self.assertIn("gradual leak", "".join(text for row in rows for _, text in row), screen)

    @in_each_situation
    def test_metrics(self, one, situation, words, tone):
        self.assertRegex(one["metrics"], rf'vramtrack_verdict_info{{[^}}]*verdict="{re.escape(words)}",tone="{tone}"}} 1\n')

    @in_each_situation
    def test_page(self, one, situation, words, tone):
        if self.page is None:
            self.skipTest("node is not here")
        device = self.page[situation]["series"][0]
        self.assertEqual((device["words"], device["tone"]), (words, tone))
        # Never a green "steady" without a word for the GPU whose job has died of it.
        if "out-of-memory" in situation:
            self.assertNotEqual(device["tone"], "ok")
            self.assertIn(["end"], [[label] for label, _ in device["facts"]])
        ranks = [s["concern"] for s in self.page[situation]["series"]]
        self.assertEqual(ranks, [s["told"]["concern"] for s in json.loads(one["API view"])["series"]])

    @in_each_situation
    def test_python(self, one, situation, words, tone):
        if self.python is None:
            self.skipTest("the package is not built")
        told = self.python[situation]
        self.assertEqual((told["words"], told["tone"], told["forecast"]), (words, tone, FORECAST.get(situation, "")))

    @in_each_situation
    def test_how_an_alert_ended(self, one, situation, words, tone):
        if situation not in ALERT:
            self.assertNotIn("notification", one)
            return
        what, ended = ALERT[situation]
        shown = {name: plain(one[name]) for name in ("analyze text", "report text", "report markdown", "API alerts", "API view", "analyze json", "report json")}
        shown["report html"] = html.unescape(one["report html"])
        for screen in ("alerts", "detail"):
            shown[f"top {screen}"] = re.sub(r"\s+", " ", " ".join("".join(text for _, text in row) for row in one[f"top {screen}"]))
        if self.page is not None:
            shown["page"] = self.page[situation]["alerts"]
        for surface, text in shown.items():
            self.assertIn(what, text, surface)
            if surface == "top alerts":  # it has a column there
                self.assertIn("active" if ended == "still active" else "out of memory", text)
                self.assertNotIn("process ended", text)
            else:
                self.assertIn(ended, text.replace("\\", ""), surface)
        if ended != "still active":
            self.assertIn("ended: out of memory", one["fleet text"])
            self.assertIn('"state":"out of memory"', one["fleet json"])
            self.assertEqual([alert["end_kind"] for alert in json.loads(one["analyze json"].splitlines()[0])["alerts"]], ["out_of_memory"])
        if self.python is not None:
            self.assertIn([what, ended], self.python[situation]["alerts"])
        told = json.loads(one["notification json"])
        self.assertEqual((told["alert"]["told"]["what"], told["alert"]["told"]["ended"]), (what, ended))
        self.assertEqual((told["told"]["headline"], told["told"]["tone"]), EXPECTED[situation])
        self.assertIn(what if situation == "leaking" else ended, one["notification"])

    @in_each_situation
    def test_the_whole_machine(self, one, situation, words, tone):
        words, tone = MACHINE[situation]
        for view in ("API view", "API view, commands hidden"):
            said = json.loads(one[view])["headline"]
            self.assertEqual(said["tone"], tone, view)
            self.assertTrue((said["text"][0].lower() + said["text"][1:] if words[0].islower() else said["text"]).startswith(words), said["text"])
        self.assertIn([ROLE[tone], words], [[role, text.strip()] for role, text in one["top overview"][0]])
        forecast = f", {FORECAST[situation]}" if situation == "leaking" else ""
        self.assertEqual(one["report text"].splitlines()[0], f"GPU memory: {words}{forecast}")
        self.assertIn(f"# GPU memory: {words}{forecast}\n", one["report markdown"])
        self.assertIn(html.escape(f"GPU memory: {words}{forecast}", quote=False), one["report html"])

    def test_one_leak_is_one_alert(self):
        one = self.all["leaking"]
        self.assertEqual(plain(one["report text"]).count("still active"), 1)
        self.assertEqual(plain(one["analyze text"]).count("still active"), 1)
        self.assertEqual("\n".join("".join(text for _, text in row) for row in one["top alerts"]).count("CRITICAL  "), 1)
        self.assertRegex(one["metrics"], r"vramtrack_alerts_standing{[^}]*} 1\n")
        self.assertEqual([alert["told_with"] is None for alert in json.loads(one["API alerts"])["alerts"]], [True, False])
        self.assertIn("suspect  pid 4242 python train.py", one["notification"])
        if self.page is not None:
            self.assertEqual(self.page["leaking"]["alerts"].count("still active"), 1)

    def test_the_story_of_an_end(self):
        for situation in ("ended by out-of-memory, steady now", "ended and growing again"):
            with self.subTest(situation):
                one = self.all[situation]
                shown = {name: plain(one[name]) for name in ("analyze text", "report text", "report markdown", "report html", "API view", "analyze json", "report json")}
                shown["top detail"] = re.sub(r"\s+", " ", "".join(text for row in one["top detail"] for _, text in row))
                if self.page is not None:
                    shown["page"] = " ".join(text for label, texts in self.page[situation]["series"][0]["facts"] for text in texts if label == "end")
                    # The page has the reader's times.
                    shown["page"] = re.sub(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\b", r"\1T\2Z", shown["page"])
                if self.python is not None:
                    shown["Python"] = self.python[situation]["end"]
                for surface, text in shown.items():
                    self.assertIn(END, re.sub(r"</?time>|\\", "", text), surface)

    def test_every_surface_is_driven(self):
        shows = re.compile(r"(?<!ConclusionWords )(?<!AlertWords )\b(?:conclusion_words|alert_words)\([^)]|\bconclusion_words_json\(|\bseries_words\(|\bheadline\(view|\bmachine_of\(|\bconcern\(|\bConclusionWords\(|\.told\b")
        found = set()
        for folder, endings in (("src", (".cpp",)), ("page/src", (".ts",)), ("python/vramtrack", (".py",))):
            for path in sorted((ROOT / folder).rglob("*")):
                name = str(path.relative_to(ROOT))
                if path.suffix in endings and name != "src/report/conclusion_words.cpp" and shows.search(path.read_text(errors="replace")):
                    found.add(name)
        ours = {name for name in found if re.search(r"report/conclusion_words|report/headline|report/view_json|period/document|top/draw|top/rows", (ROOT / name).read_text()) or not name.startswith("src/")}
        self.assertEqual(sorted(ours - set(SHOWS)), [], "files that show conclusions and are not driven here")
        self.assertEqual(sorted(set(SHOWS) - ours), [], "files that show no conclusion")
        driven = set().union(*self.all.values()) | {"page", "Python"}
        self.assertEqual(sorted(set(SHOWS.values()) - driven), [], "surfaces that nothing drives")

    def test_nobody_else_concludes(self):
        for folder in ("report", "top", "period", "agent", "cli", "live", "act"):
            for path in sorted((ROOT / "src" / folder).rglob("*.?pp")):
                name = str(path.relative_to(ROOT))
                if name not in MAY:
                    self.assertIsNone(CONCLUDES.search(path.read_text()), f"{name} concludes in words; report/conclusion_words.cpp does")

    def test_table(self):
        """The table of all surfaces, read from each of them."""
        rows = []
        for situation, one in self.all.items():
            def told(line):
                return f'{line["headline"]} [{line["tone"]}]'
            colours = {code: name for name, code in (("green", ANSI["ok"]), ("yellow", ANSI["notice"]), ("red", ANSI["warning"]), ("faint", ANSI["faint"]))}
            cells = {}
            for surface, begins in (("analyze text", "GPU 0 NVIDIA A10: "), ("watch", "GPU 0 NVIDIA A10 "), ("report text", "GPU 0 NVIDIA A10: ")):
                words, colour = toned_line(one[surface], begins)
                cells[surface] = f"{words} [{colours.get(colour, '?')}]"
            cells["analyze JSON"] = told(json.loads(one["analyze json"].splitlines()[0])["told"])
            row = next(row for row in one["top predict"] if "GPU 0 NVIDIA" in "".join(text for _, text in row))
            cells["top"] = next((f"{text.strip()} [{role}]" for role, text in row if role in ROLE.values() and text.strip()), "?")
            cells["report markdown"] = re.search(r"## GPU 0 NVIDIA A10: (.*)", one["report markdown"]).group(1).replace("\\", "")
            cells["report html"] = "{1} [{0}]".format(*re.search(r'<span class="(\w+)">(.*?)</span></h2>', one["report html"]).groups())
            cells["metrics"] = "{0} [{1}]".format(*re.search(r'vramtrack_verdict_info{.*verdict="(.*)",tone="(.*)"', one["metrics"]).groups())
            cells["notification"] = told(json.loads(one["notification json"])["told"]) if "notification json" in one else "none"
            cells["API"] = told(json.loads(one["API view"])["series"][0]["told"])
            if self.page is not None:
                cells["page"] = "{words} [{tone}]".format(**self.page[situation]["series"][0])
            if self.python is not None:
                cells["Python"] = "{words} [{tone}]".format(**self.python[situation])
            rows.append((situation, cells))
        lines = ["| surface | " + " | ".join(situation for situation, _ in rows) + " |", "|---" * (len(rows) + 1) + "|"]
        lines += [f"| {surface} | " + " | ".join(cells[surface] for _, cells in rows) + " |" for surface in rows[0][1]]
        print("\n".join(lines))
        if ARGUMENTS.table:
            pathlib.Path(ARGUMENTS.table).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
