"""The real `vramtrack top` in a real terminal: tmux runs it, presses its keys and reads its screen."""
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from sandbox import Sandbox, leak_log, no_gpu
from terminal import Terminal

BINARY = sys.argv.pop(1)
NEEDS_FAKE = unittest.skipUnless(os.environ.get("VRAMTRACK_FAKE_LIBRARY"), "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Top(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def open(self, *args, **kwargs):
        terminal = Terminal(self.box, *args, **kwargs)
        self.addCleanup(terminal.close)
        return terminal

    def test_a_leak_is_seen_and_explained_and_the_terminal_given_back(self):
        top = self.open("--scenario", "leaking_training", "--speed", "256", "--no-agent")
        top.wait_for(r"SIMULATION")
        top.press("n")  # to the first alert, wherever the detector raises it
        overview = top.wait_for(r"paused[\s\S]*(CRITICAL|WARNING), out of memory in[\s\S]*2 processes .* driver = .* used"
                                r"[\s\S]*4242 ada +PyTorch .*(CRITICAL|WARNING)")
        eta = re.search(r"out of memory in (\d+h \d\dm)", overview)[1]
        top.press("P")
        top.wait_for(r"because[\s\S]*suspect +pid 4242 python train.py", f"out of memory in {eta}", r"R² 0\.\d+, probability of a leak \d+ %")
        top.press("d")
        top.wait_for(r"memory +2 processes")
        top.press("A")
        top.wait_for(r"RAISED +SEVERITY")
        top.press("a")
        top.wait_for(r"acknowledged until this program ends")
        top.press("?")
        top.wait_for(r"Keys and words")
        top.press("Escape")
        top.press("q")
        self.assertNotIn("GPU 0", top.wait_for(r"exit=0"))

    def test_any_size_and_a_clear_message_below_the_least(self):
        top = self.open("--scenario", "healthy_training", "--no-agent", size=(120, 40))
        top.wait_for(r"GPU 0")
        top.resize(60, 15)
        self.assertNotIn("GPU 0", top.wait_for(r"vramtrack top needs 60x16; this is 60x15"))
        top.resize(200, 50)
        top.wait_for(r"GPU 0[\s\S]*q quit")
        top.press("C-c")  # an interrupt ends it cleanly, too
        top.wait_for(r"exit=0")

    def test_no_color_is_kept(self):
        colours = re.compile(r"\033\[[0-9;]*(3[0-7]|38;5;\d+|9[0-7])m")
        coloured = self.open("--scenario", "leaking_training", "--speed", "512", "--no-agent")
        coloured.wait_for(r"GPU 0")
        self.assertRegex(coloured.screen("-e"), colours)
        coloured.close()
        plain = self.open("--scenario", "leaking_training", "--speed", "512", "--no-agent", env={"NO_COLOR": "1"})
        plain.wait_for(r"GPU 0")
        self.assertNotRegex(plain.screen("-e"), colours)
        plain.press("t")
        plain.wait_for(r"NO_COLOR is set")

    def test_a_log_is_replayed_to_its_next_alert(self):
        self.box.write("leak.csv", leak_log())
        top = self.open("--replay", "leak.csv", "--timezone", "UTC", "--detector", "linear_trend")
        top.wait_for(r"REPLAY")
        top.press("n")
        top.wait_for(r"paused[\s\S]*(CRITICAL|WARNING|LEAK), out of memory in")
        top.press("k")
        top.wait_for(r"choose a process")
        top.press("q")
        top.wait_for(r"exit=0")  # nobody knows what the verdict on the rest would have been

    def test_a_log_of_ones_own_is_replayed_with_the_options_of_analyze(self):
        self.box.write("own.log", "".join(f"vram={2000 + 5 * i} of 24000\n" for i in range(600)))
        top = self.open("--replay", "own.log", "--line-pattern", r"vram=(?<used>\d+) of (?<total>\d+)", "--unit", "MiB", "--interval", "10s",
                        "--start", "2026-01-05T08:00", "--timezone", "UTC", "--speed", "65536")
        top.wait_for(r"REPLAY .*at the end[\s\S]*23\.4 GiB")

    def test_a_log_that_counts_steps_shows_no_time(self):
        self.box.write("steps.csv", "step,memory.used [MiB]\n" + "".join(f"{10 * i},{4000 + 37 * i}\n" for i in range(400)))
        top = self.open("--replay", "steps.csv", "--capacity", "24GiB", "--speed", "65536", size=(100, 40))
        seen = [top.wait_for(r"at the end  step 3,990[\s\S]*\+3\.70 MiB/step[\s\S]*0 steps [\s\S]*now +[\d,]+ steps", r"WARNING, out of memory in [\d,]+ steps")]
        for key, shown in (("P", r"save the work within [\d,]+ steps"), ("d", r"400 samples, every 10 steps"),
                           ("A", r"step 2,7\d0 +WARNING"), ("?", r"a leak; memory runs out within 600 steps")):
            top.press(key)
            seen.append(top.wait_for(shown))
        for screen in seen[:-1]:
            self.assertNotRegex(screen, r"/min|\d+[hm] |\d\d:\d\d|\d x\b")

    def test_a_log_of_an_allocator_alone_has_a_verdict(self):
        self.box.write("alone.log", "".join(f"step {i}: allocated {3100 + 40 * i} MiB reserved {4100 + 40 * i} MiB\n" for i in range(240)))
        top = self.open("--replay", "alone.log", "--speed", "65536")
        top.wait_for(r"at the end[\s\S]*GPU 0 \[allocated to tensors\] +LEAK[\s\S]*12\.\d GiB")
        top.press("q")
        top.wait_for(r"exit=1")  # like analyze

    def test_without_a_terminal_it_says_so(self):
        result = self.box.run("top", "--scenario", "leaking_training", "--no-agent")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr.decode(), "not a terminal; 'vramtrack watch'")

    def test_without_a_gpu_it_says_so(self):
        result = self.box.run("top", "--no-agent", *no_gpu())
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr.decode(), "no GPU to watch: .*'vramtrack top --or-simulate'")

    def test_unknown_theme(self):
        result = self.box.run("top", "--theme", "pink")
        self.assertEqual(result.returncode, 2)
        self.assertIn("unknown theme 'pink'", result.stderr.decode())

    def test_filters_leave_what_they_name_and_say_what_is_not_there(self):
        result = self.box.run("top", "--no-agent", "--user", "nobody-of-that-name", *no_gpu())
        self.assertEqual(result.returncode, 2)
        self.assertIn("'nobody-of-that-name'", result.stderr.decode())
        self.assertEqual(self.box.run("top", "--pid", "many").returncode, 2)
        one = self.open("--scenario", "leaking_training", "--speed", "16", "--no-agent", "--pid", "4242")
        screen = one.wait_for(r"pid 4242$[\s\S]*4242 ada")
        self.assertNotIn("vllm serve", screen)
        one.close()
        none = self.open("--scenario", "leaking_training", "--no-agent", "--gpu", "7")
        none.wait_for(r"no GPU is named 7; there are: GPU 0")

    def test_the_mouse_selects_opens_and_is_given_back(self):
        top = self.open("--scenario", "leaking_training", "--speed", "32", "--no-agent", size=(120, 40))
        top.wait_for(r"2000 serve.* 10\.\d GiB")
        top.press("Space")  # after an hour of the scenario, the processes change places
        screen = top.wait_for(r"paused[\s\S]*2000 serve").splitlines()
        row = next(i for i, line in enumerate(screen) if "2000 serve" in line)
        at = chr(33 + 10) + chr(33 + row)
        click = f"\033[M {at}\033[M#{at}"  # pressed and released
        top.type(click)
        top.wait_for(r"^> +2000 serve")
        # Two presses are a double click only within half a second, which a busy machine may exceed: click again, as a person would.
        top.wait_for(r"pid 2000 vllm serve[\s\S]*process +10\.\d GiB", type_meanwhile=click + click)
        top.press("Escape", "m")
        top.wait_for(r"the mouse belongs to the terminal again")

    # --- live, on the fake driver --------------------------------------------------------------------------

    def live(self, pid, *args, gauges="", load=""):
        """Watches a fake GPU on which the process with that pid leaks 8 MiB a poll, and no other process is."""
        self.box.write("scenario.txt", 'gpu 0 uuid=GPU-11111111-0000-0000-0000-000000000000 name="Fake H200" '
                       f"pci=00000000:1D:00.0 total=80G used=600M {gauges}\nprocess gpu=0 pid={pid} used=2G+8M {load}\n")
        return self.open("--no-agent", "--interval", "0.1s", "--detector", "linear_trend",
                         "--set", "minimum-duration-minutes=0", "--set", "sources.enabled=nvml",
                         "--set", f"sources.nvml-library={os.environ['VRAMTRACK_FAKE_LIBRARY']}", *args,
                         size=(120, 50), env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "scenario.txt")})

    def victim(self):
        process = subprocess.Popen(["sleep", "600"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    @NEEDS_FAKE
    def test_a_signal_goes_to_the_process_that_was_shown_after_a_question(self):
        victim = self.victim()
        top = self.live(victim.pid)
        top.wait_for(rf"\b{victim.pid}\b.*sleep 600")
        top.press("Down", "k")
        # Press nothing more unless the question names this test's own process.
        top.wait_for(r"Send a signal", rf"pid +{victim.pid}\b", r"command +sleep 600", r"user +\S+",
                     r"started +\d\d:\d\d:\d\d UTC|started +\d\d-\d\d \d\d:\d\d UTC")
        top.press("Escape")
        top.wait_for(r"nothing was sent")
        self.assertIsNone(victim.poll())
        top.press("k", "Down")
        top.wait_for(rf"send TERM to {victim.pid}\b")
        top.press("y")
        top.wait_for(rf"SIGTERM sent to pid {victim.pid}")
        self.assertEqual(victim.wait(timeout=30), -signal.SIGTERM)

    @NEEDS_FAKE
    def test_the_gauges_of_the_driver_and_a_dash_for_what_it_does_not_tell(self):
        victim = self.victim()
        top = self.live(victim.pid, gauges="util=87 memutil=41 temp=64 power=312000 power_limit=700000", load="sm=42")
        top.wait_for(r"87 % busy +64 °C +312/700 W +fan -")
        # What the process does on the GPU, and what it uses on its host according to /proc: it is asleep and has some pages.
        top.wait_for(rf"{victim.pid} .* 42 +0 +\d+ MiB .*sleep 600")

    @NEEDS_FAKE
    def test_read_only_never_signals(self):
        victim = self.victim()
        top = self.live(victim.pid, "--read-only")
        top.wait_for(rf"\b{victim.pid}\b.*sleep 600")
        top.press("Down", "k")
        top.wait_for(r"signals are off")

    @NEEDS_FAKE
    def test_init_is_not_even_asked_about(self):
        top = self.live(1)
        top.wait_for(r"^ +1 root")
        top.press("Down", "k")
        self.assertNotIn("Send a signal", top.wait_for(r"pid 1 runs this machine"))

    @NEEDS_FAKE
    def test_what_was_recorded_is_history_and_an_acknowledged_alert_stays_so(self):
        victim = self.victim()
        top = self.live(victim.pid)
        top.wait_for(r"GPU 0 leaks")
        top.press("A")
        top.wait_for(r"CRITICAL +active")
        top.press("Home", "a")
        top.wait_for(r"\d acknowledged|acknowledged  |> .*acknowledged")
        top.press("q")
        top.wait_for(r"exit=0")
        top.close()
        store = self.box.path / "home/.local/state/vramtrack/vramtrack.db"
        again = self.open("--replay", str(store), "--detector", "linear_trend", "--set", "minimum-duration-minutes=0")
        again.wait_for(r"REPLAY")
        again.press("n", "A")
        again.wait_for(r"(CRITICAL|WARNING|LEAK) +acknowledged")
        again.close()
        live = self.live(victim.pid, "--set", "watch.experience=false")
        live.wait_for(r"GPU 0 Fake H200")
        live.press("d")
        live.wait_for(r"recorded since (\d\d:\d\d:\d\d|\d\d-\d\d \d\d:\d\d)")  # a time from yesterday is shown with its date
        live.press("A")
        live.wait_for(r"withdrawn")  # the alert of the previous watch


if __name__ == "__main__":
    unittest.main(verbosity=1)
