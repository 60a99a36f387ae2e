"""Logs of people's own programs in other languages and shapes, by the real binary."""
import datetime
import re
import sys
import unittest

from log_case import Case, LogTests
from sandbox import FIXTURES, Sandbox

BINARY = sys.argv.pop(1)
BEGIN = datetime.datetime(2024, 5, 1, 23, 50)


def at(seconds, form="%Y-%m-%d %H:%M:%S"):
    return (BEGIN + datetime.timedelta(seconds=seconds)).strftime(form)


class Habits(LogTests):
    binary = BINARY


class Thousands(Habits):
    """"4.000 MB" is 4 or 4000: what else is in the log decides, or it is said that nothing does."""

    @staticmethod
    def dotted(number):
        return f"{number:,}".replace(",", ".")

    def lines(self, form, begin=4000):
        return [at(30 * i, "%d.%m.%Y %H:%M:%S") + " " + form.format(self.dotted(begin + 50 * i)) for i in range(60)]

    def test_german_words(self):
        self.assert_leak(self.analyze(self.lines("belegt {} MB")))
        self.assert_leak(self.analyze(self.lines("Grafikspeicher: {} MB, loss 0.25")))
        self.assert_leak(self.analyze(self.lines("Grafikspeicher belegt: {}")))

    def test_a_german_pattern(self):
        for amount in ("(?<used>[0-9.]+ MB)", "(?<used>[0-9.]+)"):
            self.assert_leak(self.analyze(self.lines("belegt {} MB"), "--line-pattern", "belegt " + amount))

    def test_the_total(self):
        c = self.analyze(self.lines("used {} MB / 24.576 MB"))
        self.assert_leak(c)
        self.assertEqual(c.of()["capacity_bytes"], 24576 * 2**20)

    def test_other_figures(self):
        self.assert_leak(self.analyze(self.lines("used {} MB, loss 0,25")))
        self.assert_leak(self.analyze(self.lines("used {} MB, free 1.234.567 KB")))
        self.assert_leak(self.analyze(self.lines("used {} MB", begin=800)), 100)

    def test_steps_are_grouped_too(self):
        german = [f"Schritt {self.dotted(900 + 10 * i)} belegt {self.dotted(4000 + 50 * i)} MB" for i in range(60)]
        english = [f"step {900 + 10 * i:,} used {4000 + 50 * i:,} MB" for i in range(60)]
        for lines in (german, english):
            c = self.analyze(lines)
            self.assertAlmostEqual(c.of()["verdict"]["growth_bytes_per_step"]["mid"] / 2**20, 5, delta=0.3)

    def test_nothing_decides(self):
        c = self.analyze(self.lines("used {} MB"))
        self.assertIn("whether '4.000' separates thousands", c.text.replace("\n", " "))
        self.assertEqual(c.code, 1)
        self.assertNotIn("MiB", c.text.split("used memory is unknown")[0].split("read as")[0])
        for args in (("--line-pattern", "used (?<used>[0-9.]+ MB)"), ()):
            self.assertIn("nothing shows whether", " ".join(self.analyze(self.lines("used {} MB"), *args).text.split()))
            thousands = self.analyze(self.lines("used {} MB"), "--unit", "GB", *args)
            self.assert_leak(thousands, 102.4)
            fractions = self.analyze(self.lines("used {} MB"), "--unit", "MB", *args)
            self.assertEqual(fractions.code, 0)
            self.assertIn("7 MiB now", fractions.text)
            self.assertNotIn("is unknown", fractions.text)

    def test_english_fractions(self):
        gigabytes = [f"{at(30 * i)} used {4.123 + i * 0.05:.3f} GB" for i in range(60)]
        self.assert_leak(self.analyze(gigabytes), 102.4)
        megabytes = [f"{at(30 * i)} allocated {16.123 + i % 7 * 0.05:.3f} MB, loss {3 / (i + 1):.4f}" for i in range(60)]
        c = self.analyze(megabytes)
        self.assertEqual(c.code, 0, c.text)
        self.assertIn("16 MiB", c.text)
        large = [f"{at(30 * i)} used {812.123 + i * 50:.3f} MB" for i in range(60)]
        self.assert_leak(self.analyze(large))

    def test_commas(self):
        self.assert_leak(self.analyze([f"{at(30 * i)} used {4000 + 50 * i:,} MB" for i in range(60)]))
        decimal = [f"{at(30 * i)} allocated {f'{16.123 + i % 7 * 0.05:.3f}'.replace('.', ',')} MB, loss 0,25" for i in range(60)]
        c = self.analyze(decimal)
        self.assertEqual(c.code, 0, c.text)
        self.assertIn("16 MiB", c.text)


class DatesWithWords(Habits):
    """年月日 時分秒, in Chinese, Japanese and Korean."""

    def check(self, stamp, text, since="2024-05-01T23:5"):
        c = self.analyze([f"{at(30 * i, stamp)} {text.format(n=i, used=4000 + 50 * i)}" for i in range(120)])
        self.assert_leak(c)
        self.assertIsNone(c.rows[0].get("counts"))
        self.assertIn(since, c.text)

    def test_dates(self):
        chinese = "第{n}轮 已用显存 {used} MB"
        self.check("%Y年%m月%d日 %H时%M分%S秒", chinese)
        self.check("%Y年%m月%d日 %H:%M:%S", chinese)
        self.check("%Y年%m月%d日%H时%M分%S秒", chinese)
        self.check("[%Y年%m月%d日 %H时%M分%S秒]", chinese)
        self.check("%Y年%m月%d日 %H時%M分%S秒", "GPUメモリ使用量: {used} MB")
        self.check("%Y년 %m월 %d일 %H시 %M분 %S초", "GPU 메모리 사용량: {used} MB")
        self.assertIn("LEAK", self.analyze([f"{at(90 * i, '%Y年%m月%d日 %H时%M分')} 已用显存 {4000 + 150 * i} MB" for i in range(60)]).text)

    def test_times_of_day(self):
        self.check("%H时%M分%S秒", "第{n}轮 已用显存 {used} MB", "23:5")

    def test_halves_of_the_day(self):
        # From before midnight until after it: 下午11時, 上午12時.
        for stamp, morning, afternoon, text in (("%Y年%m月%d日 {}%I时%M分%S秒", "上午", "下午", "已用显存 {} MB"),
                                                ("%Y年%m月%d日 {}%I時%M分%S秒", "午前", "午後", "GPUメモリ使用量: {} MB"),
                                                ("%Y년 %m월 %d일 {} %I:%M:%S", "오전", "오후", "GPU 메모리 사용량: {} MB"),
                                                ("{}%I时%M分%S秒", "上午", "下午", "已用显存 {} MB")):
            half = [afternoon if at(30 * i, "%p") == "PM" else morning for i in range(120)]
            c = self.analyze([f"{at(30 * i, stamp.format(half[i]))} {text.format(4000 + 50 * i)}" for i in range(120)])
            self.assert_leak(c)

    def test_other_languages(self):
        for text in ("memoria GPU en uso: {used} MB (total 40960 MB)", "memoria GPU utilizzata: {used} MB su 81559 MB",
                     "krok {n} pamięć GPU zajęta: {used} MB z 16384 MB", "GPU bellek kullanımı: {used} MB / 81559 MB",
                     "видеопамять: занято {used} МиБ из 81559 МиБ", "Использовано видеопамяти: {used} МБ"):
            self.check("%Y-%m-%d %H:%M:%S", text)

    def test_tables(self):
        self.sandbox.write("a.csv", "时间,gpu_mem_used_mib\n" + "".join(f"{at(30 * i, '%Y年%m月%d日 %H时%M分%S秒')},{4000 + 50 * i}\n" for i in range(120)))
        self.assert_leak(Case(self.sandbox, "a.csv"))


class PeakAndCurrent(Habits):
    """The figure of now is the series, not the peak beside it."""

    def check(self, form, metric):
        c = self.analyze([form.format(clock=f"{i // 120}:{i // 2 % 60:02}:{i % 2 * 30:02}", peak=4000 + 50 * i, now=3000 + 20 * i) for i in range(120)])
        self.assert_leak(c, 40, metric=metric)
        self.assertNotIn("only peaks", c.text)

    def test_current_beside_a_peak(self):
        self.check("[{clock}] peak memory allocated: {peak} MB, current: {now} MB", "allocator_allocated")
        self.check("[{clock}] current: {now} MB (peak memory {peak} MB)", "device_used")
        self.check("[{clock}] GPU memory peak: {peak} MB current: {now} MB", "device_used")
        self.check("[{clock}] 显存峰值 {peak} MB, 当前 {now} MB", "device_used")
        self.check("[{clock}] Speicher maximal {peak} MB, aktuell {now} MB", "device_used")

    def test_current_of_tensorflow(self):
        # tf.config.experimental.get_memory_info('GPU:0'): amounts in bytes
        for form in ("{} {{'current': {}, 'peak': {}}}", '{} epoch 3 GPU:0 {{"current": {}, "peak": {}}}'):
            self.assert_leak(self.analyze([form.format(at(30 * i), (4000 + 50 * i) * 2**20, 9000 * 2**20) for i in range(60)]))

    def test_only_peaks(self):
        for form in ("step:{n} - perf/max_memory_allocated_gb:{gib:.3f} - perf/max_memory_reserved_gb:{more:.3f} - perf/cpu_memory_used_gb:80.1",
                     "Step {n} | loss:1.25 peak_memory_alloc:{gib:.3f} peak_memory_reserved:{more:.3f}",
                     "iter {n} max_mem_reserved: {more:.3f} GB, max_mem_allocated: {gib:.3f} GB"):
            with self.subTest(form):
                c = self.analyze([f"{at(30 * i)} {form.format(n=i, gib=(4000 + 50 * i) / 1024, more=(4900 + 50 * i) / 1024)}" for i in range(60)])
                self.assert_leak(c, metric="allocator_allocated")
                self.assertEqual({r["series"]["metric"] for r in c.rows}, {"allocator_allocated", "allocator_reserved"})
                self.assertIn("only peaks", c.text)

    def test_current_of_something_else(self):
        c = self.analyze([f"{at(30 * i)} VRAM {4000 + 50 * i} MB\ncurrent: 3 MB" for i in range(60)])
        self.assert_leak(c)


class ScreensBehindPrefixes(Habits):
    """What a logger puts before each line does not change what a screen says."""

    SCREENS = ("table_linux", "table_windows", "table_mig", "nvitop", "gpustat", "rocm_smi", "rocm_smi_concise", "nvtop_screen")
    PREFIXES = {
        "quoted": lambda i: "> ",
        "docker compose": lambda i: "pod-0 | ",
        "kubectl": lambda i: "[pod/trainer-0/main] ",
        "containerd": lambda i: f"2026-03-01T10:{i // 60 % 60:02}:{i % 60:02}.123456789Z stdout F ",
        "a time and a name": lambda i: f"2026-03-01 10:{i // 60 % 60:02}:{i % 60:02} gpu-monitor: ",
    }

    def facts(self, *args):
        c = Case(self.sandbox, *args)
        return c, [(r["series"]["metric"], r["series"]["device"], r["samples"], r["verdict"]["shape"] if "shape" in r["verdict"] else r["verdict"]["leak"]) for r in c.rows]

    def test_each_screen_behind_each_prefix(self):
        for screen in self.SCREENS:
            plain = (FIXTURES / "log" / f"{screen}.log").read_bytes().decode("utf-8", "replace")
            self.sandbox.write("plain.log", plain)
            _, expected = self.facts("plain.log")
            self.assertTrue(expected, screen)
            for name, prefix in self.PREFIXES.items():
                with self.subTest(screen=screen, prefix=name):
                    lines = [(prefix(i) + line).rstrip(" ") for i, line in enumerate(plain.splitlines())]
                    self.sandbox.write("a.log", "\n".join(lines) + "\n")
                    c, facts = self.facts("a.log")
                    self.assertEqual(facts, expected, c.error)
                    if screen != "rocm_smi":  # its lines are recognised wherever they are
                        self.assertIn("read behind its prefix", " ".join(c.text.split()))

    def test_the_clock_of_the_prefix(self):
        """rocm-smi prints no time: that of the prefix is taken, where it stands alone."""
        screen = ["", "============================ ROCm System Management Interface ============================",
                  "================================== Memory Usage (Bytes) ==================================",
                  "GPU[0]\t\t: VRAM Total Memory (B): 17163091968", "GPU[0]\t\t: VRAM Total Used Memory (B): {}",
                  "================================== End of ROCm SMI Log ==================================="]
        lines = [f"{at(30 * i, '%Y-%m-%dT%H:%M:%S')}.5Z stdout F {line.format((4000 + 50 * i) * 2**20)}" for i in range(120) for line in screen]
        self.assert_leak(self.analyze(lines))

    def test_standard_input(self):
        text = "".join("> " + line + "\n" for line in (FIXTURES / "log/table_linux.log").read_text().splitlines())
        with Sandbox(BINARY) as sandbox:
            said = sandbox.run("analyze", "-", stdin=text).stdout.decode()
        self.assertIn("read behind its prefix", " ".join(said.split()))


class Restarts(Habits):
    """A program that leaks, ends at 21 GiB of a card of unknown size, and is there again at the next reading."""

    LEVELS = [12000 + 88 * i for i in range(110)]

    def runs_of(self, reading, load, messages=(), head=(), metric="device_used"):
        lines, count = list(head), 0
        for run in range(3):
            for level in load + self.LEVELS:
                lines.append(reading(count, level))
                count += 1
            if run < 2:
                lines += [message.format(time=at(30 * count)) for message in messages]
        said = self.analyze(lines).of(metric)
        self.assertEqual(said["verdict"]["pattern"], "gradual_leak", said)
        self.assertTrue(all(a["end_kind"] == "ended" for a in said["alerts"][:-1]), said)
        return [run["how"] if run["end"] else None for run in said["runs"]]

    def text(self, count, level):
        return f"{at(30 * count)} INFO step {count} vram_used={level} MiB"

    def csv(self, count, level):
        return f"{at(30 * count, '%Y/%m/%d %H:%M:%S.000')}, {level} MiB"

    def json(self, count, level):
        return f'{{"time": "{at(30 * count)}", "vram_used_mb": {level}}}'

    def allocator(self, count, level):
        return f"{at(30 * count)} step {count} allocated={level} MiB reserved={level + 500} MiB"

    ENDED = ["ended", "ended", None]

    def test_a_message_tells(self):
        for message in ("{time} ERROR worker died with signal 9, restarting", "train.sh: line 3:  4711 Killed      python train.py"):
            self.assertEqual(self.runs_of(self.text, [], [message]), self.ENDED)
            self.assertEqual(self.runs_of(self.csv, [], [message], ["timestamp, memory.used [MiB]"]), self.ENDED)
        for event in ('"msg": "worker exited with code 137"', '"event": {{"name": "exit", "exit_code": 137}}'):
            self.assertEqual(self.runs_of(self.json, [], ['{{"time": "{time}", ' + event + "}}"]), self.ENDED)
        self.assertEqual(self.runs_of(self.allocator, [], [message], metric="allocator_allocated"), self.ENDED)

    def test_a_message_of_success_does_not(self):
        lines, used, count = [], 12000, 0
        for _ in range(9):
            for _ in range(30):
                used += 25
                lines.append(self.text(count, used))
                count += 1
            lines += [self.text(count + i, used + 4000) for i in range(3)]
            count += 3
            lines.append(f"{at(30 * count)} INFO eval.py finished with exit code 0")
        c = self.analyze(lines)
        self.assertEqual((c.code, [run["end"] for run in c.of()["runs"]]), (1, [None]), c.text)

    def test_a_header_is_no_message(self):
        rows = [self.csv(i, 4000 + 50 * i) for i in range(100)]
        self.assert_leak(self.analyze(["timestamp, memory.used [MiB]", *rows[:50], "timestamp, memory.used [MiB], exitcode",
                                       *(row + ", 0" for row in rows[50:])]))

    def test_so_does_the_model_that_is_loaded_again(self):
        self.assertEqual(self.runs_of(self.text, [1152, 5801]), self.ENDED)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
