"""Tables and JSON lines of people's own programs, by the real binary: whose memory is read, and by which clock."""
import datetime
import json
import sys
import unittest

from log_case import Case, LogTests

BINARY = sys.argv.pop(1)
BEGIN = datetime.datetime(2026, 3, 1, 10, 0)
READINGS = 60


def at(reading, form="%Y-%m-%d %H:%M:%S"):
    return (BEGIN + datetime.timedelta(seconds=30 * reading)).strftime(form)


def leaking(i):
    return 4000 + 50 * i  # 100 MiB a minute


def steady(i):
    return 9000 + i * i % 7


class Tables(LogTests):
    binary = BINARY

    def analyze(self, lines, *args):
        return super().analyze(lines, "--timezone", "UTC", *args)

    def json_lines(self, of, n=READINGS):
        """`of` gives the members of the object of a reading, without the time."""
        return self.analyze([json.dumps({"time": at(i), **of(i)}) for i in range(n)])

    def csv(self, titles, of, n=READINGS, *args):
        """`of` gives the cells of a row behind the time."""
        return self.analyze(["time," + titles] + [",".join([at(i), *map(str, of(i))]) for i in range(n)], *args)

    def assert_two(self, case, leaks="0", rests="1"):
        """One of two GPUs leaks."""
        self.assert_leak(case, device=leaks)
        self.assertFalse(case.of(device=rests)["verdict"]["leak"], case.text)
        self.assertEqual(len([r for r in case.rows if r["series"]["metric"] == "device_used"]), 2, case.text)
        return " ".join(case.text.split())


class Objects(Tables):
    """Every GPU within an object is one of its own."""

    def two(self, of, key="gpus"):
        return self.json_lines(lambda i: {key: [of(0, leaking(i)), of(1, steady(i))]})

    def test_lists_of_objects(self):
        self.assert_two(self.two(lambda g, used: {"id": g, "mem_used_mb": used}))
        self.assert_two(self.two(lambda g, used: {"id": g, "mem_used_mb": used}, "devices"))
        self.assert_two(self.two(lambda g, used: {"index": g, "name": "A100", "memory": {"used_mb": used, "total_mb": 40960}}))
        self.assert_two(self.two(lambda g, used: {"gpu": g, "memory_used": f"{used} MiB"}))
        self.assert_two(self.two(lambda g, used: {"id": g, "memory_free_mb": 40000 - used, "memory_total_mb": 40000}))
        self.assert_two(self.two(lambda g, used: {"uuid": f"GPU-{g}aaaaaaa", "used_memory_mb": used}), "GPU-0aaaaaaa", "GPU-1aaaaaaa")
        self.assert_two(self.two(lambda g, used: {"name": f"cuda:{g}", "mem_used_mb": used}))
        self.assert_two(self.two(lambda g, used: {"name": ("A100", "L4")[g], "mem_used_mb": used}), "A100", "L4")

    def test_the_load_is_no_index_and_no_memory(self):
        self.assert_two(self.two(lambda g, used: {"id": g, "utilization": {"gpu": 5, "memory": 3}, "memory": used, "gpu": 30}))

    def test_elements_that_nothing_names(self):
        said = self.assert_two(self.two(lambda g, used: {"name": "A100", "mem_used_mb": used}))
        self.assertIn("assumed to be GPU 0, 1", said)

    def test_objects_by_id(self):
        self.assert_two(self.json_lines(lambda i: {"gpus": {"0": {"mem_used_mb": leaking(i)}, "1": {"mem_used_mb": steady(i)}}}))
        self.assert_two(self.json_lines(lambda i: {"gpu0": {"used_mb": leaking(i)}, "gpu1": {"used_mb": steady(i)}}))
        self.assert_two(self.json_lines(lambda i: {"gpu_mem_mb": {"cuda:0": leaking(i), "cuda:1": steady(i)}}))

    def test_lists_of_numbers(self):
        for written in (lambda *used: list(used), lambda *used: str(list(used)), lambda *used: ";".join(map(str, used))):
            said = self.assert_two(self.json_lines(lambda i: {"gpu_mem_mb": written(leaking(i), steady(i))}))
            self.assertIn("assumed to be GPU 0, 1", said)

    def test_an_object_for_each_gpu(self):
        for key in ("gpu", "gpu_id", "device", "rank"):
            lines = [json.dumps({"time": at(i), key: g, "gpu_mem_used_mb": (leaking, steady)[g](i)}) for i in range(READINGS) for g in (0, 1)]
            self.assert_two(self.analyze(lines))

    def test_a_load_beside_the_memory(self):
        self.assert_leak(self.json_lines(lambda i: {"gpu": 30 + i * i % 37, "gpu_mem_mb": leaking(i)}))

    def test_processes(self):
        lines = [json.dumps({"time": at(i), "pid": 101 + p, "gpu_mem_mb": (leaking, steady)[p](i)}) for i in range(READINGS) for p in (0, 1)]
        c = self.analyze(lines)
        self.assertEqual([(r["series"]["metric"], r["series"]["pid"], r["verdict"]["leak"]) for r in c.rows],
                         [("process_used", 101, True), ("process_used", 102, False)])
        c = self.json_lines(lambda i: {"gpus": [{"index": 0, "memory.used": leaking(i), "processes": [{"pid": 7, "gpu_memory_usage": leaking(i) - 500}]}]})
        self.assert_leak(c)
        self.assert_leak(c, metric="process_used")

    def test_peaks_of_torchtune(self):
        c = self.json_lines(lambda i: {"peak_memory_active": 5000 + 20 * i, "peak_memory_alloc": leaking(i), "peak_memory_reserved": 20000})
        self.assert_leak(c)
        self.assertIn("only peaks are given", c.text)


class Columns(Tables):
    """Which of several columns is read, and as what."""

    def test_what_an_allocator_reports(self):
        c = self.csv("allocated_gb,reserved_gb", lambda i: (leaking(i) / 1024, 6 + leaking(i) / 1024))
        self.assert_leak(c, metric="allocator_allocated")
        self.assert_leak(c, metric="allocator_reserved")
        c = self.csv("gpu0_allocated_mb,gpu0_reserved_mb,gpu1_allocated_mb,gpu1_reserved_mb", lambda i: (leaking(i), 12000, steady(i), 14000))
        self.assert_leak(c, metric="allocator_allocated")
        self.assertEqual([(r["series"]["metric"], r["series"]["device"]) for r in c.rows if r["verdict"]["leak"]], [("allocator_allocated", "0")])
        self.assertEqual(len(c.rows), 4)
        c = self.csv("pid,mem_used_mb,allocated_mb,reserved_mb", lambda i: (77, leaking(i) + 800, leaking(i), leaking(i) + 500))
        self.assertEqual({(r["series"]["metric"], r["series"]["pid"]) for r in c.rows if r["verdict"]["leak"]},
                         {("process_used", 77), ("allocator_allocated", 77), ("allocator_reserved", 77)})

    def test_allocated_alone_is_what_is_in_use(self):
        self.assert_leak(self.csv("gpu_mem_allocated_mb", lambda i: (leaking(i),)))

    def test_the_memory_of_the_host(self):
        self.assert_leak(self.csv("mem_mb,gpu_mem_mb", lambda i: (16000 + i % 3, leaking(i))))
        c = self.csv("ram_used_mb,mem_total_mb,gpu_mem_mb", lambda i: (16000 + i % 3, 131072, leaking(i)))
        self.assert_leak(c)
        self.assertIsNone(c.of().get("capacity_bytes"))
        self.assert_refused(self.csv("ram_used_mb,loss", lambda i: (16000 + i, 0.5)), "'ram_used_mb' is the memory of the host")
        self.assert_refused(self.csv("mem_used_mb,cpu_percent", lambda i: (16000 + i, 0.5)), "'mem_used_mb' is the memory of ")

    def test_what_lightning_logs_of_the_allocator(self):
        hook = "DeviceStatsMonitor.on_train_batch_start/"
        titles = ["active_bytes.all.current", "allocated_bytes.all.current", "allocated_bytes.all.peak", "allocated_bytes.large_pool.current", "num_ooms",
                  "reserved_bytes.all.current", "reserved_bytes.all.peak"]
        rows = []
        for i in range(READINGS):
            used = leaking(i) * 2**20
            rows += [f"{i // 20},,,,,,,,0.5,{100 * i}", f",{used},{used},{used + 2**30},{used},0,{used + 2**31},{used + 2**31},,{100 * i}"]
        c = self.analyze(["epoch," + ",".join(hook + title for title in titles) + ",train_loss,step"] + rows)
        self.assertEqual({r["series"]["metric"] for r in c.rows}, {"allocator_allocated", "allocator_reserved"}, c.text + c.error)
        for row in c.rows:
            self.assertEqual(row["counts"], "step")
            self.assertAlmostEqual(row["verdict"]["growth_bytes_per_step"]["mid"] / 2**20, 0.5, delta=0.05)

    def test_lists_in_a_cell(self):
        for form in ('"[{}, {}]"', "{};{}", "{} MiB | {} MiB", "[{} {}]"):
            said = self.assert_two(self.csv("gpu_mem_mb", lambda i: (form.format(leaking(i), steady(i)),)))
            self.assertIn("those of GPU 0, 1, ...", said)
        self.assert_leak(self.csv("gpu_mem_mb", lambda i: (f"[{leaking(i)}]",)))
        c = self.csv("host,gpu_mem_mb", lambda i: (f"node{i % 2}", f"{leaking(i)};{steady(i)}"))
        self.assertIn("whose each amount is", c.error)

    def test_commas_between_thousands(self):
        self.assert_leak(self.csv('"GPU memory used"', lambda i: (f'"{leaking(i):,} MiB"',)))
        self.assert_leak(self.csv("vram_mb,note", lambda i: (f'"{leaking(i):,}"', '"a ""b"", c"')))
        self.assert_leak(self.csv("used_bytes", lambda i: (f'"{leaking(i) * 2**20:,}"',)))

    def test_a_comma_that_may_be_decimal_is_no_comma_between_thousands(self):
        self.assert_refused(self.csv('"GPU memory used"', lambda i: ('"{:.3f} GiB"'.format(3 + i / 50).replace(".", ","),)), "no readable amount")

    def test_peaks_of_torchtune(self):
        c = self.csv("peak_memory_active,peak_memory_alloc,peak_memory_reserved", lambda i: (5 + i / 100, leaking(i) / 1024, 20))
        self.assert_leak(c)
        self.assertIn("only peaks are given", c.text)


class Bars(Tables):
    """Tables whose columns are separated by '|', as databases print them."""

    def rows(self, form):
        return [form.format(at(i), g, (leaking, steady)[g](i)) for i in range(READINGS) for g in (0, 1)]

    def test_bars_alone(self):
        self.assert_two(self.analyze(["time|gpu|used_mb"] + self.rows("{}|{}|{}")))

    def test_psql_and_mysql(self):
        psql = ["         ts          | gpu | used_mb ", "---------------------+-----+---------"] + self.rows(" {} |   {} |   {:5} ") + ["(120 rows)"]
        line = "+---------------------+-----+---------+"
        mysql = [line, "| ts                  | gpu | used_mb |", line] + self.rows("| {} |   {} |   {:5} |") + [line, "120 rows in set (0.00 sec)"]
        for table in (psql, mysql):
            said = self.assert_two(self.analyze(table))
            self.assertNotIn("could not be read", said)

    def test_lines_of_text_with_bars_are_no_table(self):
        self.assert_leak(self.analyze([f"{at(i)} | INFO | gpu mem used {leaking(i)} MiB | loss 0.5" for i in range(READINGS)]))


class OneFigureARow(Tables):
    """Tables in which a column names the figure of each row: InfluxDB's annotated CSV, MLflow's metrics."""

    ANNOTATIONS = ["#group,false,false,true,false,false,true,true,true", "#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string",
                   "#default,_result,,,,,,,"]

    def influx(self, label, *more):
        rows = []
        for g in (0, 1):  # one series after another
            for field, of in (("memory_used", (leaking, steady)[g]), ("temperature_gpu", lambda i: 40 + i % 9)):
                for i in range(READINGS):
                    rows.append(f",,{g},{at(0, '%FT%TZ')},{at(i, '%FT%TZ')},{of(i)},{field},nvidia_smi,{g}")
            rows += [f",,9,{at(0, '%FT%TZ')},{at(i, '%FT%TZ')},{90000 - i},used,mem,node7" for i in range(READINGS)]
        return self.analyze(self.ANNOTATIONS + [f",result,table,_start,_time,_value,_field,_measurement,{label}"] + rows + list(more))

    def test_influx(self):
        self.assert_two(self.influx("index"))

    def test_a_label_of_which_nothing_says_what_it_is(self):
        self.assert_refused(self.influx("slot"), "'slot' has '0' and '1'", "title it 'gpu'")

    def test_columns_that_change(self):
        self.assert_refused(self.influx("index", ",result,table,_time,_value,_field,_measurement,index,host"), "its columns change partway")

    def test_mlflow(self):
        form = "{},system/gpu_{}_memory_usage_megabytes,{},{},{}"
        ms = int(BEGIN.replace(tzinfo=datetime.timezone.utc).timestamp()) * 1000
        rows = [form.format("8f1a", g, (leaking, steady)[g](i) * 2**20 / 1e6, i, ms + 30000 * i) for i in range(READINGS) for g in (0, 1)]
        rows += [f"8f1a,system/system_memory_usage_megabytes,{41000 + i},{i},{ms + 30000 * i}" for i in range(READINGS)]
        self.assert_two(self.analyze(["run_id,key,value,step,timestamp"] + rows))

    def test_no_memory(self):
        self.assert_refused(self.analyze(["key,value,timestamp"] + [f"loss,0.{i},{1772359200 + i}" for i in range(READINGS)]), "as a long-csv log")


class Languages(Tables):
    """Titles in German, French, Chinese and Japanese."""

    def test_titles(self):
        for titles in ("Zeit;Belegt (MiB)", "Zeitstempel;GPU-Speicher belegt (MiB)", "heure;mémoire GPU utilisée (Mo)",
                       "时间,显存占用(MB)", "时间戳,显存使用量(MB)", "時刻,VRAM使用量(MB)", "日時,GPUメモリ使用量(MB)"):
            delimiter = ";" if ";" in titles else ","
            self.assert_leak(self.analyze([titles] + [f"{at(i)}{delimiter}{leaking(i)}" for i in range(READINGS)]))

    def test_the_load_is_not_memory(self):
        self.assert_leak(self.analyze(["时间,GPU使用率,内存使用量(MB),显存占用(MB)"] + [f"{at(i)},{i % 50},{90000 - i},{leaking(i)}" for i in range(READINGS)]))


class Counts(Tables):
    """A duration is not a clock, and a count that begins again is another epoch or another run."""

    def per(self, case, mib, what="step"):
        self.assertEqual(case.code, 1, case.text + case.error)
        self.assertAlmostEqual(case.of()["verdict"][f"growth_bytes_per_{what}"]["mid"] / 2**20, mib, delta=mib / 20)

    def test_a_duration_is_no_clock(self):
        rows = [f"{i},{120 + i * i % 5},{leaking(i) / 1024:.3f}" for i in range(READINGS)]
        c = self.analyze(["epoch,time_s,vram_gb"] + rows)
        self.per(c, 50, "epoch")
        self.assertIn("is not a clock", c.text)
        self.per(self.analyze(["iter,iter_time,gpu_mem_gb"] + rows), 50, "iteration")

    def test_a_clock_beside_a_count_stays_one(self):
        rows = [f"{i},{30 * i + i % 3},{leaking(i)}" for i in range(READINGS)]
        self.assert_leak(self.analyze(["step,time_s,gpu_mem_mb"] + rows))
        self.assert_leak(self.analyze(["step,time_s,gpu_mem_mb"] + rows[::-1]))

    def test_a_unit_of_time_in_the_first_column_is_a_clock(self):
        for title, seconds in (("minutes", 60), ("mins", 60), ("hours", 3600), ("Seconds", 1), ("secs", 1)):
            for delimiter in ",\t":
                rows = [f"{30 * i / seconds:.4f}{delimiter}{leaking(i) / 1024:.3f}" for i in range(READINGS)]
                with self.subTest(title, delimiter=delimiter):
                    self.assert_leak(self.analyze([f"{title}{delimiter}vram_gib"] + rows))
        self.assert_leak(self.csv("hours,vram_mb", lambda i: (i % 24, leaking(i))))

    def test_tabs_beside_a_load_are_a_table(self):
        rows = [f"{30 * i}.0\t{leaking(i)}\t{i * 37 % 90}" for i in range(READINGS)]
        self.assert_leak(self.analyze(["elapsed_s\tgpu_mem_MiB\tgpu_util"] + rows))

    def test_steps_of_epochs_go_on(self):
        for n in (2, 20):
            rows = [f"{i // (100 // n)},{i % (100 // n)},{4000 + 10 * i}" for i in range(100)]
            c = self.analyze(["epoch,step,gpu_mem_mb"] + rows)
            self.per(c, 10)
            self.assertNotIn("goes back", c.text)
        # The steps of all epochs, and two GPUs.
        self.per(self.analyze(["epoch,step,gpu_mem_mb"] + [f"{i // 50},{i},{4000 + 10 * i}" for i in range(100)]), 10)
        two = [f"{i // 50},{i % 50},{g},{4000 + 10 * i * (1 - g)}" for i in range(100) for g in (0, 1)]
        self.per(self.analyze(["epoch,step,gpu,gpu_mem_mb"] + two), 10)

    def test_no_rate_per_minute_without_a_clock(self):
        tools = {
            "nvtop": lambda m: f'[\n {{\n  "device_name": "A",\n  "gpu_clock": null,\n  "mem_util": "1%",\n  "mem_total": "51527024640",\n  "mem_used": "{m * 2**20}",\n  "mem_free": null\n }}\n]\n',
            "prometheus": lambda m: f'DCGM_FI_DEV_FB_USED{{gpu="0"}} {m}\n',
            "gpustat --json": lambda m: f'{{"gpus": [{{"index": 0, "name": "A100", "memory.used": {m}, "memory.total": 40536, "processes": []}}]}}\n',
            "gpustat": lambda m: f"[0] A100 | 65'C,  75 % | {m} / 40536 MB | along({m}M)\n",
            "dcgmi": lambda m: f"   GPU 0  {m}  {40000 - m}\n",
            "tegrastats": lambda m: f"RAM {m}/78500MB (lfb 1x2MB) CPU [0%@1]\n",
            "rocm-smi": lambda m: f"GPU[0]\t\t: VRAM Total Memory (B): 51527024640\nGPU[0]\t\t: VRAM Total Used Memory (B): {m * 2**20}\n",
            "query-gpu": lambda m: f"{m} MiB\n",
        }
        heads = {"dcgmi": "# Entity  FBUSD  FBFRE\n      Id\n", "query-gpu": "memory.used [MiB]\n"}
        for tool, reading in tools.items():
            with self.subTest(tool):
                self.sandbox.write("a.log", heads.get(tool, "") + "".join(reading(4000 + 50 * i) for i in range(150)))
                text = Case(self.sandbox, "a.log").text
                self.assertIn("MiB/reading", text)
                self.assertNotIn("MiB/min", text)

    def test_another_run_is_told_in_steps(self):
        c = self.analyze(["step,gpu_mem_mb"] + [f"{i},{4000 + 10 * i}" for _ in range(2) for i in range(100)])
        self.assertIn("steps goes back by 99, ", " ".join(c.text.split()))
        self.assertNotIn("5940", c.text)


class SmiQ(Tables):
    """nvidia-smi -q in a loop: the framebuffer, and neither BAR1 nor confidential memory."""

    SECTION = "    {} Memory Usage\n        Total                             : {} MiB\n        Used                              : {} MiB\n        Free                              : {} MiB"

    def lines(self, gpus):
        for i in range(READINGS):
            yield "\n==============NVSMI LOG==============\n"
            yield f"Timestamp                                 : {at(i, '%a %b %d %H:%M:%S %Y')}"
            yield f"Attached GPUs                             : {gpus}"
            for g in range(gpus):
                used = (leaking, steady)[g](i)
                yield f"GPU 00000000:0{g + 1}:00.0"
                yield self.SECTION.format("FB", 40960, used, 40360 - used)
                yield self.SECTION.format("BAR1", 65536, 1 + i % 2, 65535)
                yield self.SECTION.format("Conf Compute Protected", 0, 0, 0)

    def test_each_gpu(self):
        self.assert_two(self.analyze(self.lines(2)), "00000000:01:00.0", "00000000:02:00.0")
        c = self.analyze(self.lines(1))
        self.assert_leak(c, device="00000000:01:00.0")
        self.assertEqual(c.of(device="00000000:01:00.0")["capacity_bytes"], 40960 * 2**20)


class Programs(Tables):
    """What training programs write of themselves."""

    def test_allocated_and_reserved_in_objects(self):
        c = self.json_lines(lambda i: {"gpu_mem_allocated_mb": leaking(i), "gpu_mem_reserved_mb": 12000})
        self.assert_leak(c, metric="allocator_allocated")
        self.assertFalse(c.of("allocator_reserved")["verdict"]["leak"], c.text)
        c = self.json_lines(lambda i: {"gpu_mem_reserved_mb": leaking(i)})
        self.assert_leak(c, metric="allocator_reserved")

    def test_steps_in_objects_begin_anew_with_each_epoch(self):
        c = self.analyze([json.dumps({"epoch": i // 70, "step": i % 70, "gpu_mem_mb": 4000 + 5 * i}) for i in range(210)])
        self.assertEqual(c.code, 1, c.text + c.error)
        self.assertEqual(c.of()["samples"], 210)
        self.assertAlmostEqual(c.of()["verdict"]["growth_bytes_per_step"]["mid"] / 2**20, 5, delta=0.3)

    def test_a_column_for_each_gpu(self):
        head = ["| step | GPU0 MiB | GPU1 MiB |", "|---|---|---|"]
        rows = [f"| {i} | {4000 + 50 * i} | {steady(i)} |" for i in range(READINGS)]
        c = self.analyze(head + rows)
        self.assertEqual(c.code, 1, c.text + c.error)
        self.assertTrue(c.of(device="0")["verdict"]["leak"])
        self.assertFalse(c.of(device="1")["verdict"]["leak"])


class OutOfMemory(Tables):
    """The message is how the run ended, wherever it stands."""

    MESSAGE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.00 GiB is free."

    def check(self, *last):
        c = self.analyze([json.dumps({"time": at(i), "gpu_mem_mb": leaking(i)}) for i in range(READINGS)] + list(last))
        self.assertIn("LEAKED until memory ran out", c.text)
        self.assertIn("Tried to allocate 2.00 GiB", c.text)

    def test_json(self):
        self.check(json.dumps({"time": at(READINGS), "level": "error", "msg": self.MESSAGE}))
        self.check(json.dumps({"time": at(READINGS), "level": "error", "exc": "Traceback (most recent call last):\n  File \"t.py\", line 3\n" + self.MESSAGE}))
        self.check("Traceback (most recent call last):", '  File "train.py", line 3, in <module>', self.MESSAGE)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
