"""Logs of people's own programs, by the real binary: the answer to each of tests/fixtures/text_logs, and two GPUs' logs
merged in every way."""
import base64
import json
import random
import re
import sys
import unittest

from log_case import Case, LogTests
from one_process import OneProcess
from sandbox import FIXTURES

BINARY = sys.argv.pop(1)
CASES = FIXTURES / "text_logs"


class Cases(LogTests):
    binary = BINARY

    def case(self, name, *args):
        return Case(self.sandbox, *args, str(next(CASES.glob(name + "-*"))))

    def test_01_a_time_of_day_on_a_line_of_its_own(self):
        c = self.case("01")
        self.assertEqual(c.code, 1)
        growth = c.of()["verdict"]["growth_bytes_per_s"]["mid"] * 60 / 2**20
        self.assertAlmostEqual(growth, 12, delta=1)
        self.assertNotIn("after the start", c.text)
        self.assertRegex(c.text, r"since +13:\d\d:\d\d")

    def test_02_a_figure_with_its_unit_in_a_line_of_logging(self):
        c = self.case("02")
        self.assertEqual(c.code, 0)
        self.assertEqual(c.of()["samples"], 340)
        self.assertFalse(c.of()["verdict"]["leak"])
        self.assertIn("2.9 GiB now", c.text)
        self.assertIn("used memory by 'VRAM'", " ".join(c.text.split()))

    def test_03_allocated_and_reserved(self):
        c = self.case("03")
        self.assertEqual(c.code, 1)
        allocated = c.of("allocator_allocated")
        self.assertTrue(allocated["verdict"]["leak"])
        self.assertAlmostEqual(allocated["verdict"]["growth_bytes_per_s"]["mid"] * 60 / 2**20, 5.5, delta=0.3)
        self.assertEqual(c.of("allocator_reserved")["samples"], allocated["samples"])
        self.assertIn("allocated to tensors", c.text)
        self.assertIn("held by the framework's allocator", c.text)

    def test_04_blocks_of_labelled_lines(self):
        c = self.case("04")
        self.assertEqual(c.code, 0)
        self.assertEqual(c.of()["samples"], 120)
        self.assertEqual(c.of()["capacity_bytes"], 11019 * 2**20)
        self.assertFalse(c.of()["verdict"]["leak"])

    def test_05_no_unit_that_no_card_has(self):
        c = self.case("05")
        self.assertEqual(c.code, 0)
        self.assertIn("MiB are assumed", " ".join(c.text.split()))
        self.assertNotIn("GiB now", c.text)

    def test_06_a_card_that_does_not_report_its_memory(self):
        c = self.case("06")
        self.assertEqual(c.code, 2)
        for words in ("a log of the right kind", "NVIDIA GB10", "--query-compute-apps", "the host's memory"):
            self.assertIn(words, c.error)
        self.assertNotIn("check that this is the right file", c.error)

    def test_07_an_index_that_is_always_0(self):
        c = self.case("07")
        self.assertEqual(c.code, 1)
        self.assertEqual(len(c.rows), 4)
        leaks = [r["series"]["device"] for r in c.rows if r["verdict"]["leak"]]
        self.assertEqual(leaks, ["2"])
        self.assertAlmostEqual(c.of(device="2")["verdict"]["growth_bytes_per_s"]["mid"] * 60 / 2**20, 120, delta=5)

    def test_10_the_message_of_an_out_of_memory(self):
        c = self.case("10")
        self.assertIn("LEAKED until memory ran out", c.text)
        self.assertIn("reported that memory had run out", c.text)
        self.assertIn("22.41 GiB of the device's 23.99 GiB ", c.text)
        self.assertNotIn("FRAGMENTATION", c.text)

    def test_11_status_lines_among_rows(self):
        c = self.case("11")
        self.assertEqual(c.code, 0)
        rows = sum(1 for line in next(CASES.glob("11-*")).read_text().splitlines() if line.startswith("2026"))
        self.assertEqual(c.of()["samples"], rows)
        self.assertGreater(c.of()["skipped_lines"], 0)

    def test_12_a_quoted_line_break(self):
        c = self.case("12")
        self.assertEqual(c.of()["samples"], 300)
        self.assertEqual(c.of()["skipped_lines"], 0)

    def test_13_steps_in_place_of_a_clock(self):
        c = self.case("13")
        self.assertEqual(c.code, 1)
        self.assertRegex(c.text, r"\+0\.12 MiB/step")
        self.assertNotIn("/min", c.text)
        self.assertEqual(c.of()["counts"], "step")
        self.assertAlmostEqual(c.of()["verdict"]["growth_bytes_per_step"]["mid"] / 2**20, 0.12, delta=0.005)
        self.assertNotIn("growth_bytes_per_s", c.of()["verdict"])
        with_capacity = self.case("13", "--capacity", "24GiB")
        self.assertRegex(with_capacity.text, r"out of memory in [\d,]+ .*steps")
        timed = self.case("13", "--interval", "0.5s")
        self.assertIn("MiB/min", timed.text)

    def test_14_requests_in_place_of_a_clock(self):
        c = self.case("14")
        self.assertEqual(c.code, 1)
        self.assertEqual(c.of()["counts"], "request")
        self.assertAlmostEqual(c.of()["verdict"]["growth_bytes_per_request"]["mid"] / 2**20, 12.29, delta=0.2)
        self.assertNotIn("cycling", c.text)
        self.assertNotIn("/min", c.text)

    def test_15_a_markdown_table(self):
        c = self.case("15")
        self.assertNotEqual(c.code, 2, c.error)
        self.assertEqual(c.of()["samples"], 4)
        self.assertEqual(c.of()["capacity_bytes"], 11178 * 2**20)
        self.assertEqual(c.of()["counts"], "epoch")
        self.assertIn("too short to tell", c.text)
        self.assertRegex(" ".join(c.text.split()), r"if it (continues|goes on) as (it did )?in the last")


OUT_OF_MEMORY = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.12 GiB. GPU 0 has a total capacity of 14.64 GiB of which "
                 "512.00 MiB is free.\n")


class AllocatorAlone(LogTests):
    """A training script tells what its allocator holds, and nothing tells what the GPU uses: every command concludes from that."""

    @classmethod
    def setUpClass(cls):
        cls.sandbox = OneProcess(BINARY).__enter__()
        lines = [f"2026-03-04 {10 + i // 120}:{i // 2 % 60:02}:{i % 2 * 30:02} step {i * 10} allocated {3.1 + i * 0.04:.2f} GiB reserved {4 + i * 0.04:.2f} GiB\n"
                 for i in range(240)]
        cls.sandbox.write("alone.log", "".join(lines))
        cls.sandbox.write("ran_out.log", "".join(lines) + OUT_OF_MEMORY)

    @classmethod
    def tearDownClass(cls):
        cls.sandbox.__exit__()

    def words(self, *args):
        return " ".join(self.sandbox.run(*args).stdout.decode().split())

    def test_report_concludes_as_analyze_does(self):
        self.assertIn("[allocated to tensors]: LEAK ", self.words("analyze", "alone.log"))
        report = self.words("report", "alone.log")
        self.assertIn("GPU memory: GPU 0 leaks", report)
        self.assertRegex(report, r"allocated to tensors\] +12\.7 GiB +12\.7 GiB +LEAK")
        self.assertNotIn("not known", report.split("Idle memory")[0])

    def test_alerts_say_whose_memory_they_are_about(self):
        for command in ("report", "replay"):
            said = self.words(command, "alone.log")
            self.assertIn("GPU 0 [allocated to tensors]", said)
            self.assertNotIn("the framework's allocator", said, "one leak is one alert")

    def test_the_program_may_be_named(self):
        self.sandbox.write("named.log", "".join(f"2026-03-01 {10 + i // 60}:{i % 60:02}:00 pid=4242 alloc={3000 + 40 * i}M\n" for i in range(120)))
        pattern = ("--line-pattern", r"pid=(?<pid>\d+) alloc=(?<allocated>\d+M)")
        self.assertIn("[allocated to tensors], pid 4242: LEAK", self.words("analyze", "named.log", *pattern))
        self.assertIn("GPU 0 [allocated to tensors]: LEAK", self.words("report", "named.log", *pattern))

    def test_a_message_at_its_end_says_that_memory_ran_out(self):
        said = self.words("analyze", "ran_out.log")
        self.assertEqual(said.count("LEAKED until memory ran out"), 2)
        self.assertNotIn("still active", said)
        self.assertNotIn("capacity unknown, so", said)
        self.assertIn("12.7/14.6 GiB", said)
        report = self.words("report", "ran_out.log")
        self.assertIn("leaked and ran out of memory", report)
        self.assertIn("Lost in crashes", report)


# Information that only a clock can give: a rate over time, a duration, a time of day.
OF_A_CLOCK = re.compile(r"/(min|h|s)\b|\b\d+ ?(s|m|min|h|d)\b|\b(minutes?|hours|seconds)\b|\d\d:\d\d|after the start")


class LogsThatCount(LogTests):
    """No command gives a figure that only a clock can tell, of a log whose only clock is a count."""

    STEP = {"step": 10, "epoch": 1, "request": 100}  # between two readings

    @classmethod
    def setUpClass(cls):
        cls.sandbox = OneProcess(BINARY).__enter__()
        for word, step in cls.STEP.items():
            # Its memory runs out within the recording, so that alerts, an escalation and the end are in the output.
            lines = [f"{i * step},{min(24000, 4000 + i * 37 + i % 3 * 5)}" for i in range(500)]
            cls.sandbox.write(f"{word}.csv", f"{word},memory.used [MiB]\n" + "\n".join(lines) + "\n")

    @classmethod
    def tearDownClass(cls):
        cls.sandbox.__exit__()

    def output(self, word, *args):
        result = self.sandbox.run(*args, "--capacity", "24GiB", f"{word}.csv")
        self.assertIn(result.returncode, (0, 1), result.stderr.decode())
        return result.stdout.decode()

    def check_words(self, word, text):
        for line in text.splitlines():
            self.assertNotRegex(line, OF_A_CLOCK)
        self.assertIn(f" MiB/{word}", text)

    def check_names(self, word, row):
        """Every name at any depth; sentences are checked as words."""
        if isinstance(row, list):
            for part in row:
                self.check_names(word, part)
        if isinstance(row, str):
            self.assertNotRegex(row, OF_A_CLOCK)
        if isinstance(row, dict):
            for name, part in row.items():
                self.assertFalse(name.endswith("_s"), name)
                if "hours" in name:
                    self.assertIsNone(part, name)
                self.check_names(word, part)

    def test_analyze_and_replay(self):
        for word in self.STEP:
            with self.subTest(word=word):
                self.check_analyze_and_replay(word)

    def test_report(self):
        for word in self.STEP:
            with self.subTest(word=word):
                self.check_report(word)

    def test_policies_need_a_clock(self):
        self.sandbox.write("policies.toml", '[[policy]]\nname = "a"\nwhen.severity = "watch"\nsteps = [{ do = "notify", text = "look" }]\n')
        for word in self.STEP:
            with self.subTest(word=word):
                refused = self.sandbox.run("policy", "test", "--config", "policies.toml", f"{word}.csv")
                self.assertEqual(refused.returncode, 2)
                self.assertIn(f"it counts {word}s and has no clock", " ".join(refused.stderr.decode().split()))
                timed = self.sandbox.run("policy", "test", "--config", "policies.toml", "--interval", "2s", f"{word}.csv")
                self.assertEqual(timed.returncode, 0, timed.stderr.decode())

    def check_analyze_and_replay(self, word):
        self.check_words(word, self.output(word, "analyze"))
        replayed = self.output(word, "replay")
        self.check_words(word, replayed)
        self.assertRegex(replayed, rf"(?m)^{word} [\d,]+  (WARNING|CRITICAL)  GPU 0: gradual leak")
        self.assertRegex(replayed, rf"replayed [\d,]+ {word}s of ")
        for command in (("analyze", "--format", "json"), ("replay", "--json")):
            rows = [json.loads(line) for line in self.output(word, *command).splitlines()]
            for row in rows:
                if row["schema"] == "vramtrack.event.v1":
                    continue
                self.assertEqual(row["counts"], word)
                self.check_names(word, row)
            self.assertIn(f"growth_bytes_per_{word}", rows[-1]["verdict"])
        alert = next(row for row in rows if row["schema"] == "vramtrack.alert.v1")
        self.assertAlmostEqual(alert["alert"][f"growth_bytes_per_{word}"]["mid"] / 2**20 * self.STEP[word], 37, delta=2)

    def check_report(self, word):
        for form in ("text", "md"):
            self.check_words(word, self.output(word, "report", "--format", form))
        page = self.output(word, "report", "--format", "html")
        data = {name: base64.b64decode(text).decode() for name, text in re.findall(r'download="vramtrack-report\.(\w+)" href="data:[^,]*,([^"]*)"', page)}
        body = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.S)
        self.check_words(word, body)
        self.assertIn(f"The axis counts {word}s", body)
        self.assertRegex(page, rf'class="tick[^>]*>[\d,]+ {word}s<')
        self.assertTrue(data["csv"].startswith(f"offset_{word}s,metric,"), data["csv"][:60])
        report = json.loads(self.output(word, "report", "--format", "json", "--checkpoint-every", "30min"))
        self.assertEqual(report["counts"], word)
        self.check_names(word, report)
        self.assertEqual(report["money"]["idle"], [])
        last = 499 * self.STEP[word]
        self.assertAlmostEqual(report[f"duration_{word}s"], last)
        self.assertAlmostEqual(report["series"][0]["history"][-1][0], last, delta=last / 100)
        self.assertAlmostEqual(float(data["csv"].splitlines()[-1].split(",")[0]), last, delta=last / 100)


class Form:
    """How a log writes one reading, and the options it needs."""

    def __init__(self, name, write, header=None, args=()):
        self.name, self.write, self.header, self.args = name, write, header, args


FORMS = [
    Form("csv", lambda time, used: f"{time},{used},24564", "timestamp,memory_used_mb,memory_total_mb"),
    Form("csv, one index", lambda time, used: f"{time},0,{used},24564", "timestamp,index,memory_used_mb,memory_total_mb"),
    Form("csv, no header", lambda time, used: f"{time},{used},24564"),
    Form("text", lambda time, used: f"{time} worker: memory used {used} MiB"),
    Form("text, one index", lambda time, used: f"{time} GPU 0: memory used {used} MiB"),
    Form("text, time on a line of its own", lambda time, used: f"{time}\nmemory used: {used} MiB"),
    Form("pattern", lambda time, used: f"{time} mem={used}M", args=("--line-pattern", r"mem=(?<used>\d+M)")),
    Form("pattern with a time", lambda time, used: f"{time} mem={used}M", args=("--line-pattern", r"(?<time>^[-0-9]+ [:0-9]+) mem=(?<used>\d+M)")),
]


def rows(used_mib, start_s, period_s, missing=lambda i: False):
    """(seconds, time, used MiB) of a log of one GPU."""
    out = []
    for i in range(240):
        t = start_s + i * period_s
        if not missing(i):
            out.append((t, f"2026-03-01 {10 + t // 3600:02}:{t // 60 % 60:02}:{t % 60:02}", used_mib(i)))
    return out


class Merged(LogTests):
    """A leak beside a steady GPU, merged in every way: both verdicts, or an error. Never one quiet series."""

    binary = BINARY

    def check(self, form, merged, name):
        lines = ([form.header] if form.header else []) + [form.write(time, used) for _, time, used in merged]
        self.sandbox.write("merged.log", "".join(line + "\n" for line in lines))
        c = Case(self.sandbox, *form.args, "merged.log")
        if c.code == 2:
            self.assertIn("merged.log", c.error, name)
            return
        leaks = [r["verdict"]["leak"] for r in c.rows if r["series"]["metric"] == "device_used"]
        self.assertEqual(sorted(leaks), [False, True], f"{name}: {c.text}")

    def test_any_merge_gives_both_verdicts_or_an_error(self):
        for form in FORMS:
            with self.subTest(form=form.name):
                random.seed(7)
                for other_period, offset in ((10, 0), (10, 3), (10, 5), (7, 0), (13, 4)):
                    for order in ("by time", "one after the other", "shuffled"):
                        leaking = rows(lambda i: 3000 + 20 * i + random.randrange(5), 0, 10)
                        steady = rows(lambda i: 20000 + random.randrange(9), offset, other_period)
                        merged = leaking + steady
                        if order == "by time":
                            merged.sort(key=lambda row: row[0])
                        elif order == "shuffled":
                            random.shuffle(merged)
                        self.check(form, merged, f"{form.name} {other_period} {offset} {order}")

    def test_a_reading_that_is_missing_now_and_then(self):
        for form in FORMS:
            with self.subTest(form=form.name):
                random.seed(7)
                merged = rows(lambda i: 4000 + 50 * i, 0, 30) + rows(lambda i: 9000, 0, 30, lambda i: i % 7 == 3)
                self.check(form, sorted(merged, key=lambda row: row[0]), form.name)

    def test_two_periods(self):
        for form in FORMS:
            with self.subTest(form=form.name):
                random.seed(7)
                merged = rows(lambda i: 4000 + 50 * i, 0, 30) + rows(lambda i: 9000, 7, 45)
                self.check(form, sorted(merged, key=lambda row: row[0]), form.name)

    def test_one_log_after_the_other(self):
        for form in FORMS:
            with self.subTest(form=form.name):
                random.seed(7)
                for start_s in (0, 1800, 3600):
                    merged = rows(lambda i: 4000 + 50 * i, 1800, 30) + rows(lambda i: 9000, start_s, 30)
                    self.check(form, merged, f"{form.name} {start_s}")

    def test_counts_in_place_of_time(self):
        both = [(i, used) for i in range(240) for used in (4000 + 50 * i, 9000) if used != 9000 or i % 7 != 3]
        self.sandbox.write("steps.log", "".join(f"step {i} memory used {used} MiB\n" for i, used in both))
        c = Case(self.sandbox, "steps.log")
        self.assertEqual(len(c.rows), 2, c.error)
        self.assertEqual(c.rows[0]["skipped_lines"], 34)
        # An epoch has several readings per GPU.
        for lines in (lambda i: 7, lambda i: random.randrange(3, 9)):
            random.seed(7)
            epochs = [(i, 4000 + k * 100 + random.randrange(40)) for i in range(60) for k in range(lines(i))]
            self.sandbox.write("epochs.log", "".join(f"epoch {i} memory used {used} MiB\n" for i, used in epochs))
            c = Case(self.sandbox, "epochs.log")
            self.assertEqual(c.code, 0, c.error)
            self.assertEqual(len(c.rows), 1)

    def test_one_gpu_is_not_refused(self):
        random.seed(7)
        t = 36000
        lines = []
        for _ in range(300):
            t += random.choice([0, 0, 1, 1, 2, 5, 9])
            lines.append(f"2026-03-01 {t // 3600}:{t // 60 % 60:02}:{t % 60:02} request done, memory used {6000 + random.randrange(800)} MiB\n")
        self.sandbox.write("bursts.log", "".join(lines))
        c = Case(self.sandbox, "bursts.log")
        self.assertEqual((c.code, len(c.rows)), (0, 1), c.error)

    def test_an_order_that_changes(self):
        for form in FORMS:
            with self.subTest(form=form.name):
                random.seed(7)
                merged = []
                for pair in zip(rows(lambda i: 4000 + 50 * i, 0, 30), rows(lambda i: 30000, 0, 30)):
                    merged += random.sample(pair, 2)
                self.check(form, merged, form.name)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
