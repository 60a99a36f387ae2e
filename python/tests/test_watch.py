import gc
import json
import os
import pickle
import subprocess
import sys
import threading

import pytest

import vramtrack
from vramtrack import watch_sample
from vramtrack.mark_series import MarkSeries, growth_of_epochs
from vramtrack.snapshots import growing_sites

MIB, GIB = 2**20, 2**30


class Job:
    """A job on a simulated device whose time the test moves: one step a second, a sample a second."""

    def __init__(self, device, marks=True, **options):
        self.device, self.now, self.steps, self.marks = device, 1_750_000_000.0, 0, marks
        self.watch = vramtrack.Watch(device, clock=lambda: self.now, **options)

    def run(self, steps, step=None, check_every=30):
        for _ in range(steps):
            self.steps += 1
            with self.device.temporary(200 * MIB):
                pass
            if step is not None:
                step()
            self.now += 1
            if self.marks:
                self.watch.step()
            self.watch.sample()
            if self.steps % check_every == 0:
                self.watch.check()


def leaking(device, step, **options):
    """A model of 4 GiB, a quiet quarter of an hour, then 25 minutes of `step`."""
    device.allocate(4 * GIB)
    job = Job(device, **options)
    job.run(900)
    job.run(1500, step)
    return job


def leak(device, mib=8):
    def step():
        device.allocate(int(mib * MIB))  # the leaking line

    return step


def test_a_leak_with_its_growth_per_step(device):
    job = leaking(device, leak(device, 7.9))
    verdict = job.watch.verdict()
    assert verdict.leak and verdict.metric == "allocator_allocated"
    assert verdict.growth_per["step"] == pytest.approx(7.9 * MIB, rel=0.01)
    assert "+7.9 MiB per step" in str(verdict)
    assert verdict.oom_in_s is not None


def test_a_healthy_job(device):
    device.allocate(4 * GIB)
    job = Job(device)
    job.run(900)
    verdict = job.watch.verdict()
    assert not verdict.leak and verdict.growth_per == {} and job.watch.sites == []
    assert not job.watch.evidence.recording


def test_lines_are_named_and_recording_is_off_again(device):
    job = Job(device, evidence_s=20)
    recorded = []
    for _ in range(60):
        job.run(15, leak(device), check_every=15)
        recorded.append(job.watch.evidence.recording)
    assert True in recorded and not recorded[-1] and not device.recording
    assert recorded.count(True) <= 4, "only for the time of the evidence"
    site = job.watch.sites[0]
    assert site.name == "step" and site.file == __file__ and site.growth_bytes >= 20 * 8 * MIB
    assert any(f"{__file__}:{site.line}" in line for line in job.watch.advice())


def test_what_a_step_replaces_or_has_in_flight_is_not_named(device):
    """The recorder knows no line of what was allocated before it, and a check may come amid a step."""
    job = Job(device, evidence_s=20)
    buffers = [device.allocate(2 * GIB)]

    def step():
        device.free(buffers.pop())
        buffers.append(device.allocate(2 * GIB))  # replaced at each step
        in_flight = device.allocate(1 * GIB)
        if job.steps % 7 == 0:
            job.watch.check()
        device.free(in_flight)
        device.allocate(8 * MIB)  # the leaking line

    job.run(900, step, check_every=15)
    leaking_line = step.__code__.co_firstlineno + 7
    assert [site.line for site in job.watch.sites] == [leaking_line]


class Failing(vramtrack.SimulatedDevice):
    """A recorder that begins, and then has no snapshot at the given attempts."""

    def __init__(self, fails):
        super().__init__()
        self.fails, self.attempts = fails, 0

    def snapshot(self):
        self.attempts += 1
        if self.attempts in self.fails:
            raise RuntimeError("no snapshot")
        return super().snapshot()


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("attempt", [1, 2])
def test_recording_is_off_after_an_error(attempt, marked):
    device = Failing({attempt})
    job = Job(device, evidence_s=20)
    if not marked:
        job.watch.step = lambda: None
    job.run(1500, leak(device), check_every=15)
    assert job.watch.errors == ["evidence: no snapshot"]
    assert device.attempts == attempt and not device.recording and not job.watch.evidence.recording


def test_a_recorder_that_cannot_be_begun_is_left_alone(device, monkeypatch):
    tried = []
    monkeypatch.setattr(device, "start_stacks", lambda: tried.append(1) or 1 / 0)
    job = Job(device, evidence_s=20)
    job.run(1500, leak(device), check_every=15)
    assert len(tried) == 1 and job.watch.errors == ["evidence: division by zero"]


def test_rare_marks_are_not_waited_for(device):
    job = Job(device, evidence_s=20)
    step = job.watch.step
    job.watch.step = lambda: step() if job.steps % 400 == 0 else None
    job.run(2000, leak(device), check_every=15)
    assert job.watch.sites[0].name == "step"


def test_before_oom_is_looked_for_more_often_near_the_end(device):
    """Checks run every 15 s, but a checkpoint that takes 5 s must not wait for the next one."""
    job = leaking(device, leak(device), interval_s=2.0, evidence=False)
    verdict = job.watch.verdict()
    low = verdict.oom_in_s.low

    def next_check_in():
        return job.watch._callbacks.next_check_in(verdict, check_every_s=15, interval_s=2)

    assert low > 60 and next_check_in() == 15
    job.watch.before_oom(lambda verdict: None, seconds=low - 12)
    job.watch.before_oom(lambda verdict: None, seconds=1)
    assert next_check_in() == pytest.approx(6)
    job.watch._callbacks.before_oom[0].seconds = low - 0.5
    assert next_check_in() == 1, "and not at every moment"
    job.watch._callbacks.before_oom[0].was_called = True
    assert next_check_in() == 15, "it was called"


def test_the_nearer_end_is_told(device):
    """Both grow: slowly within the allocator, ten times as fast beside it."""
    def step():
        device.allocate(MIB)
        device.outside_bytes += 10 * MIB

    job = Job(device, evidence=False)
    job.run(900)
    job.run(1500, step)
    inside, outside = job.watch.verdict("allocator_allocated"), job.watch.verdict("device_used")
    assert inside.leak and outside.leak
    assert job.watch.verdict().metric == "device_used"
    other = vramtrack.SimulatedDevice()
    assert leaking(other, leak(other)).watch.verdict().metric == "allocator_allocated"


def test_before_oom_under_a_memory_fraction(device):
    """Memory ends at 8 of 24 GiB: in 1,024 s, not in 3,000."""
    device.allowed_bytes = 8 * GIB
    device.allocate(4 * GIB)
    told = []
    job = Job(device)
    job.watch.before_oom(lambda verdict: told.append(verdict), 120)
    job.run(600)
    with pytest.raises(vramtrack.SimulatedOutOfMemoryError):
        job.run(2000, leak(device, 4), check_every=15)
    (verdict,) = told
    assert verdict.metric == "allocator_allocated" and verdict.oom_in_s.low < 120


@pytest.mark.parametrize("metric, end_gib", [
    ("allocator_allocated", 8), ("allocator_reserved", 8), ("process_used", 9), ("device_used", 24),
])  # fmt: skip
def test_where_memory_ends_under_a_fraction(metric, end_gib):
    taken = vramtrack.WatchSample(0.0, 2 * GIB, 3 * GIB, 10 * GIB, 4 * GIB, 24 * GIB, 8 * GIB)
    assert watch_sample.limit_bytes(taken, metric) == end_gib * GIB
    others = taken._replace(device_used=22 * GIB)  # the fraction is more than what others leave
    assert watch_sample.limit_bytes(others, "allocator_allocated") == 5 * GIB


def test_before_oom_is_called_once(device):
    job = Job(device)
    called = []
    job.watch.before_oom(lambda verdict: called.append((job.now, verdict)), seconds=300)
    with pytest.raises(vramtrack.SimulatedOutOfMemoryError):
        job.run(5000, leak(device))
    assert len(called) == 1
    left = job.now - called[0][0]
    assert 0.5 * 300 <= left <= 3 * 300, "with time for a checkpoint, and not much too early"


def test_a_callback_that_fails_does_not_end_the_watch(device):
    job = leaking(device, leak(device), on_leak=lambda verdict: 1 / 0)
    assert job.watch.errors == ["on_leak: ZeroDivisionError: division by zero"]


def test_confirm_tells_garbage_from_a_leak(device):
    class Node:
        def __init__(self):
            self.me, self.handle = self, device.allocate(8 * MIB)

        def __del__(self):
            device.free(self.handle)

    gc.collect()
    gc.disable()
    try:
        job = leaking(device, Node, evidence=False)
        assert job.watch.verdict().leak
        verdict = job.watch.verdict(confirm=True)
        assert not verdict.leak and "persist after garbage collection" in verdict.because
    finally:
        gc.enable()
    device = vramtrack.SimulatedDevice()
    real = leaking(device, leak(device), evidence=False)
    confirmed = real.watch.verdict(confirm=True)
    assert confirmed.leak and "confirmed: " in confirmed.because
    assert device.counters().reserved - device.counters().allocated < device.SEGMENT, "the cache was emptied"


def test_confirming_growth_outside_the_allocator(device):
    """Garbage collection shows nothing about it, and the cache that it empties existed before, too. The growth since the onset is named in full."""
    def outside():
        device.outside_bytes += 8 * MIB

    device.free(device.allocate(6 * GIB))
    job = leaking(device, outside, evidence=False)
    verdict = job.watch.verdict(confirm=True)
    assert verdict.metric == "device_used" and verdict.leak
    assert "confirmed: 11.7 GiB of 11.7 GiB persist" in verdict.because and device.counters().reserved < 5 * GIB


def test_confirming_a_cache_that_grows(device):
    def step():
        sizes[0] += 8
        with device.temporary(sizes[0] * MIB):
            pass

    sizes = [1000]
    job = leaking(device, step, evidence=False)
    before = job.watch.verdict("device_used")
    assert not before.leak and before.state == "growing" and "cache or fragmentation" in before.because
    verdict = job.watch.verdict("device_used", confirm=True)
    assert not verdict.leak and "so this is not a leak" in verdict.because
    assert verdict.raw["verdict"]["leak"] is False and json.loads(verdict.to_json())["verdict"]["oom_in_s"] is None


def test_confirming_with_every_sample_amid_a_step():
    device = vramtrack.SimulatedDevice(capacity_bytes=80 * GIB)
    device.allocate(1 * GIB)
    watch = vramtrack.Watch(device, evidence=False, clock=lambda: now[0])
    now = [1_750_000_000.0]
    for n in range(2400):
        if n >= 900:
            device.allocate(8 * MIB)
        with device.temporary(30 * GIB):
            watch.sample()
        watch.step()
        now[0] += 1
    assert watch.verdict("allocator_allocated").leak
    assert watch.verdict("allocator_allocated", confirm=True).leak


def test_what_cannot_be_confirmed_stays(device, monkeypatch):
    job = leaking(device, lambda: setattr(device, "outside_bytes", device.outside_bytes + 8 * MIB), evidence=False)
    monkeypatch.setattr(device, "device_used_bytes", lambda: None)
    verdict = job.watch.verdict("device_used", confirm=True)
    assert verdict.leak and "not confirmed: device_used is not available now" in verdict.because
    with pytest.raises(ValueError, match="process_used is not available now: the source is not a CUDA device"):
        job.watch.confirm("process_used")


def test_growth_over_epochs(device):
    job = Job(device)
    job.watch.epoch()
    for grown in (300, 20, 21, 22):
        device.allocate(grown * MIB)
        job.watch.epoch()
    assert job.watch.grows_every_epoch and job.watch.epoch_growth == [300 * MIB, 20 * MIB, 21 * MIB, 22 * MIB]
    job.watch.epoch()
    assert not job.watch.grows_every_epoch
    for grown in (400_000, 1, 700_000):
        job.watch.epoch(collect=False)
        device.allocate(grown)
        job.watch.epoch()
    assert job.watch.grows_every_epoch, "positive over several"
    assert job.watch.epoch_growth[-3:] == [400_000, 1, 700_000], "after collection only"
    for _ in range(3):
        device.allocate(512)
        job.watch.epoch()
    assert not job.watch.grows_every_epoch, "of next to nothing"


def test_a_short_fit_says_how_much_grows_per_epoch_and_how_sure_that_is(device):
    job = Job(device)  # five epochs in five seconds
    job.watch.epoch()
    for grown in (300, 20, 21, 22):
        device.allocate(grown * MIB)
        job.now += 1
        job.watch.sample()
        job.watch.epoch()
    growth = job.watch.growth_per_epoch
    assert growth == (21 * MIB, 20 * MIB, 22 * MIB, 0.75, 3, 1 / 8) and growth.is_sure
    words = "memory grows by +21.0 MiB per epoch over 3 epochs (+20.0 MiB to +22.0 MiB with 75 % certainty; by chance in 1 of 8 runs)"
    verdict = job.watch.verdict()
    assert not verdict.leak and verdict.because.endswith(words), verdict.because
    assert str(growth) in job.watch.advice()[0]


def test_growth_per_epoch_is_that_of_the_sign_test():
    assert growth_of_epochs([5]) is None and growth_of_epochs([0, -1, 0]) is None
    level = growth_of_epochs([MIB] * 10)
    assert level.chance == 2**-10 and str(level) == "+1.0 MiB per epoch over 10 epochs (the same in each; by chance in 1 of 1,024 runs)"
    mixed = growth_of_epochs([-1, 5, 3, 4, -2, 6, 7, 8, 9, 10])
    # Of ten, the second smallest to the second largest: 1 - 2 * 11 / 1024. Eight or more of ten rise by chance: 56 / 1024.
    assert (mixed.low_bytes, mixed.high_bytes) == (-1, 9) and mixed.certainty == pytest.approx(1 - 22 / 1024)
    assert mixed.chance == pytest.approx(56 / 1024) and not mixed.is_sure


def test_growth_outside_the_allocator_is_seen(device):
    def outside():
        device.outside_bytes += 8 * MIB

    job = leaking(device, outside)
    assert job.watch.verdict().metric == "device_used" and job.watch.verdict().leak
    assert not job.watch.verdict("allocator_allocated").leak
    with pytest.raises(ValueError, match="expected one of allocator_allocated"):
        job.watch.verdict("vram")


def test_samples_and_marks_are_bounded(device):
    job = Job(device, max_samples=100)
    job.run(1000)
    assert len(job.watch.samples) < 100
    assert {b.time_s - a.time_s for a, b in zip(job.watch.samples, job.watch.samples[1:])} == {16.0}
    assert job.watch.verdict().samples == 1000, "a verdict rests on all samples"
    series = MarkSeries()
    for n in range(100_000):
        series.add(n, 1e9 + 3.0 * n)
    assert len(series._values) < MarkSeries.MOST and series.count == 100_000
    assert series.growth_bytes() == pytest.approx(3.0, rel=1e-6)
    assert series.growth_bytes(90_000) == pytest.approx(3.0, rel=1e-6)
    assert series.growth_bytes(99_999) is None and series.grows()


@pytest.mark.parametrize("metric", ["allocator_allocated", "allocator_reserved", "device_used"])
def test_a_watchs_verdict_is_that_of_its_samples(device, metric):
    """Marks say more than samples: that the program works, so that its growth is not a model that is loaded."""
    job = leaking(device, leak(device), evidence=False, marks=False)
    samples = job.watch.samples
    assert len(samples) == 2400
    beside = {"device_used": [s.device_used for s in samples], "allocator_allocated": [s.allocator_allocated for s in samples],
              "allocator_reserved": [s.allocator_reserved for s in samples]}  # fmt: skip
    times, used = [s.time_s for s in samples], beside.pop(metric)
    same = vramtrack.detect(times, used, 24 * GIB, metric=metric, beside=beside)
    verdict = job.watch.verdict(metric)
    # An incident has the name of its first alert, which may be of another of the figures that the watch judges.
    found, expected = (json.loads(v.to_json()) for v in (verdict, same))
    for alert in found["alerts"] + expected["alerts"]:
        alert.pop("incident")
    assert verdict.leak and (found, verdict.series) == (expected, same.series)


def test_a_verdict_costs_the_same_however_long_the_watch_lasts(device):
    """The detectors are not run again over the samples: these may be gone."""
    job = leaking(device, leak(device), evidence=False)
    verdict = job.watch.verdict("allocator_allocated")
    job.watch.samples.clear()
    assert job.watch.verdict("allocator_allocated").to_json() == verdict.to_json()


def test_a_setting_that_does_not_exist_is_refused_at_once(device):
    with pytest.raises(ValueError, match="detection.leak-priority"):
        vramtrack.Watch(device, settings={"detection.leak-priority": 1})


def test_a_clock_that_is_set_back(device):
    job = Job(device)
    job.run(60)
    job.now -= 30
    job.run(60)
    assert job.watch.verdict().samples == 120 and job.watch.errors == []


def test_the_thread_and_marks_of_the_program(device):
    got = threading.Event()
    with vramtrack.Watch(device, interval_s=0.001, check_every_s=0.002) as watch:
        vramtrack.mark("request")
        watch.request()
        watch.mark("other")
        while len(watch.samples) < 3 or watch.last_verdict is None:
            got.wait(0.001)
    assert watch._marks.series["request"].count == 2 and watch._marks.series["other"].count == 1
    vramtrack.mark("request")
    assert watch._marks.series["request"].count == 2, "a watch that has ended hears nothing"
    assert watch.errors == []


def test_evidence_of_an_out_of_memory_error(device, tmp_path):
    job = Job(device, directory=str(tmp_path / "evidence"), interval_s=1000)
    job.watch.start()
    try:
        with pytest.raises(vramtrack.SimulatedOutOfMemoryError):
            job.run(5000, leak(device))
    finally:
        job.watch.stop()
    (file,) = (tmp_path / "evidence").glob("*.json")
    document = json.loads(file.read_text())
    assert document["schema"] == "vramtrack.oom.v1" and document["asked_bytes"] == 200 * MIB or document["asked_bytes"] == 8 * MIB
    assert document["verdict"]["leak"] is True and document["sites"][0]["name"] == "step"
    assert document["growth_bytes_per"]["step"] == pytest.approx(8 * MIB, rel=0.01)
    (snapshot,) = (tmp_path / "evidence").glob("*.pickle")
    assert len(document["samples"]) == 600
    assert "step" in [site.name for site in growing_sites(vramtrack.SimulatedDevice().snapshot(), snapshot.read_bytes())]
    note = pickle.loads(snapshot.read_bytes())["vramtrack_oom"]  # what `vramtrack snapshot oom` judges where there is no trace
    assert note == {"device": 0, "asked_bytes": document["asked_bytes"], "device_free_bytes": document["device_free_bytes"],
                    "device_total_bytes": device.capacity_bytes()}  # fmt: skip


class Comparing(vramtrack.SimulatedDevice):
    """Comparing two snapshots takes until the test allows it."""

    def __init__(self):
        super().__init__()
        self.begun, self.allowed = threading.Event(), threading.Event()

    def growing_sites(self, before, after, limit=10):
        self.begun.set()
        assert self.allowed.wait(60)
        return super().growing_sites(before, after, limit)


def test_no_step_waits_while_snapshots_are_compared():
    device = Comparing()
    watch = vramtrack.Watch(device, evidence_s=0.001, clock=lambda: now[0])
    now = [1_750_000_000.0]
    watch.evidence.advance(now[0], True, True)
    for _ in range(30):
        device.allocate(MIB)
        now[0] += 1
        watch.step()
    comparing = threading.Thread(target=watch.evidence.advance, args=(now[0], True, True))
    comparing.start()
    assert device.begun.wait(60)
    stepping = threading.Thread(target=watch.step)
    stepping.start()
    stepping.join(30)
    waits = stepping.is_alive()
    recording = device.recording
    device.allowed.set()
    comparing.join()
    stepping.join()
    assert not waits and not recording
    assert watch.sites[0].growth_bytes > 0


def test_counters_that_cannot_be_read_do_not_end_the_training(device, monkeypatch):
    watch = vramtrack.Watch(device)
    watch.step()
    monkeypatch.setattr(device, "counters", lambda: 1 / 0)
    watch.step()
    watch.epoch()
    assert watch.errors == ["mark: division by zero"] and watch._marks.series["step"].count == 1 and watch.epoch_growth == []


def test_the_verdict_names_the_device():
    device = vramtrack.SimulatedDevice()
    device.device_id = 3
    verdict = leaking(device, leak(device), evidence=False).watch.verdict()
    assert "GPU 3" in str(verdict) and "GPU 0" not in str(verdict)


def test_a_forked_child_can_use_its_watch():
    """Whatever the watch's thread held at that moment."""
    code = ("import os, signal, vramtrack\nw = vramtrack.Watch(vramtrack.SimulatedDevice()).start()\n"
            "w._lock.acquire()\nw.evidence._lock.acquire()\nif os.fork() == 0:\n  signal.alarm(20)\n  import threading\n"
            "  t = threading.Thread(target=lambda: (w.step(), w.verdict(), w.stop()))\n  t.start()\n  t.join()\n"
            "  os._exit(w._marks.series['step'].count)\nprint(os.wait()[1] >> 8)\nos._exit(0)\n")  # fmt: skip
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["1"], done.stderr


def test_a_forked_child_marks_for_nobody():
    code = ("import os, vramtrack\nw = vramtrack.Watch(vramtrack.SimulatedDevice()).start()\nw._lock.acquire()\n"
            "if os.fork() == 0:\n  vramtrack.mark('step')\n  os._exit(len(w._marks.series))\nprint(os.wait()[1])\n")  # fmt: skip
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "0\n", done.stderr


def test_marks_reach_a_pipe():
    reader, writer = os.pipe()
    code = (
        "import vramtrack\nvramtrack.mark()\nd = vramtrack.SimulatedDevice()\nvramtrack.set_default_source(d)\n"
        "d.allocate(123)\nvramtrack.mark('step')\n"
    )
    subprocess.run([sys.executable, "-c", code], pass_fds=[writer], check=True,
                   env={**os.environ, "VRAMTRACK_MARK_FD": str(writer)})  # fmt: skip
    os.close(writer)
    with os.fdopen(reader) as lines:
        assert lines.read() == "iteration\nstep 123\n"
    with pytest.raises(ValueError, match="without spaces"):
        vramtrack.mark("two words")


def test_memory_that_others_have_taken_since(device):
    job = Job(device)
    handle = device.allocate(20 * GIB)
    job.run(30)
    device.free(handle)
    device.empty_cache()
    device.outside_bytes = 20 * GIB
    job.run(30)
    explained = job.watch._stream.verdict(explain=True, metric="allocator_allocated").explain
    assert "limit 4.0 GiB" in explained[0]
