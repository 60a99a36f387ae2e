"""Earlier runs of a program, from outside: in recordings, in the store of a watch, and as `programs` shows them.

    python3 tests/cli/experience.py build/release/vramtrack
"""
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "agent"))
from running import Agent, until  # noqa: E402
from sandbox import FIXTURES, MIB, Sandbox, drm_machine, expect_golden, no_gpu  # noqa: E402
from trace_writer import Trace  # noqa: E402

BINARY = sys.argv.pop(1)


def scenario(command, shape, hours, name="python", user="ada"):
    """A program that runs for two hours, again and again."""
    return (f'name = "runs"\nperiod_s = 10\nduration_s = "{hours}h"\nstart = 2026-01-05T08:00:00Z\n'
            f'[[device]]\nname = "NVIDIA A10"\ncapacity_bytes = "24GiB"\nbaseline_bytes = "260MiB"\n'
            f'[[process]]\nname = "{name}"\npid = 4242\ncommand = "{command}"\nuser = "{user}"\nlifetime_s = "2h"\nrestart_after_s = 60\n'
            f'  [[process.shape]]\n  kind = "constant"\n  bytes = "1GiB"\n{shape}')


# Grows straight for an hour: the first time, it cannot be distinguished from a leak.
RAMP = '  [[process.shape]]\n  kind = "warm_up"\n  bytes = "18GiB"\n  over_s = "1h"\n  form = "linear"\n'


class Experience(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def record(self, name, command, shape=RAMP, hours=2):
        """Logs of devices and processes, as analyze takes them."""
        self.box.write(name + ".toml", scenario(command, shape, hours))
        made = self.box.run("simulate", name + ".toml", "--csv", name + ".csv", "--process-csv", name + "_apps.csv")
        self.assertEqual(made.returncode, 0, made.stderr)
        return [name + ".csv", name + "_apps.csv"]

    def analyze(self, files, history=()):
        options = [word for file in history for word in ("--history", file)]
        result = self.box.run("analyze", "--timezone", "UTC", "--format", "json", *options, *files)
        self.assertEqual(result.stderr, b"")
        return result.returncode, [json.loads(line) for line in result.stdout.splitlines()]

    def test_a_warm_up_like_those_of_earlier_recordings_raises_no_alert(self):
        today = self.record("today", "python train.py --output /runs/4")
        monday = self.record("monday", "python train.py --output /runs/1", hours=7)
        _, alone = self.analyze(today)
        self.assertTrue(any(line["alerts"] for line in alone), "the ramp must be one that alarms")
        code, known = self.analyze(today, monday)
        self.assertEqual(code, 0)
        self.assertEqual([line["alerts"] for line in known], [[] for _ in known])
        self.assertRegex(json.dumps(known), r"settled at 19\.0 GiB after 60 min")

    def test_the_same_analysis_gives_the_same_result(self):
        today = self.record("today", "python train.py")
        monday = self.record("monday", "python train.py", hours=7)
        self.assertEqual(self.analyze(today, monday), self.analyze(today, monday))

    def test_another_program_is_a_stranger(self):
        today = self.record("today", "python train.py --batch-size 64")
        monday = self.record("monday", "python train.py --batch-size 32", hours=7)
        devices_only = [today[1]]
        self.assertEqual(devices_only, ["today_apps.csv"])
        _, alone = self.analyze(today)
        _, known = self.analyze(today, monday)
        alerts = [[a["raised"] for a in line["alerts"]] for line in alone]
        self.assertEqual([[a["raised"] for a in line["alerts"]] for line in known], alerts)

    def test_runs_of_a_device_without_processes_count_too(self):
        today = self.record("today", "python train.py")
        monday = self.record("monday", "python train.py", hours=7)
        _, alone = self.analyze(today[:1])
        self.assertTrue(alone[0]["alerts"])
        _, known = self.analyze(today[:1], monday[:1])
        self.assertEqual(known[0]["alerts"], [])

    def test_a_history_that_cannot_be_read_is_an_error(self):
        today = self.record("today", "python train.py")
        result = self.box.run("analyze", "--history", "missing.csv", *today)
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"cannot read --history", result.stderr)
        self.assertIn(b"missing.csv", result.stderr)

    def programs(self, store, *options):
        result = self.box.run("programs", "--store", store, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode()

    def test_a_watch_remembers_and_programs_shows_it(self):
        self.box.write("runs.toml", scenario("python train.py --api-key hunter2", RAMP, 9))
        store = str(self.box.work / "s.db")
        with Agent(self.box, "--scenario", "runs.toml", "--speed", "3600", "--set", f"store.path={store}", simulate=False):
            until(lambda: pathlib.Path(store).exists() and '"runs":3' in self.programs(store, "--json"), 90, "three runs")
        line = json.loads(self.programs(store, "--json").splitlines()[0])
        self.assertEqual(line["schema"], "vramtrack.program.v1")
        self.assertEqual((line["name"], line["user"], line["leaked"]), ("python train.py", "ada", 0))
        self.assertAlmostEqual(line["recent"][-1]["settled_bytes"], 19 * 2**30, delta=2**28)
        self.assertAlmostEqual(line["recent"][-1]["warm_up_s"], 3600, delta=400)
        table = self.programs(store)
        self.assertRegex(table, r"^id .*\n[0-9a-f]{12}  python train.py +ada +3 +0 +\d+ .* 19.0 GiB.*\n$")
        self.assertNotIn("hunter2", table + json.dumps(line))
        replayed = self.box.run("replay", store)
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        self.assertEqual(self.programs(store, "--forget", line["id"][:8]), "1 program forgotten\n")
        self.assertIn("no program is known yet", self.programs(store))
        unknown = self.box.run("programs", "--store", store, "--forget", "00")
        self.assertEqual(unknown.returncode, 2)

    def test_what_a_command_needed_is_compared_with_what_is_free(self):
        own = subprocess.run(["id", "-un"], capture_output=True, check=True).stdout.decode().strip()
        self.box.write("runs.toml", scenario("python train.py --lr 1 --output /a/7", RAMP.replace("18GiB", "15GiB"), 5, user=own))
        store = str(self.box.work / "s.db")
        with Agent(self.box, "--scenario", "runs.toml", "--speed", "3600", "--set", f"store.path={store}", simulate=False):
            until(lambda: pathlib.Path(store).exists() and '"runs":2' in self.programs(store, "--json"), 90, "two runs")

        def asked(*words, machine=None):
            return self.box.run("programs", "--store", store, *(machine or drm_machine()), "--", *words)

        said = asked("python", "train.py", "--lr", "1", "--output", "/b/8")
        text = said.stdout.decode()
        self.assertEqual(said.returncode, 0)
        other = asked("python", "train.py", "--lr", "2")
        self.assertEqual(other.returncode, 2)
        alone = asked("python", "train.py", "--lr", "1", "--output", "c", machine=no_gpu())
        self.assertEqual(alone.returncode, 1)
        known = [(rf"\({own}\)", "(USER)"), (r" after [^,]*,", " after TIME,"), (r": \S+ [GM]iB short", ": AMOUNT short")]
        expect_golden(self, "programs_compared.txt", text + other.stderr.decode() + alone.stdout.decode(), known)

    def test_what_a_model_needs_is_held_against_the_runs_of_its_program(self):
        own = subprocess.run(["id", "-un"], capture_output=True, check=True).stdout.decode().strip()
        self.box.write("runs.toml", scenario("vllm serve llama", RAMP.replace("18GiB", "17GiB"), 5, name="vllm", user=own))
        config = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                  "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16", "max_position_embeddings": 131072}
        self.box.write("llama/config.json", json.dumps(config))
        store = str(self.box.work / "s.db")
        with Agent(self.box, "--scenario", "runs.toml", "--speed", "3600", "--set", f"store.path={store}", simulate=False):
            until(lambda: pathlib.Path(store).exists() and '"runs":2' in self.programs(store, "--json"), 90, "two runs")

        def fit(memory, *words, code, options=()):
            result = self.box.run("fit", "llama", "--memory", memory, "--store", store, *options, "--", *(words or ("vllm", "serve", "llama")))
            self.assertEqual(result.returncode, code, result.stdout + result.stderr)
            return result

        headers = json.loads(self.box.run("fit", "llama", "--memory", "80GiB", "--json").stdout)
        self.assertIsNone(headers["earlier_runs"])
        between = f"{(headers['need_low_bytes'] + headers['need_high_bytes']) // 2 // MIB}MiB"
        enough = f"{headers['need_high_bytes'] // MIB + 1}MiB"
        self.assertLess(headers["need_high_bytes"] + MIB, 18 * 2**30)
        # The headers predict 16 to 17 GiB, and the runs needed 18.
        said = fit("80GiB", code=0).stdout.decode()
        self.assertTrue(said.startswith("yes: "), said)
        document = json.loads(fit("80GiB", code=0, options=("--json",)).stdout)["earlier_runs"]
        self.assertEqual((document["program"], document["runs"], document["estimate"]), ("vllm", 2, "above"))
        self.assertAlmostEqual(document["most_bytes"], 18 * 2**30, delta=2**28)
        stranger = fit("80GiB", "vllm", "serve", "other", code=0)
        answers = [said, fit(enough, code=3).stdout.decode(), fit(between, code=1).stdout.decode()]
        expect_golden(self, "fit_earlier_runs.txt", "".join(answer.split("\n")[0] + "\n" for answer in answers) +
                      re.search(r"\nEarlier runs .*\n", said)[0] + stranger.stderr.decode())

    def test_the_peaks_of_traces_count(self):
        trace = Trace("python train.py --lr 1")
        site = trace.stack(("/home/me/train.py", 42, "step"))
        for block in range(3):
            trace.alloc(0x700000000000 + block * 2**32, 2**30, site)
        for block in range(3):
            trace.free(0x700000000000 + block * 2**32)
        (self.box.work / "run.trace").write_bytes(trace.bytes())

        def asked(*words, options=()):
            return self.box.run("programs", "--store", str(self.box.work / "none.db"), "--trace", "run.trace", *options, *drm_machine(), "--", *words)

        said = asked("python", "train.py", "--lr", "1")
        self.assertEqual(said.returncode, 0, said.stderr)
        expect_golden(self, "programs_traced.txt", said.stdout.decode(), [(r": \S+ [GM]iB short", ": AMOUNT short")])
        in_json = asked("python", "train.py", "--lr", "1", options=("--json",))
        line = json.loads(in_json.stdout)
        self.assertEqual((line["traced_peak_bytes"], line["runs"], in_json.returncode), ([3 * 2**30], 0, 0))
        device = line["devices"][0]
        self.assertEqual((device["index"], device["short_bytes"]), (0, 0))
        self.assertAlmostEqual(device["free_bytes"], 19 * 2**30, delta=2**28)
        for block in range(40):
            trace.alloc(0x710000000000 + block * 2**32, 2**30, site)
        (self.box.work / "run.trace").write_bytes(trace.bytes())
        too_much = asked("python", "train.py", "--lr", "1", options=("--json",))
        self.assertEqual(too_much.returncode, 1, "the JSON has the exit status of the text")
        device = json.loads(too_much.stdout)["devices"][0]
        self.assertEqual(device["free_bytes"] + device["short_bytes"], 40 * 2**30)
        other = asked("python", "other.py")
        self.assertEqual(other.returncode, 2)
        self.assertIn(b"run.trace: a trace of python ", other.stderr)
        alone = self.box.run("programs", "--trace", "run.trace")
        self.assertEqual(alone.returncode, 2)
        self.assertIn(b"name the command after the options", alone.stderr)

    def grow(self):
        """A machine one of whose cards uses 20 MiB more every 0.1 s: options for it."""
        shutil.copytree(FIXTURES / "sys", self.box.path / "sys", symlinks=True)
        used = self.box.path / "sys/class/drm/card0/device/mem_info_vram_used"
        level = int(used.read_text())
        over = threading.Event()

        def rise():
            nonlocal level
            while not over.wait(0.1):
                level += 20 * MIB
                part = used.with_suffix(".part")
                part.write_text(f"{level}\n")
                part.replace(used)

        grower = threading.Thread(target=rise)
        grower.start()
        self.addCleanup(grower.join)
        self.addCleanup(over.set)
        return ["--source", "drm", "--set", f"sources.sys-root={self.box.path}/sys", "--set", f"sources.proc-root={FIXTURES}/proc"]

    def test_a_watch_that_was_killed_goes_on_without_raising_again(self):
        store = str(self.box.work / "s.db")
        watch = ["watch", "--json", "--interval", "0.2s", "--every", "1s", "--detector", "linear_trend", "--set", "minimum-samples=10",
                 "--set", "minimum-duration-minutes=0.03", "--set", f"store.path={store}", "--set", "store.flush-seconds=0",
                 *self.grow()]
        first = self.box.start(*watch)
        raised = None
        for line in first.stdout:
            row = json.loads(line)
            if row["schema"] == "vramtrack.alert.v1" and row["event"] == "raised":
                raised = row["alert"]["raised"]
                break
        first.kill()
        first.wait(30)
        first.stdout.close()
        first.stderr.close()
        self.assertTrue(raised)
        with sqlite3.connect(store) as database:
            alerts = database.execute("SELECT raised_ns FROM alert ORDER BY raised_ns").fetchall()
        second = self.box.run(*watch, "--duration", "3s")
        self.assertEqual(second.returncode, 0, second.stderr)
        rows = [json.loads(line) for line in second.stdout.splitlines()]
        self.assertEqual([r for r in rows if r["schema"] == "vramtrack.alert.v1" and r["event"] == "raised"], [])
        last = [r for r in rows if r["schema"] == "vramtrack.analysis.v1" and r["alerts"]][-1]
        self.assertEqual(last["alerts"][0]["raised"], raised)
        with sqlite3.connect(store) as database:
            codes = database.execute("SELECT code FROM event WHERE kind='watch_started' ORDER BY id").fetchall()
            self.assertEqual(codes, [(2,), (3,)])
            self.assertEqual(database.execute("SELECT raised_ns FROM alert ORDER BY raised_ns").fetchall(), alerts)
        # The replay continues there, too, without another alert.
        replayed = [json.loads(line) for line in self.box.run("replay", "--json", "--detector", "linear_trend", "--set",
                                                              "minimum-samples=10", "--set", "minimum-duration-minutes=0.03",
                                                              store).stdout.splitlines()]
        self.assertEqual(len([r for r in replayed if r["schema"] == "vramtrack.alert.v1" and r["event"] == "raised"]),
                         len(alerts))

    def test_a_leak_that_was_half_decided_is_not_forgotten(self):
        store = str(self.box.work / "s.db")
        growing = self.grow()

        def watch(samples, duration, *more):
            """An alert needs this many samples."""
            run = self.box.run("watch", "--json", "--interval", "0.1s", "--every", "1h", "--detector", "linear_trend", "--set",
                               f"minimum-samples={samples}", "--set", "minimum-duration-minutes=0.01", "--set",
                               f"store.path={store}", "--set", "store.flush-seconds=0", *more, "--duration", duration, *growing)
            self.assertEqual(run.returncode, 0, run.stderr)
            return [json.loads(line) for line in run.stdout.splitlines()]

        def alerts(rows):
            return [row["event"] for row in rows if row["schema"] == "vramtrack.alert.v1"]

        first = watch(100000, "4s")
        self.assertEqual(alerts(first), [])
        seen = max(row["samples"] for row in first if row["schema"] == "vramtrack.analysis.v1")
        self.assertGreater(seen, 5)
        # A second watch alone would not have as many samples; with those of the first one it has enough at once.
        self.assertEqual(alerts(watch(seen + 3, "1s"))[:1], ["raised"])
        self.assertEqual(alerts(watch(seen + 3, "1s", "--no-experience")), [])


if __name__ == "__main__":
    unittest.main()
