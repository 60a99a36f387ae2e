"""The interpreter's end while a thread is in the library."""
import subprocess
import sys

import pytest

# Something whose end takes a while, when threads may not come back any more.
LATE = """
import time, sys
class Late:
    def __del__(self, sleep=time.sleep):
        sleep(1.0)
late = Late()
"""
DETECT = LATE + """
import array, threading, vramtrack
n = 100_000
times, used = array.array("d", range(n)), array.array("d", [1e9]) * n
threading.Thread(target=lambda: [vramtrack.detect(times, used, 24e9) for _ in range(1000)], daemon=True).start()
time.sleep(0.1)
"""
WATCH = """
import vramtrack
from vramtrack.watch import WatchSample
watch = vramtrack.Watch(vramtrack.SimulatedDevice(), interval_s=1e-3, check_every_s=1e-3, max_samples=400000, evidence=False)
now = time.time()
watch.samples = [WatchSample(now - 200000 + i, 10**9, 10**9, 10**9, None, 24 * 2**30) for i in range(%d)]
watch.start()
time.sleep(%g)
"""


def ends(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_thread_of_the_programs_in_a_long_call():
    ends(DETECT)


def test_a_watch_in_a_check_that_is_longer_than_the_end_waits():
    ends(LATE + WATCH % (190_000, 0.3))


@pytest.mark.parametrize("sleep_s", [0.0, 0.013, 0.05, 0.11])
def test_a_watch_in_the_middle_of_checks(sleep_s):
    ends("import time\n" + WATCH % (20_000, sleep_s))


def test_the_watchs_thread_ends_before_the_interpreter():
    code = ("import atexit, time\natexit.register(lambda: print(thread.is_alive()))\n" + WATCH % (100, 0.1)
            + "thread = watch._thread\nassert thread.is_alive()\n")  # fmt: skip
    assert ends(code) == "False\n"


def test_a_watch_goes_on_while_the_jobs_threads_do():
    code = WATCH % (100, 0) + ("import threading\ndef train():\n    time.sleep(0.5)\n    print(watch._thread.is_alive())\n"
                               "threading.Thread(target=train).start()\n")  # fmt: skip
    assert ends("import time\n" + code) == "True\n"
