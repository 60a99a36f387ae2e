"""How figures and words stand together in logs of people's own programs, by the real binary."""
import base64
import datetime
import json
import re
import sys
import unittest

from log_case import GIB, MIB, Case, LogTests

BINARY = sys.argv.pop(1)
BEGIN = datetime.datetime(2026, 3, 1, 12, 0)


def at(seconds, form="%Y-%m-%d %H:%M:%S"):
    return (BEGIN + datetime.timedelta(seconds=seconds)).strftime(form)


class Words(LogTests):
    """Each log has 60 lines, 30 s apart, in which 50 MiB more are used each time: 100 MiB/min."""

    binary = BINARY

    def timed(self, form, form_of_time="%Y-%m-%d %H:%M:%S"):
        """Lines by `form`, which is given the used memory in MiB (m), in GiB (g) and the number of the line (i)."""
        return [at(30 * i, form_of_time) + " " + form(4000 + 50 * i, (4000 + 50 * i) / 1024, i) for i in range(60)]


class Forms(Words):
    """A log that continues in other words than it began with."""

    def test_what_follows_in_other_words_is_not_passed_over_in_silence(self):
        lines = self.timed(lambda m, g, i: f"gpu_mem=8000MiB loss 0.{i}" if i < 30 else f"memory used: {8000 + m} MiB / 24576 MiB")
        case = self.analyze(lines)
        self.assertRegex(case.text + case.error, "behind line 30, although 30 lines .* first line 31: '2026-03-01 12:15:00 ")
        self.assertNotIn("no reading is behind", self.analyze(lines[:30]).text)


class Pairs(Words):
    """The used memory and another figure, with words before, between and behind them."""

    def test_used_of_a_total(self):
        for form, total in (
                (lambda m, g, i: f"GPU 0 memory: {g:.3f}GiB used of 23.69GiB", 23.69 * GIB),
                (lambda m, g, i: f"{m} MiB used / 24576 MiB", 24 * GIB),
                (lambda m, g, i: f"VRAM: {m} MiB used (of 24576 MiB)", 24 * GIB),
                (lambda m, g, i: f"VRAM: {m} MiB in use of 24576 MiB", 24 * GIB),
                (lambda m, g, i: f"VRAM {m} MiB in use, out of 24576 MiB", 24 * GIB),
                (lambda m, g, i: f"GPU: {g:.3f} GB used out of 24.0 GB total", 24 * GIB),
                (lambda m, g, i: f"Grafikspeicher: {m} MB belegt von 24576 MB", 24 * GIB),
                (lambda m, g, i: f"显存 {m}MB 已用，共 24576MB", 24 * GIB),
                (lambda m, g, i: f"显存：已用 {m} MB，总共 24576 MB", 24 * GIB),
                (lambda m, g, i: f"GPU memory {m} MiB (24576 MiB total)", 24 * GIB),
                (lambda m, g, i: f"VRAM {m} of 24576 MiB used", 24 * GIB),
                (lambda m, g, i: f"VRAM {m} / 24576 MiB", 24 * GIB),
                (lambda m, g, i: f"{24576 - m} MiB free of 24576 MiB", 24 * GIB)):
            lines = self.timed(form)
            with self.subTest(lines[0]):
                case = self.analyze(lines)
                self.assert_leak(case)
                self.assertAlmostEqual(case.of()["capacity_bytes"] / total, 1, delta=1e-3)

    def test_allocated_of_a_total(self):
        lines = self.timed(lambda m, g, i: f"GPU: {g:.3f} GB allocated of 24.0 GB")
        self.assert_leak(self.analyze(lines), metric="allocator_allocated")

    def test_used_beside_a_peak(self):
        for form in (lambda m, g, i: f"VRAM {m} MiB used (peak 12000 MiB)",
                     lambda m, g, i: f"VRAM {m} MiB (peak: 12000 MiB)",
                     lambda m, g, i: f"GPU memory used {m} MiB, max 12000 MiB",
                     lambda m, g, i: f"VRAM {m} MiB (12000 MiB peak)"):
            lines = self.timed(form)
            with self.subTest(lines[0]):
                self.assert_leak(self.analyze(lines))

    def test_a_change(self):
        for form in (lambda m, g, i: f"GPU memory increased by 50 MB to {m} MB",
                     lambda m, g, i: f"VRAM grew by 50 MiB, now {m} MiB",
                     lambda m, g, i: f"GPU memory: {m - 50} MB -> {m} MB",
                     lambda m, g, i: f"GPU memory went from {m - 50} MB to {m} MB",
                     lambda m, g, i: f"VRAM {m} MB (+50 MB)",
                     lambda m, g, i: f"VRAM used {m} MB (delta 50 MB)"):
            lines = self.timed(form)
            with self.subTest(lines[0]):
                self.assert_leak(self.analyze(lines))

    def test_one_amount_in_two_units(self):
        lines = self.timed(lambda m, g, i: f"VRAM used: {m} MiB ({g:.2f} GiB)")
        self.assert_leak(self.analyze(lines))
        lines = self.timed(lambda m, g, i: f"VRAM使用率 {m / 245.76:.1f}%（{m}MB）")
        self.assert_leak(self.analyze(lines))

    def test_free_and_total_of_the_runtime(self):
        for form in (lambda m, g, i: f"mem_get_info() -> ({(24576 - m) * MIB}, {24576 * MIB})",
                     lambda m, g, i: f"torch.cuda.mem_get_info(): ({(24576 - m) * MIB}, {24576 * MIB})"):
            lines = self.timed(form)
            with self.subTest(lines[0]):
                case = self.analyze(lines)
                self.assert_leak(case)
                self.assertEqual(case.of()["capacity_bytes"], 24 * GIB)


class SeveralFigures(Words):
    """Several figures of used memory in one line: of several GPUs, or nothing says which is meant."""

    def test_refused(self):
        for form in (lambda m, g, i: f"used {m} MiB used 9000 MiB",
                     lambda m, g, i: f"VRAM 9000 MiB, VRAM {m} MiB"):
            lines = self.timed(form)
            with self.subTest(lines[0]):
                self.assert_refused(self.analyze(lines), "line 1", "--line-pattern")

    def test_lists(self):
        for form in (lambda m, g, i: f"vram: [9000, {m}] MB",
                     lambda m, g, i: f"GPU mem: 8.79 GB, {g:.3f} GB",
                     lambda m, g, i: f"gpu_mem_mb=9000,{m}",
                     lambda m, g, i: f"GPU memory used: 9000 MiB | {m} MiB"):
            lines = self.timed(form)
            with self.subTest(lines[0]):
                case = self.analyze(lines)
                self.assertEqual(case.code, 1, case.text + case.error)
                self.assert_leak(case, device="1")
                self.assertFalse(case.of(device="0")["verdict"]["leak"])
                self.assertIn("in this order", " ".join(case.text.split()))

    def test_thousands_are_no_list(self):
        self.assert_leak(self.analyze(self.timed(lambda m, g, i: f"vram used {m:,} MB")))


class Calls(Words):
    """What is asked is not the answer."""

    def test_arguments_and_divisors(self):
        for form in (lambda m, g, i: f"torch.cuda.memory_allocated(0) = {m * MIB}",
                     lambda m, g, i: f"memory_allocated(0)/1024**3 = {g:.3f}",
                     lambda m, g, i: f"torch.cuda.memory_allocated() / 1024**2 = {m}.5",
                     lambda m, g, i: f"memory_allocated()/1024/1024 = {m} MB"):
            lines = self.timed(form)
            with self.subTest(lines[0]):
                self.assert_leak(self.analyze(lines), metric="allocator_allocated")
        lines = self.timed(lambda m, g, i: f"mem_get_info(0): free {(24576 - m) * MIB} total {24576 * MIB}")
        self.assert_leak(self.analyze(lines))

    def test_elements(self):
        case = self.analyze(self.timed(lambda m, g, i: f"memory_used[0]=9000MiB memory_used[1]={m}MiB"))
        self.assert_leak(case, device="1")
        self.assertFalse(case.of(device="0")["verdict"]["leak"])

    def test_a_host_is_no_index(self):
        case = self.analyze([at(30 * i, "%b %d %H:%M:%S") + f" gpu01 inference[48213]: GPU memory in use: {4000 + 50 * i} MB"
                             for i in range(60)])
        self.assert_leak(case, device="0")


class Clocks(Words):
    """What is a time, and what only looks like one."""

    def test_durations(self):
        for form in (lambda m, g, i: f"eta: 0:{59 - i:02}:10  iter: {20 * i}  loss: 0.5  max_mem: {m}M",
                     lambda m, g, i: f"iter {20 * i} took 00:00:{15 + i * 7 % 5} GPU memory used {m} MiB"):
            lines = [form(4000 + 50 * i, 0, i) for i in range(60)]
            with self.subTest(lines[0]):
                case = self.analyze(lines)
                self.assertIn("iteration", case.text, case.text + case.error)
                self.assertAlmostEqual(
                    case.of()["verdict"]["growth_bytes_per_iteration"]["mid"] / MIB, 2.5, delta=0.2, msg=case.text)

    def test_elapsed_is_a_clock(self):
        lines = [f"elapsed: 0:{i // 2:02}:{i % 2 * 30:02} vram used {4000 + 50 * i} MiB" for i in range(60)]
        self.assert_leak(self.analyze(lines))

    def test_seconds_since_the_start(self):
        lines = [f"[{30 * i}.0s] allocated={(4000 + 50 * i) * MIB}" for i in range(60)]
        self.assert_leak(self.analyze(lines), metric="allocator_allocated")
        for form in (lambda s, m: f"t={s}s vram used {m} MiB",
                     lambda s, m: f"[ {s}.0 s] gpu mem {m} MiB",
                     lambda s, m: f"[{s:6}.123456] gpu memory used: {m} MiB",
                     lambda s, m: f"time: {s}.5 s, GPU memory: {m} MB"):
            lines = [form(30 * i, 4000 + 50 * i) for i in range(60)]
            with self.subTest(lines[0]):
                self.assert_leak(self.analyze(lines))

    def test_units_of_the_time_since_the_start(self):
        for form in (lambda s, m: f"elapsed: {s / 60:.1f} min, vram used {m} MiB",
                     lambda s, m: f"t={s / 3600:.5f}h vram used {m} MiB",
                     lambda s, m: f"+{1000 * s}ms vram used {m} MiB",
                     lambda s, m: f"[0d {s // 3600:02}h {s // 60 % 60:02}m {s % 60:02}s] vram used {m} MiB",
                     lambda s, m: f"[{s // 3600}h{s // 60 % 60:02}m{s % 60:02}s] vram used {m} MiB"):
            lines = [form(30 * i, 4000 + 50 * i) for i in range(60)]
            with self.subTest(lines[0]):
                self.assert_leak(self.analyze(lines))

    def test_seconds_since_1970(self):
        for form in (lambda s, m: f'{{"ts": {s + 0.12:.2f}, "level": "info", "msg": "step 5: gpu mem used {m} MiB"}}',
                     lambda s, m: f'{{"level":30,"time":{1000 * s},"pid":17,"msg":"gpu mem used {m} MiB"}}',
                     lambda s, m: f'ts={s} level=info msg="gpu memory" used_mib={m}',
                     lambda s, m: f"level=info ts={s}.123 gpu_mem={m}MiB"):
            lines = [form(1741120807 + 30 * i, 4000 + 50 * i) for i in range(60)]
            with self.subTest(lines[0]):
                self.assert_leak(self.analyze(lines))

    def test_times_of_file_names(self):
        for form in ("%Y-%m-%d_%H-%M-%S", "%Y%m%d-%H%M%S", "[%Y%m%d_%H%M%S]", "%Y%m%dT%H%M%SZ", "%Y.%m.%d-%H.%M.%S", "%Y-%m-%d %Hh%Mm%Ss"):
            lines = self.timed(lambda m, g, i: f"vram used {m} MiB", form)
            with self.subTest(lines[0]):
                self.assert_leak(self.analyze(lines))

    def test_hours_and_minutes_of_half_a_day(self):
        for form in ("9:{:02}AM", "9:{:02} am", "[9:{:02}pm]"):
            lines = [f"{form.format(i)} gpu mem {4000 + 100 * i} MB" for i in range(60)]
            with self.subTest(lines[0]):
                self.assert_leak(self.analyze(lines))

    def test_progress_bars_have_a_clock(self):
        for form in ("{p}%|###| {i}/200 [{m:02}:{s:02}<2:20:00, 30.00s/it, loss=3.4, mem={u}M]", "{p}%|###| {i}/200 [0:{m:02}:{s:02}<2:20:00, 30.00s/it] VRAM {u} MB"):
            lines = [form.format(p=i // 2, i=i, m=i * 30 // 60, s=i * 30 % 60, u=4000 + 50 * i) for i in range(110)]
            with self.subTest(form):
                self.assert_leak(self.analyze(lines))

    def test_a_number_behind_a_time_is_no_year(self):
        case = self.analyze([f"Dec 28 10:{i:02}:26 {20000 + 5 * i} MiB" for i in range(60)])
        self.assert_refused(case, "--line-pattern")

    def test_all_behind_a_time(self):
        self.assert_leak(self.analyze(self.timed(lambda m, g, i: f"{m} MiB", "%H:%M:%S")))

    def test_batches(self):
        case = self.analyze([f"batch {i} VRAM used {4000 + 50 * i} MiB" for i in range(60)])
        self.assertIn("59 batches", case.text)

    def test_access_log(self):
        lines = self.timed(lambda m, g, i: f'+0000] "GET /metrics" gpu_mem={m}MiB', "10.0.0.1 - - [%d/%b/%Y:%H:%M:%S")
        self.assert_leak(self.analyze(lines))

    def test_steps_that_begin_anew_with_each_epoch(self):
        lines = [f"Epoch {i // 70} step {i % 70} GPU memory {4000 + 5 * i} MiB" for i in range(210)]
        case = self.analyze(lines)
        self.assertEqual(case.code, 1, case.text + case.error)
        self.assertAlmostEqual(case.of()["verdict"]["growth_bytes_per_step"]["mid"] / MIB, 5, delta=0.3)

    def test_batches_of_an_epoch_in_brackets(self):
        lines = [f"Epoch: [{i // 50}][{10 * (i % 50):4}/500]\tTime  0.455 ( 0.455)\tLoss 2.8e+00\tMem {4000 + 50 * i}MB" for i in range(200)]
        case = self.analyze(lines)
        self.assertEqual(case.code, 1, case.text + case.error)
        self.assertEqual(case.of()["samples"], 200)

    def test_minutes_and_seconds(self):
        lines = [f"[{i // 6:02}:{i % 6 * 10:02}] GPU memory {4000 + 50 * i} MiB" for i in range(1, 61)]
        case = self.analyze(lines)
        self.assertEqual(case.code, 1, case.text + case.error)
        self.assertNotIn("/min", case.text.split("read as")[0])


class Numbers(Words):
    def test_numbers_of_scientific_notation(self):
        lines = self.timed(lambda m, g, i: f"loss 3.4e+00 lr 1.0e-04 gpu memory allocated: {m * 2**20:.6e} bytes")
        self.assert_leak(self.analyze(lines), metric="allocator_allocated")

    def test_an_index_before_a_name_with_a_unit(self):
        lines = [self.timed(lambda m, g, i, d=d: f"cuda:{d} bytes_in_use={(m if d else 4000) * 2**20} bytes_limit=85899345920")[i] for i in range(60) for d in (0, 1)]
        self.assert_leak(self.analyze(lines), device="1")

    def test_a_count_in_brackets_is_no_name(self):
        form = "[Rank {}] (after {} iterations) memory (MB) | allocated: {}.5 | max allocated: 20000.5"
        lines = [line for i in range(60) for line in
                 (f" [2024-06-05 08:{i // 2:02}:{i % 2 * 30:02}.507000] iteration {100 * i}/ 500000 | lm loss: 3.4E+00 |",
                  form.format(0, 100 * i, 4000 + 50 * i), form.format(1, 100 * i, 9000), form.format(2, 100 * i, 9500))]
        case = self.analyze(lines)
        self.assertEqual({r["series"]["device"] for r in case.rows}, {"0", "1", "2"})
        self.assert_leak(case, metric="allocator_allocated")

    def test_gpu_ram_beside_that_of_the_processor(self):
        self.assert_leak(self.analyze(self.timed(lambda m, g, i: f"CPU RAM: 20.00 GB; GPU RAM: {m / 1024:.3f} GB")))

    def test_an_amount_behind_its_share(self):
        self.assert_leak(self.analyze(self.timed(lambda m, g, i: f"gpu 24.50%, vram {m / 163.84:.2f}% {m:.2f}mb, gtt 0.49% 39.52mb")))

    def test_more_figures_than_gpus(self):
        self.assert_refused(self.analyze(self.timed(lambda m, g, i: f"gpu memory MiB: {[m + k for k in range(40)]}")), "a list of 40 figures")

    def test_torchvision(self):
        lines = [f"Epoch: [{i // 50}]  [{10 * (i % 50):4}/500]  eta: 0:08:20  lr: 0.01  loss: 3.4 (3.5)  time: 0.5  max mem: {4000 + 50 * i}" for i in range(200)]
        lines.append("Epoch: [3] Total time: 0:08:10 (1.0 s / it)")
        self.assertIn("MiB/batch", self.analyze(lines).text)

    def test_thousands(self):
        for form in (lambda m, g, i: f"VRAM used {m:,} MB".replace(",", " "),
                     lambda m, g, i: f"VRAM used {m:,} MB".replace(",", "\u202f"),
                     lambda m, g, i: f"VRAM used {m:,} MB".replace(",", "\u00a0"),
                     lambda m, g, i: f"VRAM used {m:,} MB".replace(",", "'"),
                     lambda m, g, i: f"gpu mem used: {m * 1024}K"):
            lines = self.timed(form)
            with self.subTest(lines[0]):
                self.assert_leak(self.analyze(lines))

    def test_an_index_is_no_group(self):
        lines = self.timed(lambda m, g, i: f"GPU 0 {100 + 10 * i} MiB")
        self.assert_leak(self.analyze(lines), 20)


class Places(Words):
    def test_processes(self):
        lines = []
        for i in range(60):
            lines.append(at(30 * i) + f" pid 101 python gpu mem: {4000 + 50 * i} MB")
            lines.append(at(30 * i) + " pid 102 python gpu mem: 3000 MB")
        case = self.analyze(lines)
        self.assertEqual(case.code, 1, case.text + case.error)
        self.assertIn("101", case.text.split("read as")[0])
        self.assert_leak(case, metric="process_used")

    def test_phases_are_refused(self):
        lines = []
        for i in range(60):
            lines.append(f"step {i} before inference: GPU memory {4000 + 50 * i} MB")
            lines.append(f"step {i} after inference: GPU memory {4500 + 50 * i} MB")
        self.assert_refused(self.analyze(lines), "such as 1 'step 0 before", "alternate",
                            "'before.*?memory[^0-9]*(?<used>[0-9.,]+ *MB)'")

    def test_hosts(self):
        lines = []
        for i in range(60):
            lines.append(f"node-a: {at(30 * i)} gpu mem used {4000 + 50 * i} MiB")
            lines.append(f"node-b: {at(30 * i)} gpu mem used 3000 MiB")
        case = self.analyze(lines)
        self.assertIn("GPU node-a: LEAK", case.text)
        self.assertIn("GPU node-b: steady", case.text)


class NoTables(Words):
    """Lines of text are not rows of a table without titles."""

    def test_labels_and_signs(self):
        for form in (lambda m, g, i: "VRAM delta: +50 MB", lambda m, g, i: f"{m} / 24576"):
            lines = self.timed(form)
            with self.subTest(lines[0]):
                self.assert_refused(self.analyze(lines))

    def test_bytes_without_titles(self):
        lines = [f"{at(30 * i)} {(4000 + 50 * i) * MIB}" for i in range(60)]
        case = self.analyze(lines)
        self.assert_leak(case)
        self.assertIn("used memory in bytes", " ".join(case.text.split()))


class Totals(Words):
    def test_a_total_that_grows_is_no_capacity(self):
        case = self.analyze(self.timed(lambda m, g, i: f"GPU pool used {m} MB, total {m + 100} MB"))
        self.assert_leak(case)
        self.assertIsNone(case.of()["capacity_bytes"])
        self.assertIn("changes from line to line", case.text)

    def test_a_percentage_of_a_total(self):
        case = self.analyze(self.timed(lambda m, g, i: f"GPU memory usage: {m / 245.76:.2f}% of 24576 MiB"))
        self.assert_leak(case)
        self.assertEqual(case.of()["capacity_bytes"], 24 * GIB)

    def test_free_memory_alone(self):
        lines = [at(30 * i) + f" GPU memory free: {20576 - 50 * i} MiB" for i in range(240)]
        case = self.analyze(lines)
        self.assert_leak(case)
        self.assertIn("free memory", " ".join(case.text.split()))
        self.assert_leak(self.analyze(lines, "--capacity", "24GiB"))


class Percentages(Words):
    """A recording that holds nothing but percentages of memory: 100 % is the capacity, and no surface speaks of bytes."""

    def setUp(self):
        events = [{"_timestamp": BEGIN.timestamp() + 30 * i, "system.gpu.0.memoryAllocated": 30 + 0.9 * i} for i in range(60)]
        self.sandbox.write("percent.jsonl", "".join(json.dumps(event) + "\n" for event in events))

    def run_on(self, *args):
        return self.sandbox.run(*args, "percent.jsonl")

    def assert_in_percent(self, text):
        self.assertRegex(text, r"\+1\.8 %/min")
        self.assertNotRegex(text, r"\d [KMG]iB|MiB/min")

    def test_analyze(self):
        case = Case(self.sandbox, "percent.jsonl")
        self.assertEqual(case.code, 1, case.text + case.error)
        self.assert_in_percent(case.text)
        self.assertIn("83.1 % now", case.text)
        self.assertRegex(case.text, r"out of memory in 0h (09|10)m")

    def assert_names(self, value):
        """No figure has a name in bytes."""
        for name, its in value.items() if isinstance(value, dict) else enumerate(value):
            if "bytes" in str(name):
                self.assertIsNone(its, name)
            if isinstance(its, (dict, list)):
                self.assert_names(its)

    def test_json(self):
        row = Case(self.sandbox, "percent.jsonl").of()
        self.assertEqual((row["series"]["metric"], row["capacity_bytes"], row["capacity_percent"]), ("device_used", None, 100))
        self.assertAlmostEqual(row["verdict"]["growth_percent_per_s"]["mid"] * 60, 1.8, delta=0.05)
        self.assert_names(row)
        report = json.loads(self.run_on("report", "--json").stdout)
        self.assert_names(report)
        self.assertAlmostEqual(report["series"][0]["history"][-1][3], 83.1, delta=0.01)

    def test_report(self):
        self.assert_in_percent(self.run_on("report").stdout.decode())
        page = self.run_on("report", "--format", "html").stdout.decode()
        self.assert_in_percent(re.sub(r"base64,[^\"]*", "", page))
        self.assertIn(">80 %<", page)  # the axis
        table = base64.b64decode(re.search(r"data:text/csv;base64,([^\"]*)", page)[1]).decode()
        self.assertEqual(table.splitlines()[0].split(",")[4:], ["min_percent", "mean_percent", "max_percent", "samples"])

    def test_replay(self):
        self.assert_in_percent(self.run_on("replay").stdout.decode())

    def test_top(self):
        self.assert_in_percent(self.run_on("top", "--once", "--replay").stdout.decode())

    def test_with_a_capacity_it_is_in_bytes(self):
        case = Case(self.sandbox, "--capacity", "40GiB", "percent.jsonl")
        self.assertEqual(case.of()["capacity_bytes"], 40 * GIB)
        self.assertNotIn("capacity_percent", case.of())

    def test_policies_are_about_bytes(self):
        self.sandbox.write("policy.toml", '[[policy]]\nname = "any"\nsteps = [{ do = "notify", text = "look" }]\n')
        refused = self.run_on("policy", "test", "--config", "policy.toml")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--capacity", refused.stderr.decode())

    def test_bytes_of_processes_do_not_join_percentages(self):
        self.sandbox.write("gpu.csv", "timestamp,index,mem_used_pct\n" + "".join(f"{at(30 * i)},0,{30 + i}\n" for i in range(20)))
        self.sandbox.write("apps.csv", "timestamp,gpu_index,pid,process_name,used_gpu_memory [MiB]\n"
                           + "".join(f"{at(30 * i)},0,4242,python,{3000 + i}\n" for i in range(20)))
        case = Case(self.sandbox, "gpu.csv", "apps.csv")
        self.assertEqual(case.code, 2, case.text)
        self.assertIn("gpu.csv gives memory in percent", case.error)


class OfPrograms(Words):
    def test_megatron(self):
        lines = [f"[Rank 0] (after {10 * i} iterations) memory (MB) | allocated: {4000 + 50 * i}.51 | "
                 f"max allocated: {4100 + 50 * i}.5 | reserved: 9000.0 | max reserved: 9000.0" for i in range(60)]
        case = self.analyze(lines)
        self.assertTrue(case.of("allocator_allocated")["verdict"]["leak"], case.text)
        self.assertFalse(case.of("allocator_reserved")["verdict"]["leak"], case.text)

    def test_nvml_prints_a_tuple(self):
        self.assert_leak(self.analyze(self.timed(
            lambda m, g, i: f"Memory(free={(24576 - m) * MIB}, total={24576 * MIB}, used={m * MIB})")))

    def test_what_a_phase_took_is_a_change(self):
        lines = []
        for i in range(60):
            lines.append(f"{at(30 * i)} GPU Memory before entering the train : {4000 + 50 * i}")
            lines.append(f"{at(30 * i + 20)} GPU Memory consumed at the end of the train (end-begin): 50")
        case = self.analyze(lines)
        self.assert_leak(case)
        self.assertEqual(case.rows[0]["samples"], 60)

    def test_rates_per_gpu_are_no_index(self):
        lines = [f"Step {i} | tokens_per_second_per_gpu:{1000 + i} gpu_mem:{4000 + 50 * i}MiB" for i in range(60)]
        case = self.analyze(lines)
        self.assertEqual([row["series"]["device"] for row in case.rows], ["0"])
        self.assertEqual(case.rows[0]["samples"], 60)

    def test_the_cache_of_a_server_is_refused(self):
        lines = [f"INFO 03-01 12:{i:02}:00 metrics.py:455] Avg prompt throughput: 0.0 tokens/s, Running: 1 reqs, "
                 f"GPU KV cache usage: {1 + i / 10:.1f}%, CPU KV cache usage: 0.0%." for i in range(60)]
        self.assert_refused(self.analyze(lines), "line 1 gives how full ", "vramtrack watch")


class Patterns(Words):
    """The pattern that is printed reads the same."""

    def assert_same(self, lines):
        case = self.analyze(lines)
        words = " ".join(case.text.split())
        self.assertIn("to correct it: --line-pattern '", words)
        pattern = words.split("to correct it: --line-pattern '")[1].split("'")[0]
        again = self.analyze(lines, "--line-pattern", pattern)
        self.assertEqual([row["verdict"] for row in again.rows], [row["verdict"] for row in case.rows])

    def test_without_a_clock(self):
        self.assert_same([f"VRAM used {4000 + 50 * i} MiB" for i in range(60)])

    def test_hours_and_minutes(self):
        self.assert_same([f"{at(60 * i, '%H:%M')} VRAM {4000 + 50 * i} MiB" for i in range(60)])

    def test_seconds_since_the_start(self):
        self.assert_same([f"[{30 * i}.0s] VRAM used {4000 + 50 * i} MiB" for i in range(60)])

    def test_processes(self):
        self.assert_same([f"{at(30 * (i // 2))} pid {101 + i % 2} gpu mem: {4000 + 50 * i * (i % 2)} MB"
                          for i in range(120)])

    def test_examples_of_refusals(self):
        for form in (lambda m, g, i: f"foo: {m}/24576 MiB in bar", lambda m, g, i: f"foo {m} MiB bar 9000 MiB"):
            lines = self.timed(form)
            case = self.analyze(lines)
            self.assertEqual(case.code, 2, case.text)
            if ", for example '" in case.error:
                pattern = case.error.split(", for example '")[1].split("'")[0]
                self.assertNotEqual(self.analyze(lines, "--line-pattern", pattern).code, 2)


if __name__ == "__main__":
    unittest.main()
