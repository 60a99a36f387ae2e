"""The interpreter's end while a thread is in the library."""
import subprocess
import sys

import pytest

# Something that takes a while to end, when threads may no longer come back.
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
import time, vramtrack
class Slow(vramtrack.SimulatedDevice):
    def counters(self):
        time.sleep(%g)
        return super().counters()
watch = vramtrack.Watch(Slow(), interval_s=1e-4, check_every_s=1e-4, evidence=False).start()
time.sleep(%g)
"""


def ends(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_thread_of_the_programs_in_a_long_call():
    ends(DETECT)


def test_a_watch_in_a_look_that_is_longer_than_the_end_waits():
    ends(LATE + WATCH % (3, 0.1))


@pytest.mark.parametrize("sleep_s", [0.0, 0.013, 0.05, 0.11])
def test_a_watch_in_the_middle_of_checks(sleep_s):
    ends(WATCH % (0, sleep_s))


def test_the_watchs_thread_ends_before_the_interpreter():
    code = ("import atexit\natexit.register(lambda: print(thread.is_alive()))\n" + WATCH % (0, 0.1)
            + "thread = watch._thread\nassert thread.is_alive()\n")  # fmt: skip
    assert ends(code) == "False\n"


def test_a_watch_goes_on_while_the_jobs_threads_do():
    code = WATCH % (0, 0) + ("import threading\ndef train():\n    time.sleep(0.5)\n    print(watch._thread.is_alive())\n"
                             "threading.Thread(target=train).start()\n")  # fmt: skip
    assert ends(code) == "True\n"
