"""Behaviour of the real binary that no golden shows: signals, pipes, terminals, exit codes, round trips."""
import gzip
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import unittest

from sandbox import FIXTURES, Sandbox, drm_machine, leak_log, no_gpu, smi_log, steady_log

BINARY = sys.argv.pop(1)
TREND = ["--detector", "linear_trend"]
NEEDS_FAKE = unittest.skipUnless(os.environ.get("VRAMTRACK_FAKE_LIBRARY"), "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")


def lines_of(stdout):
    return [json.loads(line) for line in stdout.decode().splitlines()]


class CliTest(unittest.TestCase):
    def setUp(self):
        self.box = self.enterContext(Sandbox(BINARY)) if hasattr(self, "enterContext") else Sandbox(BINARY).__enter__()
        if not hasattr(self, "enterContext"):
            self.addCleanup(self.box.__exit__)

    def run_ok(self, *args, exit_code=0, **kwargs):
        result = self.box.run(*args, **kwargs)
        self.assertEqual(result.returncode, exit_code, result.stderr.decode() + result.stdout.decode()[-2000:])
        return result


class Analyze(CliTest):
    def test_exit_codes_are_the_contract(self):
        self.box.write("leak.csv", leak_log())
        self.box.write("steady.csv", steady_log())
        self.run_ok("analyze", *TREND, "steady.csv", exit_code=0)
        self.run_ok("analyze", *TREND, "leak.csv", exit_code=1)
        self.run_ok("analyze", *TREND, "steady.csv", "leak.csv", exit_code=1)
        self.run_ok("analyze", "missing.csv", exit_code=2)
        self.run_ok("analyze", *TREND, "missing.csv", "leak.csv", exit_code=2)
        self.run_ok("analyze", "--nonsense", exit_code=2)

    def test_a_page_is_no_log(self):
        self.box.write("r.html", "<!DOCTYPE html><table></table>")
        self.assertIn("r.html is an HTML page", self.run_ok("analyze", "r.html", exit_code=2).stderr.decode())

    def test_a_leak_whose_memory_came_back_still_counts(self):
        self.box.write("released.csv", smi_log(lambda t: None if t > 3600 else 4000 + 2 * t if t < 1800 else 1000))
        result = self.box.run("analyze", *TREND, "--format", "json", "released.csv")
        row = lines_of(result.stdout)[0]
        self.assertFalse(row["verdict"]["leak"])
        expected = any(a["leak"] and a["ended"] != "withdrawn" for a in row["alerts"] + row["suspicions"])
        self.assertEqual(result.returncode, 1 if expected else 0)

    def test_a_recording_through_standard_input_and_gzip_gives_the_same(self):
        self.box.write("leak.csv", leak_log())
        (self.box.work / "leak.csv.gz").write_bytes(gzip.compress(leak_log().encode()))
        rows = [lines_of(self.run_ok("analyze", *TREND, "--format", "json", file, exit_code=1, stdin=leak_log()).stdout)
                for file in ("leak.csv", "leak.csv.gz", "-")]
        for row in rows:
            del row[0]["files"]
        self.assertEqual(rows[0], rows[1])
        self.assertEqual(rows[0], rows[2])

    def test_relative_times_are_null_dates(self):
        self.box.write("r.csv", "t_s,mem_used_mib,mem_total_mib\n" + "".join(f"{t},{4000 + t},24576\n" for t in range(0, 2400, 5)))
        row = lines_of(self.box.run("analyze", *TREND, "--format", "json", "r.csv").stdout)[0]
        self.assertIsNone(row["start"])
        self.assertEqual(row["duration_s"], 2395)
        for alert in row["alerts"]:
            self.assertIsNone(alert["raised"])
            self.assertIsInstance(alert["raised_s"], float)

    def test_process_log_is_joined_to_the_device_log(self):
        self.run_ok("simulate", *TREND, "--csv", "gpu.csv", "--process-csv", "apps.csv")
        rows = lines_of(self.box.run("analyze", *TREND, "--format", "json", "gpu.csv", "apps.csv").stdout)
        self.assertEqual({tuple(r["files"]) for r in rows}, {("gpu.csv", "apps.csv")})
        self.assertIn(4242, [r["series"]["pid"] for r in rows])

    def test_set_reaches_the_detector(self):
        self.box.write("slow.csv", leak_log(mib_per_min=30))
        self.run_ok("analyze", *TREND, "slow.csv", exit_code=0)
        self.run_ok("analyze", *TREND, "--set", "min-slope-mb-per-sec=0.1", "slow.csv", exit_code=1)
        self.run_ok("analyze", *TREND, "slow.csv", exit_code=1, env={"VRAMTRACK_DETECTION_MIN_SLOPE_MB_PER_SEC": "0.1"})


    def test_what_follows_a_setting_is_a_file(self):
        self.box.write("a.csv", leak_log())
        self.box.write("b.csv", steady_log())
        one_each = self.run_ok("analyze", *TREND, "--set", "min-r-squared=0.8", "--set", "leak-prior=0.2", "--format", "json",
                               "a.csv", "b.csv", exit_code=1)
        self.assertEqual([r["files"] for r in lines_of(one_each.stdout)], [["a.csv"], ["b.csv"]])
        self.run_ok("analyze", *TREND, "--set=min-r-squared=0.8", "a.csv", exit_code=1)
        self.run_ok("replay", *TREND, "--set", "min-r-squared=0.8", "a.csv", exit_code=1)
        self.run_ok("simulate", *TREND, "--set", "min-r-squared=0.8", "healthy_training")
        self.assertIn(b"'nonsense'", self.run_ok("analyze", "a.csv", "--set", "nonsense", exit_code=2).stderr)


class CrashLog(CliTest):
    """A log that continues after the crash tells the same story however long it continues."""

    GPU = "GPU-51e00000-0000-4000-8000-000000000000"

    def write_logs(self, readings_after):
        gpu = ["timestamp, index, uuid, name, memory.used [MiB], memory.total [MiB]"]
        apps = ["timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]"]
        used, second = 4000.0, 0
        while used < 24576 - 420:
            stamp = f"2026/01/05 {8 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000"
            gpu.append(f"{stamp}, 0, {self.GPU}, NVIDIA A10, {used + 420:.0f} MiB, 24576 MiB")
            apps.append(f"{stamp}, {self.GPU}, 4242, python train.py, {used:.0f} MiB")
            last, used, second = stamp, used + 10, second + 5
        for _ in range(readings_after):
            stamp = f"2026/01/05 {8 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000"
            gpu.append(f"{stamp}, 0, {self.GPU}, NVIDIA A10, 420 MiB, 24576 MiB")
            second += 5
        self.box.write("gpu.csv", "\n".join(gpu) + "\n")
        self.box.write("apps.csv", "\n".join(apps) + "\n")
        return last[11:19]

    def test_one_story_whatever_comes_after(self):
        for readings_after in (1, 3, 60, 360):
            end = self.write_logs(readings_after)
            for logs, pid in ((["gpu.csv", "apps.csv"], 4242), (["gpu.csv"], None)):
                with self.subTest(readings_after=readings_after, logs=logs):
                    out = self.run_ok("analyze", "--timezone", "UTC", *logs, exit_code=1).stdout.decode()
                    device = out.split("\n\n")[1]
                    self.assertIn("GPU 0 NVIDIA A10: LEAKED ", device)
                    self.assertRegex(device, rf"reached 24\.0/24\.0 GiB at 2026-01-05T{end}Z; "
                                             + (r"pid 4242 \(python train\.py\) ended then" if pid else "then its memory was released"))
                    self.assertRegex(device, r"leaked \+120 MiB/min since 2026-01-05T.*; .* \d+h \d\dm before")
                    for wrong in ("checkpoint", "no visible process", "out of memory now", "growing", "out of memory in 0"):
                        self.assertNotIn(wrong, device.replace("predicted then: out of memory in 0", ""))
                    lines = lines_of(self.run_ok("analyze", "--timezone", "UTC", "--format", "json", *logs, exit_code=1).stdout)
                    verdict = lines[0]["verdict"]
                    # The run's verdict, however long the GPU has been idle since.
                    self.assertTrue(verdict["leak"])
                    self.assertTrue(lines[0]["leaked"])
                    self.assertEqual((verdict["end"]["how"], verdict["end"]["pid"]), ("out_of_memory", pid))
                    self.assertEqual(verdict["end"]["used_bytes"] // 2**20, 24570)
                    self.assertEqual(lines[0]["runs"][0]["how"], "out_of_memory")
                    self.report_tells_it(logs, pid)

    def report_tells_it(self, logs, pid):
        args = ["report", "--timezone", "UTC", "--set", "cost.usd-per-gpu-hour=2.5", *logs]
        text = self.run_ok(*args, exit_code=1).stdout.decode()
        self.assertTrue(text.startswith("GPU memory: GPU 0 leaked "), text[:200])
        self.assertEqual(text.count("gradual leak"), 1, "one leak is one alert")
        self.assertIn("Lost in crashes", text)
        self.assertIn("No job is predicted ", text)
        money = json.loads(self.run_ok(*args, "--format", "json", exit_code=1).stdout)["money"]
        self.assertEqual(len(money["crashes"]), 1)
        self.assertEqual(money["crashes"][0]["pids"], [pid] if pid else [])
        hours = (24576 - 420 - 4000) / 10 * 5 / 3600  # from the first sample to the crash
        self.assertAlmostEqual(money["crashed_gpu_hours"]["mid"], hours, delta=0.01)
        self.assertAlmostEqual(money["crashed_usd"]["mid"], 2.5 * hours, delta=0.03)

    def test_each_run_of_a_log_has_a_line(self):
        rows = ["timestamp, index, name, memory.used [MiB], memory.total [MiB]"]
        second = 0
        for used in (8000, 12000, 6000):
            for level in [used] * 120 + [420] * 60:
                rows.append(f"2026/01/05 08:{second // 60:02}:{second % 60:02}.000, 0, NVIDIA A10, {level} MiB, 24576 MiB")
                second += 1
        self.box.write("gpu.csv", "\n".join(rows) + "\n")
        out = self.run_ok("analyze", "--timezone", "UTC", "gpu.csv").stdout.decode()
        self.assertIn("  runs       3 in all, oldest first\n", out)
        self.assertIn("  2026-01-05T08:00:00Z to 2026-01-05T08:01:59Z, 2m: peak 7.8/24.0 GiB, ended\n", out)
        self.assertIn("  2026-01-05T08:03:00Z to 2026-01-05T08:04:59Z, 2m: peak 11.7/24.0 GiB, ended\n", out)


class RunsOfALog(CliTest):
    """Each run has its end, and the verdict is about the last one (tests/fixtures/runs)."""

    def analysis(self, name, exit_code):
        path = str(FIXTURES / "runs" / name)
        text = self.run_ok("analyze", "--timezone", "UTC", path, exit_code=exit_code).stdout.decode()
        return text, lines_of(self.run_ok("analyze", "--timezone", "UTC", "--format", "json", path, exit_code=exit_code).stdout)[0]

    def ran_out(self, run):
        self.assertEqual(run["how"], "out_of_memory")
        self.assertGreater(run["lead_s"], 1800)
        self.assertIsNotNone(run["growth_bytes_per_s"])

    def test_two_crashes_beside_a_tenant(self):
        text, device = self.analysis("two-crashes-beside-a-tenant.csv", 1)
        self.assertEqual(len(device["runs"]), 3)
        for run in device["runs"][:2]:
            self.ran_out(run)
        self.assertEqual(device["runs"][2]["how"], "ended")
        begun = device["runs"][2]["begin_s"]
        self.assertLess(device["alerts"][-1]["raised_s"] - begun, 600, "it grows like the two that ran out")
        self.assertNotIn("cycling", text)
        self.assertEqual(text.count(": memory ran out at"), 2, "each alert says how it ended")

    def test_a_restart_without_an_idle_sample(self):
        text, device = self.analysis("restart-without-idle.csv", 1)
        self.assertEqual(len(device["runs"]), 3)
        for run in device["runs"][:2]:
            self.ran_out(run)
        self.assertIsNone(device["runs"][2]["end"])
        self.assertTrue(device["verdict"]["leak"])
        self.assertIn("2 earlier runs", text)
        self.assertLess(text.index("LEAK ("), text.index("  runs "), "the verdict comes first")
        self.assertNotIn("then its memory was released", text)

    def test_a_second_run_that_loads_in_stages(self):
        _, device = self.analysis("second-run-loads-in-stages.csv.gz", 0)
        self.assertEqual(len(device["runs"]), 2)
        self.assertEqual(device["alerts"], [])
        self.assertEqual(device["verdict"]["state"], "steady")

    def test_many_short_runs_are_counted(self):
        rows = ["timestamp, index, name, memory.used [MiB], memory.total [MiB]"]
        levels = ([9000] * 30 + [420] * 5) * 47 + ([8000] * 120 + [420] * 5) * 12
        for second, used in enumerate(levels):
            rows.append(f"2026/01/05 {8 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000, 0, NVIDIA A10, {used} MiB, 24576 MiB")
        self.box.write("gpu.csv", "\n".join(rows) + "\n")
        text = self.run_ok("analyze", "--timezone", "UTC", "gpu.csv").stdout.decode()
        self.assertIn("  runs       59 in all, oldest first\n", text)
        self.assertIn("... and 2 earlier runs and 47 runs shorter than a minute; JSON lists all\n", text)
        self.assertEqual(text.count("peak 7.8/24.0 GiB"), 10)


class LogOptions(CliTest):
    LOG = "".join(f"step {i} vram={2000 + 5 * i} of 24000\n" for i in range(600))
    OPTIONS = ("--line-pattern", r"step (?<step>\d+) vram=(?<used>\d+) of (?<total>\d+)", "--unit", "MiB", "--interval", "10s",
               "--start", "2026-01-05T08:00", "--timezone", "UTC")

    def test_every_command_that_reads_a_log_takes_the_same_options(self):
        for command in (["analyze"], ["replay"], ["report"], ["top"], ["policy", "test"]):
            text = self.run_ok(*command, "--help").stdout.decode()
            for option in ("--input-format", "--line-pattern", "--start", "--unit", "--capacity", "--timezone", "--interval"):
                self.assertIn(f"  {option} ", text, command)

    def test_they_read_the_same_of_it(self):
        self.box.write("own.log", self.LOG)
        for command in ("analyze", "replay", "report"):
            result = self.box.run(command, *self.OPTIONS, "own.log")
            self.assertIn(result.returncode, (0, 1), command + result.stderr.decode())
            self.assertRegex(result.stdout.decode(), r"(4.9|5.0)(/23.4)? GiB|4,?99\d MiB", command)


class Zero(CliTest):
    def test_is_refused_where_it_means_nothing(self):
        """Every option of --help that takes a size, a time, a factor or a count, but those for which 0 has a meaning that --help tells."""
        told = {("attach", "--duration"), ("control", "--limit"), ("control", "--soft-limit")}  # "0 records nothing", "0: no limit"
        numbered = {"simulate --seed", "agent --seed", "holders --gpu", "doctor --gpu", "wait --gpu", "fit --gpu"}  # numbers that start at 0
        numbered |= {"test --limit"}  # a limit of growth: nothing may grow
        tried = 0
        names = re.findall(r"^  ([a-z]+) {2,}", self.help().split("Commands:")[-1], re.M)
        for name in names:
            verbs = re.findall(r"^  ([a-z]+) {2,}", self.help(name).partition("Subcommands:")[2], re.M)
            for command in [[name, verb] for verb in verbs] or [[name]]:
                for option in re.findall(r"^  (--[a-z-]+) (?:SIZE|DURATION|FACTOR|N|NUMBER|TIME|P|SIZE/ITER) ", self.help(*command), re.M):
                    known = (" ".join(command), option)
                    if known in told or " ".join(known) in numbered or option in ("--from", "--to", "--since", "--until", "--start", "--device", "--last-checkpoint"):
                        continue
                    with self.subTest(known):
                        result = self.box.run(*command, option, "0")
                        self.assertEqual(result.returncode, 2)
                        self.assertRegex(result.stderr.decode(), f"{option}: (must be greater than zero|'0' (is not a (whole )?number|has no unit|is not valid: give a number greater))")
                        tried += 1
        self.assertGreater(tried, 20)

    def help(self, *command):
        return self.box.run(*command, "--help").stdout.decode()


class Pipes(CliTest):
    def test_a_stream_that_turns_out_to_be_in_another_order_is_not_judged(self):
        header, *rows = leak_log(mib_per_min=10, minutes=500).splitlines(keepends=True)
        moved = header + "".join(rows[:4500] + rows[5200:] + rows[4500:5200])  # far beyond the part that is read first
        for command in ("analyze", "report"):
            result = self.box.run(command, "--timezone", "UTC", "-", stdin=moved)
            self.assertEqual((result.returncode, result.stdout), (2, b""), command)
            self.assertIn(b"the rows are not in order of time", result.stderr)
            self.assertNotIn(b"the samples before that", result.stderr)

    def test_a_reader_that_goes_away_is_no_error(self):
        self.box.write("leak.csv", leak_log())
        read, write = os.pipe()
        os.close(read)
        result = subprocess.run([self.box.binary, "config", "show"], cwd=self.box.work, env=self.box.environment(),
                                stdout=write, stderr=subprocess.PIPE, check=False)
        os.close(write)
        self.assertEqual(result.stderr, b"")
        self.assertEqual(result.returncode, 0)

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([self.box.binary, "config", "show"], env=self.box.environment(), stdout=full,
                                    stderr=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"cannot write the output", result.stderr)

    def test_colour_on_a_terminal_only_and_never_with_no_color(self):
        self.box.write("leak.csv", leak_log())
        self.assertIn(b"\033[1;31m", self.box.on_terminal("analyze", *TREND, "leak.csv"))
        self.assertNotIn(b"\033[", self.box.on_terminal("analyze", *TREND, "leak.csv", env={"NO_COLOR": "1"}))
        self.assertNotIn(b"\033[", self.box.run("analyze", *TREND, "leak.csv").stdout)

    def test_a_paced_simulation_draws_in_place_on_a_terminal(self):
        shown = self.box.on_terminal("simulate", *TREND, "leaking_training", "--within", "1s")
        self.assertRegex(shown, rb"\033\[\d+A\r\033\[J")
        self.assertIn(b"ran out of memory", shown)
        self.assertIn(b"predicted", shown)


class Watch(CliTest):
    def interrupted(self, sig):
        watch = self.box.start("watch", "--interval", "0.1s", *drm_machine())
        first = watch.stdout.readline()
        watch.send_signal(sig)
        out, err = watch.communicate(timeout=60)
        return watch.returncode, first + out, err

    def test_signals_end_it_with_a_summary_and_nothing_lost(self):
        for sig in (signal.SIGINT, signal.SIGTERM):
            code, out, err = self.interrupted(sig)
            self.assertEqual(code, 0, err)
            self.assertIn(b"watched ", out)
            self.assertIn(b"recorded into ", out)
        replayed = self.run_ok("replay").stdout.decode()
        self.assertIn("AMD Radeon PRO W7900", replayed)

    def test_what_was_recorded_is_replayed(self):
        watched = self.run_ok("watch", "--interval", "0.1s", "--duration", "1s", *drm_machine()).stdout.decode()
        replayed = self.run_ok("replay").stdout.decode()
        samples = [int(text.split(" samples")[0].split()[-1]) for text in (watched, replayed)]
        self.assertEqual(samples[0], samples[1])

    def test_what_was_recorded_is_analysed(self):
        self.run_ok("watch", "--interval", "0.1s", "--duration", "1s", *drm_machine())
        store = str(self.box.path / "home/.local/state/vramtrack/vramtrack.db")
        row = lines_of(self.run_ok("analyze", "--format", "json", store).stdout)[0]
        self.assertEqual(row["files"], [store])
        refused = self.run_ok("analyze", store, "x.csv", exit_code=2).stderr
        self.assertIn(b"a store", refused)

    @NEEDS_FAKE
    def test_replay_raises_the_alerts_that_live_raised(self):
        self.box.write("nvml.txt", "gpu 0 uuid=GPU-0 name=Fake pci=00000000:1D:00.0 total=1280M used=1G\n"
                                   "process gpu=0 pid=self list=C used=1G+8M\n")
        settings = [*TREND, "--json"]
        for setting in ("minimum-duration-minutes=0", "minimum-samples=10"):
            settings += ["--set", setting]
        watched = self.run_ok("watch", *settings, "--interval", "0.1s", "--every", "1h", "--duration", "3s", "--source", "nvml",
                              "--set", "sources.nvml-library=" + os.environ["VRAMTRACK_FAKE_LIBRARY"],
                              env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})
        live, again = (sorted((r["series"]["metric"], r["event"], json.dumps(r["alert"])) for r in lines_of(result.stdout)
                              if r["schema"] == "vramtrack.alert.v1") for result in (watched, self.run_ok("replay", *settings, exit_code=1)))
        self.assertEqual({a[0] for a in live}, {"device_used", "process_used"})
        self.assertEqual(live, again)

    def fake_nvml(self, scenario, *args):
        self.box.write("nvml.txt", "gpu 0 uuid=GPU-0 name=Fake pci=00000000:1D:00.0 total=80G used=1G\n" + scenario)
        return self.run_ok("watch", "--interval", "0.1s", "--source", "nvml", *args, "--set",
                           "sources.nvml-library=" + os.environ["VRAMTRACK_FAKE_LIBRARY"],
                           env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")})

    @NEEDS_FAKE
    def test_each_warning_is_told_once_whenever_it_comes(self):
        # The sources rebuild their warnings: the second one is added before the first, or replaces it.
        err = self.fake_nvml("process gpu=0 pid=4000000 list=C used=1G\n"
                             "process gpu=0 pid=4000001 list=C used=1G from=12\n"
                             "error call=memory gpu=0 code=3 from=4 to=8\n"
                             "error call=memory_v2 gpu=0 code=3 from=4 to=8\n", "--duration", "2s", "--no-record").stderr
        self.assertEqual(err.count(b"does not report the memory in use"), 1, err)
        self.assertEqual(err.count(b"1 process that"), 1, err)

    @NEEDS_FAKE
    def test_watches_in_one_store_are_replayed_one_by_one(self):
        pids = []
        for _ in range(2):
            rows = lines_of(self.fake_nvml("process gpu=0 pid=self list=C used=1G\n", "--json", "--no-experience", "--duration", "0.5s").stdout)
            pids += {r["series"]["pid"] for r in rows if r["series"]["pid"]}
        self.assertEqual(len(pids), 2)
        replayed = self.run_ok("replay")
        first, second = replayed.stdout.decode().split("a new recording starts here")
        self.assertIn(f"pid {pids[0]}", first)
        self.assertNotIn(f"pid {pids[0]}", second)
        self.assertIn(f"pid {pids[1]}", second)
        rows = lines_of(self.run_ok("replay", "--json").stdout)
        self.assertEqual([r["event"] for r in rows if r["schema"] == "vramtrack.event.v1"], ["watch_started"])
        ends = [r["samples"] for r in rows if r["schema"] == "vramtrack.analysis.v1"
                and r["series"]["metric"] != "device_unattributed"]  # which is derived from the others
        counted = re.search(r"(\d+) samples, no alert", second)
        self.assertGreaterEqual(int(counted[1]), sum(ends), second)  # facts other than memory are samples, too
        # The later watch has no data from the earlier one; the earlier one's results are reported all the same.
        store = str(self.box.path / "home/.local/state/vramtrack/vramtrack.db")
        analysed = lines_of(self.run_ok("analyze", "--format", "json", store).stdout)
        self.assertEqual([r["samples"] for r in analysed if r["series"]["metric"] == "device_used"],
                         [r["samples"] for r in rows if r["schema"] == "vramtrack.analysis.v1" and r["series"]["metric"] == "device_used"][-1:])
        self.assertEqual({r["series"]["pid"] for r in analysed if r["series"]["pid"]}, set(pids))

    def test_a_start_while_the_clock_is_wrong_keeps_the_history_and_its_times(self):
        ahead_s = 50 * 365 * 86400
        self.assertTrue(os.environ.get("VRAMTRACK_MOVED_CLOCK"), "VRAMTRACK_MOVED_CLOCK names no library")
        options = ("watch", "--interval", "0.1s", "--duration", "1s", *drm_machine())
        for shift_s in (0, ahead_s, -ahead_s, 0):
            env = {"LD_PRELOAD": os.environ["VRAMTRACK_MOVED_CLOCK"], "CLOCK_AHEAD_S": str(shift_s + int(os.environ.get("CLOCK_AHEAD_S", "0")))}
            self.run_ok(*options, env=env)
        store = sqlite3.connect(self.box.path / "home/.local/state/vramtrack/vramtrack.db")
        first_ns, last_ns = store.execute("SELECT min(t_min_ns), max(t_max_ns) FROM (SELECT t_min_ns, t_max_ns FROM journal UNION ALL "
                                          "SELECT t_min_ns, t_max_ns FROM chunk)").fetchone()
        self.assertLess(last_ns - first_ns, 600e9, "all four watches took seconds")
        told = [text for (text,) in store.execute("SELECT text FROM event WHERE kind='note' ORDER BY id")]
        self.assertEqual([text.split(" by ")[0] for text in told], ["the clock was set forward", "the clock was set back", "the clock was corrected"])

    def test_json_ends_with_the_last_status(self):
        rows = lines_of(self.run_ok("watch", "--json", "--interval", "0.1s", "--every", "1h", "--duration", "0.5s", *drm_machine()).stdout)
        counts = {}
        for row in rows:
            counts.setdefault((row["series"]["device"], row["series"]["pid"], row["series"]["metric"]), []).append(row["samples"])
        for seen in counts.values():
            # At 0 and at 0.5 s, the duration itself; a busy machine skips polls in between, and none follows.
            self.assertEqual((seen[0], len(seen)), (1, 2))
            self.assertTrue(2 <= seen[1] <= 6, seen)

    def test_no_record_leaves_no_store(self):
        self.run_ok("watch", "--once", "--no-record", *drm_machine())
        self.assertFalse((self.box.path / "home/.local").exists())

    def test_a_second_writer_watches_without_recording(self):
        first = self.box.start("watch", "--interval", "0.1s", *drm_machine())
        first.stdout.readline()
        second = self.run_ok("watch", "--once", *drm_machine())
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)
        self.assertIn(b"not recording", second.stderr)
        self.assertIn(str(first.pid).encode(), second.stderr)

    def test_no_gpu_is_one_line(self):
        result = self.run_ok("watch", *no_gpu(), exit_code=2)
        self.assertEqual(result.stderr.count(b"\n"), 1)
        self.assertEqual(result.stdout, b"")


class Simulate(CliTest):
    def test_its_log_analysed_says_the_same(self):
        simulated = lines_of(self.run_ok("simulate", *TREND, "--json", "--csv", "gpu.csv", "--process-csv", "apps.csv").stdout)
        raised = [r for r in simulated if r["schema"] == "vramtrack.alert.v1" and r["event"] == "raised"
                  and r["series"]["metric"] == "device_used"]
        row = lines_of(self.run_ok("analyze", *TREND, "--timezone", "UTC", "--format", "json", "gpu.csv", "apps.csv", exit_code=1).stdout)[0]
        self.assertEqual(row["alerts"][0]["pattern"], raised[0]["alert"]["pattern"])
        self.assertAlmostEqual(row["alerts"][0]["raised_s"], raised[0]["alert"]["raised_s"], delta=30)

    def test_the_seed_decides_everything(self):
        one, again, other = (self.run_ok("simulate", *TREND, "--seed", seed, "--csv", "s.csv") and
                             (self.box.work / "s.csv").read_text() for seed in ("1", "1", "2"))
        self.assertEqual(one, again)
        self.assertNotEqual(one, other)

    def test_every_builtin_runs(self):
        for line in self.run_ok("simulate", "--list").stdout.decode().splitlines():
            self.run_ok("simulate", *TREND, line.split()[0])

    def test_watch_or_simulate_heeds_once_and_duration(self):
        once = self.run_ok("watch", "--or-simulate", "--once", *no_gpu()).stdout.decode()
        self.assertEqual(once.count("GPU 0 NVIDIA"), 1, once)
        self.assertNotIn("simulated 1h", once)
        self.assertEqual(len(lines_of(self.run_ok("watch", "--or-simulate", "--once", "--json", *no_gpu()).stdout)), 4)
        # A simulation as fast as possible takes longer than this, however fast the machine. How far it gets depends on the
        # machine, down to "4.8s" on a busy one; it never reaches the end.
        ended = self.run_ok("watch", "--or-simulate", "--duration", "1ms", *no_gpu()).stdout.decode()
        self.assertRegex(ended, r"simulated ([0-9.]+[smh] ?)+\(\d+ samples?\)")
        self.assertNotIn("simulated 2h", ended)

    def test_a_simulation_names_the_options_that_it_ignores(self):
        for options, named in (([], None), (["--every", "1s"], "--every does"), (["--interval", "1s", "--every", "1s"], "--interval and --every do")):
            shown = self.run_ok("watch", "--or-simulate", "--once", *options, *no_gpu()).stdout.decode()
            self.assertEqual(re.findall(r"own pace: (.*) not\s+change it", shown), [named] if named else [])

    def test_an_interrupt_ends_it_with_a_summary(self):
        run = self.box.start("simulate", "--speed", "1")
        run.stdout.readline()
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, err)


class Doctor(CliTest):
    def doctor(self, *args):
        return self.box.run("doctor", *args).stdout.decode()

    def test_what_an_nvidia_machine_lacks_of_others_is_no_alarm(self):
        self.box.write("sys/module/nvidia/version", "550.1\n")
        self.assertRegex(self.doctor("--set", "sources.sys-root=sys"), "note     drm")
        self.assertRegex(self.doctor("--set", "sources.sys-root=no-sys", "--set", "sources.enabled=drm"), "missing  drm")

    def test_a_container_is_told_in_one_statement(self):
        self.box.write("proc/self/stat", "")
        self.box.write("proc/self/mounts", "")
        ns = self.box.work / "proc/self/ns"
        ns.mkdir()
        (ns / "pid").symlink_to("pid:[4026532999]")
        inside = self.doctor("--set", "sources.proc-root=proc")
        self.assertRegex(inside, r"processes +.*(those outside it are not|those outside this container are not visible)\n")
        self.assertNotIn("processes of this system", inside)
        (ns / "pid").unlink()
        (ns / "pid").symlink_to("pid:[4026531836]")  # as on the host, and with --pid=host
        self.assertNotIn("this container", self.doctor("--set", "sources.proc-root=proc"))


class Config(CliTest):
    def test_variables_that_are_no_setting_are_told(self):
        told = {"VRAMTRACK_DETECTOR": "VRAMTRACK_DETECTION_DETECTOR", "VRAMTRACK_INTERVAL_SECOND": "VRAMTRACK_WATCH_INTERVAL_SECONDS",
                "VRAMTRACK_DETECTIN_LEAK_PRIOR": "VRAMTRACK_DETECTION_LEAK_PRIOR"}
        err = self.run_ok("config", "show", env={**dict.fromkeys(told, "x"), "VRAMTRACK_FAKE_NVML": "x", "VRAMTRACK_SETUP": "x",
                                                 "VRAMTRACK_PROBE_DIR": "x", "VRAMTRACK_MARK_PIPE": "x",
                                                 "VRAMTRACK_WATCH_RECORD": "false"}).stderr.decode()
        self.assertEqual(sorted(err.splitlines()), sorted(
            f"vramtrack: environment variable {name} is not a setting and is ignored; the nearest is {nearest}"
            for name, nearest in told.items()))

    def test_init_writes_a_file_that_is_read_and_changes_nothing(self):
        before = self.run_ok("config", "show").stdout.decode().splitlines()[1:]
        self.run_ok("config", "init")
        self.assertEqual(self.run_ok("config", "show").stdout.decode().splitlines()[1:], before)
        self.run_ok("config", "init", exit_code=2)
        self.run_ok("config", "init", "--force")

    def test_xdg_config_home_is_honoured(self):
        folder = self.box.path / "xdg"
        self.run_ok("config", "init", env={"XDG_CONFIG_HOME": str(folder)})
        self.assertTrue((folder / "vramtrack/config.toml").exists())


if __name__ == "__main__":
    unittest.main(verbosity=1)
