"""Which GPU or thread a figure in a log of people's own programs is of, by the real binary."""
import datetime
import random
import sys
import unittest

from log_case import GIB, MIB, LogTests

BINARY = sys.argv.pop(1)
BEGIN = datetime.datetime(2026, 3, 1, 12, 0)


def at(seconds, form="%Y-%m-%d %H:%M:%S"):
    return (BEGIN + datetime.timedelta(seconds=seconds)).strftime(form)


class Devices(LogTests):
    """Readings are 30 s apart; what leaks grows by 50 MiB each time, 100 MiB/min."""

    binary = BINARY

    def assert_growths(self, lines, expected, per_minute=True):
        """`expected`: MiB a minute, or a count, by metric and device; no other series is read."""
        with self.subTest(lines[0]):
            case = self.analyze(lines)
            self.assertIn(case.code, (0, 1), case.text + case.error)
            growths = {}
            for row in case.rows:
                verdict = row["verdict"]
                key = next(k for k in verdict if k.startswith("growth_bytes_per_"))
                self.assertEqual(key == "growth_bytes_per_s", per_minute, case.text)
                growths[row["series"]["metric"], row["series"]["device"]] = (
                    verdict[key]["mid"] * (60 if per_minute else 1) / MIB, verdict["leak"])
            self.assertEqual(set(growths), set(expected), case.text)
            for series, growth in expected.items():
                self.assertAlmostEqual(growths[series][0], growth, delta=5, msg=case.text)
                self.assertEqual(growths[series][1], growth > 0, case.text)


def timed(form):
    """Lines by `form`, which is given the used memory in MiB (m) and in GiB (g)."""
    return [f"{at(30 * i)} {form(4000 + 50 * i, (4000 + 50 * i) / 1024)}" for i in range(60)]


FIRST_RESTS = {("device_used", "0"): 0, ("device_used", "1"): 100}


class SeveralInALine(Devices):
    def test_keys(self):
        for form in (lambda m, g: f"GPU mem: {{0: '8.79GB', 1: '{g:.2f}GB'}}",
                     lambda m, g: f"mem: {{0: 9000, 1: {m}}} MB",
                     lambda m, g: f"gpu_mem={{'0': 9000, '1': {m}}}",
                     lambda m, g: f"vram {{'cuda:0': '9000 MiB', 'cuda:1': '{m} MiB'}}",
                     lambda m, g: f"GPU mem (GB): 8.79, {g:.2f}",
                     lambda m, g: f"gpus: 1: {m} MiB; 0: 9000 MiB",
                     lambda m, g: f"vram 9000MiB {m}MiB"):
            self.assert_growths(timed(form), FIRST_RESTS)

    def test_a_label_for_each(self):
        for form in (lambda m, g: f"used(gpu0)=9000 MiB used(gpu1)={m} MiB",
                     lambda m, g: f"used#0 8.79 GiB used#1 {g:.2f} GiB",
                     lambda m, g: f"gpu mem used(0)=9000 MiB, used(1)={m} MiB",
                     lambda m, g: f"gpu mem used(0)=9000, used(1)={m}",
                     lambda m, g: f"used_0=9000MB used_1={m}MB",
                     lambda m, g: f"mem0=9000MB mem1={m}MB",
                     lambda m, g: f"VRAM0 9000 MB | VRAM1 {m} MB",
                     lambda m, g: f"gpu_mem_used_0: 9000 gpu_mem_used_1: {m}",
                     lambda m, g: f"gpu0 9000 MiB used gpu1 {m} MiB used",
                     lambda m, g: f"GPU 0: 9000 MiB used | GPU 1: {m} MiB used"):
            self.assert_growths(timed(form), FIRST_RESTS)

    def test_calls(self):
        allocated = ("allocator_allocated", "0")
        for form in (lambda m, g: f"max_memory_allocated(0) {12000 * MIB} memory_allocated(0) {m * MIB}",
                     lambda m, g: f"memory_allocated()/1e9={m * MIB / 1e9:.3f}",
                     lambda m, g: f"memory_allocated(0) / (1 << 30): {g:.4f}"):
            self.assert_growths(timed(form), {allocated: 100})
        self.assert_growths(timed(lambda m, g: f"memory_allocated(0) {m * MIB} memory_allocated(1) {9000 * MIB}"),
                            {allocated: 100, ("allocator_allocated", "1"): 0})

    def test_thousands(self):
        self.assert_growths(timed(lambda m, g: f"torch.cuda.memory_allocated() = {m * MIB:,}"), {("allocator_allocated", "0"): 100})
        self.assert_growths(timed(lambda m, g: f"GPU memory in use: {m * MIB:_} bytes"), {("device_used", "0"): 100})

    def test_other_amounts_of_a_server(self):
        self.assert_growths(timed(lambda m, g: f"weights=13.4GB kv_cache=6.1GB gpu_used={g:.2f}GB"),
                            {("device_used", "0"): 100})

    def test_names_of_memory_are_no_index(self):
        self.assert_growths(timed(lambda m, g: f"HBM3: {m} MiB"), {("device_used", "0"): 100})


class Totals(Devices):
    def assert_capacity(self, lines):
        with self.subTest(lines[0]):
            case = self.analyze(lines)
            self.assertEqual(case.code, 1, case.text + case.error)
            self.assertEqual(case.of()["capacity_bytes"], 24 * GIB, case.text)

    def test_without_a_unit(self):
        self.assert_capacity(timed(lambda m, g: f"mem_used={m * MIB} mem_total={24 * GIB}"))
        self.assert_capacity(timed(lambda m, g: f"Memory(total: {24 * GIB}, used: {m * MIB})"))
        self.assert_capacity([f'{{"time": "{at(30 * i)}", "gpu": {{"used": {(4000 + 50 * i) * MIB}, "total": {24 * GIB}}}}}'
                              for i in range(60)])

    def test_with_slashes(self):
        self.assert_capacity(timed(lambda m, g: f"gpu memory (total/used/free): 24576/{m}/{24576 - m} MiB"))


class Shares(Devices):
    """They stay percentages where the capacity is not given."""

    def assert_percent(self, lines):
        with self.subTest(lines[0]):
            case = self.analyze(lines)
            self.assertEqual([row["series"]["metric"] for row in case.rows], ["device_used"], case.text + case.error)
            self.assertAlmostEqual(case.of()["verdict"]["growth_percent_per_s"]["mid"] * 60, 1, delta=0.005)
            self.assertEqual(case.of()["capacity_percent"], 100)

    def test_free(self):
        self.assert_percent(timed(lambda m, g: f"VRAM free: {100 - m / 100:.2f}%"))

    def test_of_one(self):
        self.assert_percent(timed(lambda m, g: f"iteration 5/ 900 | mem usages: {m / 10000:.4f} | lm loss: 1.0E+00 |"))


class Threads(Devices):
    def lines_of(self, names, form, shared=False):
        """Each thread writes once in 30 s, in any order. The first one's memory leaks; `shared`: all write about it."""
        draw = random.Random(7)
        lines = []
        for i in range(60):
            for name in names:
                ms = 30_000 * i + draw.randrange(8000)
                used = 4000 + 50 * i if shared or name == names[0] else 9000
                lines.append((ms, form(f"{at(ms / 1000)},{ms % 1000:03}", name, used)))
        return [line for _, line in sorted(lines)]

    def test_with_memory_of_their_own(self):
        for form in (lambda time, name, used: f"{time} [{name}] gpu mem used {used} MiB",
                     lambda time, name, used: f"{time} INFO [{name}] gpu mem used {used} MiB",
                     lambda time, name, used: f"[{name}] {time} gpu mem used {used} MiB"):
            self.assert_growths(self.lines_of(["worker-42", "worker-7"], form),
                                {("device_used", "worker-42"): 100, ("device_used", "worker-7"): 0})

    def test_that_write_about_one_gpu(self):
        self.assert_growths(
            self.lines_of(["Thread-1", "Thread-2"], lambda time, name, used: f"{time} [{name}] gpu mem used {used} MiB", True),
            {("device_used", "0"): 100})

    def test_levels_are_no_names(self):
        lines = [f"{at(30 * i)} [{('INFO', 'WARN')[i % 2]}] gpu mem used {4000 + 50 * i} MiB" for i in range(60)]
        self.assert_growths(lines, {("device_used", "0"): 100})


class Origins(Devices):
    """Lines of two machines, programs or GPUs, in any order, that say so wherever and however they like."""

    def lines_of(self, form, names):
        draw = random.Random(5)
        lines = []
        for i in range(60):
            for name in names:
                second = 30 * i + draw.uniform(0, 20)
                lines.append((second, form(at(second), name, 4000 + 50 * i if name == names[0] else 5000 + i % 3)))
        return [line for _, line in sorted(lines)]

    def test_names_of_gpus(self):
        for form in (lambda time, name, used: f"{time} INFO gpu_id={name} mem={used}MiB",
                     lambda time, name, used: f"ts={time.replace(' ', 'T')}Z level=info used_mib={used} device={name}",
                     lambda time, name, used: f"{time} {used} MiB used on cuda:{name}",
                     lambda time, name, used: f"{time} GPU index {name}: {used} MiB",
                     lambda time, name, used: f"{time} dev {name}: vram {used} MiB"):
            self.assert_growths(self.lines_of(form, ["0", "1"]), {("device_used", "0"): 100, ("device_used", "1"): 0})

    def test_names_of_others(self):
        for form, names in ((lambda time, name, used: f"{time} worker={name} vram {used} MiB", ["7", "8"]),
                            (lambda time, name, used: f"{time} {name}] mem usage: {used} MB", ["TP0", "TP1"]),
                            (lambda time, name, used: f"{time} [{name}] INFO gpu memory {used} MiB", ["4101", "4102"]),
                            (lambda time, name, used: f"{time} gpu memory {used} MiB host={name}", ["anna", "bert"]),
                            (lambda time, name, used: f"{time} {name} mon[88]: GPU0 mem used {used} MiB", ["node01", "node02"])):
            lines = self.lines_of(form, names)
            with self.subTest(lines[0]):
                case = self.analyze(lines)
                self.assertEqual(case.code, 1, case.text + case.error)
                leaks = {row["series"]["device"]: row["verdict"]["leak"] for row in case.rows}
                self.assertEqual(len(leaks), 2, case.text)
                self.assertEqual([name for name, leak in leaks.items() if leak],
                                 [name for name in leaks if name.startswith(names[0])], case.text)

    def test_objects_of_two_machines(self):
        for key in ('"host": {"name": "%s"}', '"service": "%s"', '"machine": "%s"'):
            lines = self.lines_of(lambda time, name, used: f'{{"time": "{time}", {key % name}, "gpu": {{"id": 0, "memory_used_mb": {used}}}}}',
                                  ["n7", "n8"])
            with self.subTest(lines[0]):
                case = self.analyze(lines)
                self.assertEqual({row["series"]["device"].split("/")[0]: row["verdict"]["leak"] for row in case.rows},
                                 {"n7": True, "n8": False}, case.text)


class Others(Devices):
    """Memory that is not a GPU's, beside memory that is."""

    def test_words_for_memory(self):
        for form in (lambda m, g: f"vram {m} MiB\n2026-03-01 12:00:00 backup: 12 MB of memory used by copy-on-write",
                     lambda m, g: f"RAM: 20000 MB used, 64000 MB total | GPU0 {m} MiB / 24576 MiB",
                     lambda m, g: f"RTX 3090 24GB VRAM used {m} MB"):
            lines = "\n".join(timed(form)).split("\n")
            self.assert_growths(lines, {("device_used", "0"): 100})

    def test_a_uuid_is_no_figure_but_a_name(self):
        uuid = "GPU-11111111-aaaa-bbbb-cccc-dddddddddddd"
        self.assert_growths(timed(lambda m, g: f"gpu memory id={uuid} "
                                               f'total="24.0 GiB" available="{24 - g:.3f} GiB"'), {("device_used", uuid): 100})


class Shells(Devices):
    """What a shell writes before the rows of a tool without titles."""

    def test_times(self):
        for form in ("%b %d %H:%M:%S", "%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%a %b %d %H:%M:%S UTC %Y"):
            for separator in (" ", ", "):
                lines = [at(30 * i, form) + f"{separator}{4000 + 50 * i} MiB, 24576 MiB" for i in range(60)]
                self.assert_growths(lines, {("device_used", "0"): 100})
        lines = [f"{at(30 * i, '%H:%M:%S')} {k}, {(4000 + 50 * i, 9000)[k]} MiB, 24576 MiB" for i in range(60) for k in (0, 1)]
        self.assert_growths(lines, {("device_used", "0"): 100, ("device_used", "1"): 0})


    def test_rows_of_gpustat(self):
        lines = [f"{at(30 * i)} [{k}] NVIDIA A10G | 54'C, 97 % | {(4000 + 50 * i, 9000)[k]} / 24576 MB | ann(3700M)"
                 for i in range(60) for k in (0, 1)]
        self.assert_growths(lines, {("device_used", "0"): 100, ("device_used", "1"): 0})


class Phases(Devices):
    def test_lines_of_one_time_that_differ_are_refused(self):
        lines = []
        for i in range(60):
            lines += [f"{at(30 * i)} train loss 0.1 gpu mem {4000 + 50 * i} MiB",
                      f"{at(30 * i)} val loss 0.1 gpu mem {4100 + 50 * i} MiB"]
        self.assert_refused(self.analyze(lines), "differ in their words", "--line-pattern 'train.*?mem")

    def test_the_pattern_of_the_refusal_reads_one_phase(self):
        lines = []
        for i in range(60):
            lines += [f"step {i} before forward: GPU memory {4000 + 50 * i} MB",
                      f"step {i} after forward: GPU memory {8000 + 50 * i} MB",
                      f"step {i} after empty_cache: GPU memory {4000 + 50 * i} MB"]
        case = self.analyze(lines)
        self.assertEqual(case.code, 2, case.text)
        pattern = case.error.split("--line-pattern '")[1].split("'")[0]
        case = self.analyze(lines, "--line-pattern", pattern)
        self.assertEqual(case.code, 1, case.text + case.error)
        self.assertEqual(case.of()["samples"], 60)

    def test_a_sawtooth_is_no_row_of_gpus(self):
        lines = [f"gpu mem used {8000 + 100 * (i % 12)} MiB" for i in range(240)]
        self.assert_growths(lines, {("device_used", "0"): 0}, per_minute=False)
        levels = [8000, 3000, 9000, 1000, 5000, 7000]
        self.assert_refused(self.analyze([f"gpu mem used {levels[i % 6]} MiB" for i in range(240)]), "the same 6 values ")


class Summaries(Devices):
    """torch.cuda.memory_summary()."""

    def summary(self, gpu, used, count):
        bar, line = "|" + "=" * 75 + "|", "|" + "-" * 75 + "|"

        def row(name, now, peak, allocated, freed):
            return f"| {name:<21} | {now:>6} MiB | {peak:>6} MiB | {allocated:>6} MiB | {freed:>6} MiB |"

        return [bar, f"|                  PyTorch CUDA memory summary, device ID {gpu}                 |", line,
                "|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |", bar,
                "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |", line,
                row("Allocated memory", used, used + 100, 100000 + 900 * count, 96000 + 850 * count),
                row("      from large pool", used - 10, used + 90, 90000 + 900 * count, 86000 + 850 * count),
                row("      from small pool", 10, 20, 900 + count, 800 + count), line,
                row("Active memory", used, used + 100, 100000 + 900 * count, 96000 + 850 * count), line,
                row("GPU reserved memory", 9000, 9000, 9000, 0), line,
                row("Non-releasable memory", 50, 300, 1000 + count, 950 + count), line,
                "| Allocations           |    1234    |    1300    |   99999    |   98765    |", bar, ""]

    def test_current_usage(self):
        lines = []
        for i in range(40):
            lines += [f"step {i} loss 0.5", *self.summary(0, 4000 + 50 * i, i), *self.summary(1, 7000, i)]
        self.assert_growths(lines, {("allocator_allocated", "0"): 50, ("allocator_reserved", "0"): 0,
                                    ("allocator_allocated", "1"): 0, ("allocator_reserved", "1"): 0}, per_minute=False)


class Captured(Devices):
    """kubectl logs --timestamps, docker logs -t."""

    def test_tables(self):
        lines = ["2026-03-01T11:59:59.123456789Z timestamp, index, memory.used [MiB], memory.total [MiB]"]
        lines += [f"{at(30 * i, '%Y-%m-%dT%H:%M:%S')}.123456789Z {at(30 * i, '%Y/%m/%d %H:%M:%S')}.000, 0, {4000 + 50 * i} MiB, 24576 MiB"
                  for i in range(60)]
        self.assert_growths(lines, {("device_used", "0"): 100})
        lines = ["2026-03-01T11:59:59.123456789Z step,gpu_mem_mb"]
        lines += [f"{at(30 * i, '%Y-%m-%dT%H:%M:%S')}.123456789Z {i},{4000 + 50 * i}" for i in range(60)]
        self.assert_growths(lines, {("device_used", "0"): 50}, per_minute=False)


if __name__ == "__main__":
    unittest.main()
