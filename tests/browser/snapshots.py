"""Writes snapshots into the folder named: a training run that leaks until it runs out of memory, with epochs (leak.pickle); an allocator full
of gaps (gaps.pickle); a leak that fills the device (full.pickle); one without events (bare.pickle)."""
import os
import pathlib
import pickle
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
os.chdir(sys.argv[1])

from recorder import FORWARD, MIB, NATIVE, RUN, Recorder, leaking
r = leaking(300, oom=990 * MIB)
s = r.snapshot(ring=100_000)
first, last = r.trace[0]["time_us"], r.time_us
s["external_annotations"] = [{"device": 0, "time_us": first + (last - first) * i // 6, "name": f"epoch {i}", "stage": "START"} for i in range(6)]
pickle.dump(s, open("leak.pickle", "wb"))
random.seed(7)
r, held = Recorder(), []
for i in range(2000):
    if len(held) < 300 and (random.random() < 0.6 or not held):
        held.append(r.allocate(random.randint(1, 2 * MIB), [NATIVE, {"name": f"f{i % 40}", "filename": "/home/me/project/model.py", "line": i % 40 + 1}, RUN]))
    else:
        r.free(held.pop(random.randrange(len(held))))
for _ in range(150):
    r.free(held.pop(random.randrange(len(held))))
pickle.dump(r.snapshot(ring=100_000), open("gaps.pickle", "wb"))
pickle.dump(leaking(440, keep=2 * MIB - 512, oom=200 * MIB).snapshot(ring=100_000), open("full.pickle", "wb"))
bare = leaking(20).snapshot()
bare["device_traces"] = [[]]
pickle.dump(bare, open("bare.pickle", "wb"))
