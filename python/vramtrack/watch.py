"""Watch: watches this process's GPU memory while it runs."""
from __future__ import annotations

import atexit
import gc
import os
import threading
import time
from dataclasses import replace
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from vramtrack import marks
from vramtrack.advice import advice
from vramtrack.driver import DEFAULT_LIBRARY, DriverMemory
from vramtrack.evidence import Evidence, write_evidence
from vramtrack.mark_series import MarkSeries
from vramtrack.memory_source import MemorySource, Site
from vramtrack.sources import default_source
from vramtrack.stream import Stream
from vramtrack.units import MIB
from vramtrack.verdict import Verdict


class WatchSample(NamedTuple):
    """One look at memory, in bytes. None: the figure is not available."""

    time_s: float
    allocator_allocated: int
    allocator_reserved: int
    device_used: Optional[int]
    process_used: Optional[int]
    device_total: Optional[int]


_FIELDS = {"allocator_allocated": 1, "allocator_reserved": 2, "device_used": 3, "process_used": 4}  # of WatchSample
_GRADES = ("ok", "watch", "warning", "critical")
_LOOKS_AT_ONSET = 20
_OFTEN_S = 300.0  # marks that come three times within this time are worth waiting for
_EXIT_S = 1.0  # the longest time that the end of the interpreter waits for a check
_running: Set["Watch"] = set()


def _end_all() -> None:
    """Stops all watches at the end of the interpreter, before the memory that they read is torn down."""
    watches = list(_running)
    for watch in watches:
        watch._end.set()
    until = time.monotonic() + _EXIT_S
    for watch in watches:
        thread = watch._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, until - time.monotonic()))


def _after_fork() -> None:
    for watch in _running:
        watch._in_child()
    _running.clear()


# atexit runs after all non-daemon threads have ended, so a job that trains in such a thread is watched to its end.
atexit.register(_end_all)
os.register_at_fork(after_in_child=_after_fork)


def _check_metric(metric: str) -> None:
    if metric not in _FIELDS:
        raise ValueError(f"unknown metric {metric!r}; expected one of {', '.join(_FIELDS)}")


def _limit_bytes(taken: WatchSample, metric: str) -> Optional[float]:
    """Where memory ends for the metric: the device's capacity, less what others hold if the metric is this process's."""
    if taken.device_total is None:
        return None
    others = 0
    if metric != "device_used" and taken.device_used is not None:
        others = max(0, taken.device_used - taken.allocator_reserved)
    return float(max(1, taken.device_total - others))


def _is_graver(one: Verdict, other: Verdict) -> bool:
    """By severity, then by a much earlier end. A leak in the allocator shows in both verdicts at about the same time."""
    if one.severity != other.severity:
        return _GRADES.index(one.severity) > _GRADES.index(other.severity)
    return one.oom_in_s is not None and (other.oom_in_s is None or one.oom_in_s.low < 0.5 * other.oom_in_s.low)


class Confirmation(NamedTuple):
    """Memory before and after garbage collection and emptying the cache. The growth that persists is the leak."""

    allocated_before: int
    allocated_after: int
    reserved_before: int
    reserved_after: int
    growth_bytes: int  # growth of the metric since the onset, before collection
    persists_bytes: int  # the same after collection
    metric: str = "allocator_allocated"

    @property
    def leak(self) -> bool:
        return self.growth_bytes > 0 and self.persists_bytes > 0.5 * self.growth_bytes


class Watch:
    """Samples the allocator and the driver in a thread and gives the verdict that `vramtrack watch` would give.

        watch = vramtrack.Watch().start()
        watch.before_oom(save_checkpoint, seconds=120)
        for batch in loader:
            train(batch)
            watch.step()
        print(watch.verdict())

    source          default: the current CUDA device
    interval_s      seconds between two samples. A sample takes about 0.1 ms: two calls for the allocator's counters and one for the
                    driver's
    check_every_s   seconds between two checks. A check takes less than 1 ms, however long the watch has run
    settings        settings from docs/CONFIG.md, as in detect()
    max_samples     how many samples `samples` may hold; when it is full, every second one is dropped. The verdict does not depend on
                    it: it rests on all samples
    evidence        names the lines that leak. When a leak is suspected, the watch records the stacks of live blocks for `evidence_s`
                    seconds and at least eight marks, names the lines that grew, and stops recording. While it records, an
                    allocation takes about 2 us longer, and two snapshots hold the allocator's lock for milliseconds. At most once
                    every half hour
    directory       where evidence of an out-of-memory error is written. None: it is not written
    driver_library  the NVML library, which provides figures of this and other processes. None: the figure of the whole device only.
                    `driver.reason` says why process figures are missing. They take at most a thousandth of the time
    on_leak         called once, with the verdict, when a leak is found
    clock           returns the time in seconds; for tests

    Thread-safe. start() starts the thread. Without it, call sample() and check() yourself. ValueError: a setting does not exist.
    """

    def __init__(
        self,
        source: Optional[MemorySource] = None,
        *,
        interval_s: float = 1.0,
        check_every_s: float = 15.0,
        settings: Optional[Dict[str, Any]] = None,
        max_samples: int = 20_000,
        evidence: bool = True,
        evidence_s: float = 30.0,
        directory: Optional[str] = None,
        driver_library: Optional[str] = DEFAULT_LIBRARY,
        on_leak: Optional[Callable[[Verdict], None]] = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if interval_s <= 0 or check_every_s <= 0:
            raise ValueError("interval_s and check_every_s must be greater than 0")
        self.source = source if source is not None else default_source()
        self.interval_s = interval_s
        self.check_every_s = check_every_s
        self.max_samples = max(100, max_samples)
        #: the samples; after max_samples of them every second one only, then every fourth, and so on
        self.samples: List[WatchSample] = []
        self.evidence = Evidence(self.source, evidence_s) if evidence else None
        self.directory = directory
        self.on_leak = on_leak
        self.last_verdict: Optional[Verdict] = None
        #: errors in callbacks and in reading memory; the watch continues after them
        self.errors: List[str] = []
        self._clock = clock
        self.driver = DriverMemory(self.source.identity(), driver_library)
        self._lock = threading.RLock()
        self._streams = {metric: Stream(metric, settings, self.source.device_id) for metric in _FIELDS}
        self._last: Optional[WatchSample] = None
        self._taken = 0
        self._stride = 1
        self._series: Dict[str, MarkSeries] = {}
        self._epoch_bytes: List[int] = []
        self._before_oom: List[Any] = []
        self._told_leak = False
        self._end = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._unlisten: Optional[Callable[[], None]] = None
        self._unobserve: Optional[Callable[[], None]] = None

    # ---- its thread

    def start(self) -> "Watch":
        """Starts to sample memory, to receive marks and to observe out-of-memory errors."""
        if self._thread is not None:
            return self
        self._end.clear()
        self._unlisten = marks.listen(self._take_mark)
        if self.directory is not None:
            self._unobserve = self.source.observe_oom(self._on_oom)
        self._thread = threading.Thread(target=self._run, name="vramtrack-watch", daemon=True)
        self._thread.start()
        _running.add(self)
        return self

    def stop(self) -> None:
        """Stops the watch. Its samples and verdicts remain."""
        self._end.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None
        _running.discard(self)
        for end in (self._unlisten, self._unobserve):
            if end is not None:
                end()
        self._unlisten = self._unobserve = None
        if self.evidence is not None:
            self.evidence.cancel()

    def _in_child(self) -> None:
        """A forked child has no watch thread, and a lock that was held at the fork would stay held for ever."""
        self._lock = threading.RLock()
        self._end = threading.Event()
        self._thread = self._unlisten = self._unobserve = None
        if self.evidence is not None:
            self.evidence.in_child()

    __enter__ = start

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def _run(self) -> None:
        next_check = self._clock() + self.check_every_s
        while True:
            try:
                self.sample()
                if self._clock() >= next_check:
                    next_check = self._clock() + self.check_every_s
                    next_check = self._clock() + self._next_check_in(self.check())
            except Exception as error:  # a failing watch must not end the job
                self._note(f"sampling: {error}")
            if self._end.wait(min(self.interval_s, max(0.0, next_check - self._clock()))):
                return

    def _next_check_in(self, verdict: Verdict) -> float:
        """check_every_s, or less if a before_oom callback would otherwise come too late."""
        if not verdict.leak or verdict.oom_in_s is None:
            return self.check_every_s
        left = [verdict.oom_in_s.low - seconds for _, seconds, called in self._before_oom if not called]
        soonest = max(min(self.interval_s, 1.0), 0.5 * min(left)) if left else self.check_every_s
        return min(self.check_every_s, soonest)

    def _note(self, text: str) -> None:
        if len(self.errors) < 100 and text not in self.errors:
            self.errors.append(text)

    # ---- what is seen

    def sample(self) -> WatchSample:
        """Takes one sample now."""
        counters = self.source.counters()
        now = self._clock()
        taken = WatchSample(
            now,
            counters.allocated,
            counters.reserved,
            self.source.device_used_bytes(),
            self._process_used(now),
            self.source.capacity_bytes(),
        )
        with self._lock:
            if self._last is not None and taken.time_s < self._last.time_s:
                taken = taken._replace(time_s=self._last.time_s)  # the clock was set back: time stands still until it has caught up
            self._last = taken
            for metric, stream in self._streams.items():
                stream.observe(taken.time_s, taken[_FIELDS[metric]], _limit_bytes(taken, metric))
            self._keep(taken)
        return taken

    def _keep(self, taken: WatchSample) -> None:
        if self._taken % self._stride == 0:
            self.samples.append(taken)
            if len(self.samples) >= self.max_samples:
                del self.samples[1::2]
                self._stride *= 2
        self._taken += 1

    def _process_used(self, now: float) -> Optional[int]:
        try:
            used = self.driver.read(now)
        except ValueError as error:  # the device does not answer; the allocator's figures remain available
            self._note(f"driver: {error}")
            return None
        if self.driver.reason and self.driver.wanted:
            self._note(f"the driver has no process figures: {self.driver.reason}")
        return None if used is None else used.get(os.getpid())

    def step(self) -> None:
        """Marks the end of a training step."""
        self._take_mark("step")

    def request(self) -> None:
        """Marks the end of a request."""
        self._take_mark("request")

    def epoch(self, collect: bool = True) -> None:
        """Marks the end of an epoch. It first collects garbage (tens of milliseconds), so that only persistent memory is counted.
        collect=False: makes the mark only and does not count for epoch_growth."""
        if collect:
            gc.collect()
            used = self._used_now()
            if used is not None:
                with self._lock:
                    self._epoch_bytes.append(used)
        self._take_mark("epoch")

    def mark(self, name: str) -> None:
        """Marks the end of an iteration of any other kind."""
        self._take_mark(name)

    def _take_mark(self, name: str) -> None:
        used = self._used_now()
        if used is None:
            return
        with self._lock:
            series = self._series.get(name)
            if series is None:
                if len(self._series) >= 64:
                    return
                series = self._series[name] = MarkSeries()
            now = self._clock()
            series.add(now, used)
        if self.evidence is not None:
            try:
                self.evidence.mark(name, now)
            except Exception as error:
                self._note(f"evidence: {error}")

    def _used_now(self) -> Optional[int]:
        """Live bytes; None, with a note in `errors`, if they cannot be read. A failing watch must not end the training."""
        try:
            return self.source.counters().allocated
        except Exception as error:
            self._note(f"mark: {error}")
            return None

    @property
    def epoch_growth(self) -> List[int]:
        """Growth in bytes from each epoch to the next, after garbage collection."""
        with self._lock:
            return [b - a for a, b in zip(self._epoch_bytes, self._epoch_bytes[1:])]

    @property
    def grows_every_epoch(self) -> bool:
        """Whether memory grew in each of the last three epochs, by 1 MiB or more in total. The very first epoch is warm-up and does
        not count."""
        growth = self.epoch_growth[1:][-3:]
        return len(growth) == 3 and min(growth) > 0 and sum(growth) >= MIB

    # ---- what is concluded

    def verdict(self, metric: Optional[str] = None, confirm: bool = False) -> Verdict:
        """The verdict so far.

        metric   "allocator_allocated", "allocator_reserved", "process_used" or "device_used"; default: the allocator's or the
                 device's, whichever is more severe
        confirm  True: collects garbage and empties the cache. If less than half of the growth persists, it is not a leak. Use it at
                 a safe point only, between steps
        """
        if metric is not None:
            verdict = self._of(metric)
        else:
            verdict = self._of("allocator_allocated")
            outside = self._of("device_used") if self._last is not None and self._last.device_used is not None else None
            if outside is not None and outside.leak and _is_graver(outside, verdict):
                verdict = outside
        verdict = verdict.with_growth_per(self._growth_per(verdict))
        if confirm and (verdict.leak or verdict.state == "growing"):
            verdict = self._confirmed(verdict)
        self.last_verdict = verdict
        return verdict

    def _of(self, metric: str) -> Verdict:
        _check_metric(metric)
        with self._lock:
            verdict = self._streams[metric].verdict()
        if metric == "process_used" and verdict.samples == 0 and self.driver.reason:
            verdict = replace(verdict, because=f"the driver has no process figures: {self.driver.reason}")
        return verdict

    def _growth_per(self, verdict: Verdict) -> Dict[str, float]:
        if not verdict.leak and verdict.state not in ("growing", "slow_growth"):
            return {}
        with self._lock:
            since = None
            if verdict.onset_s is not None and self.samples:
                since = self.samples[0].time_s + verdict.onset_s
            grown = {name: series.growth_bytes(since) for name, series in self._series.items()}
        return {name: growth for name, growth in grown.items() if growth is not None}

    def confirm(self, metric: str = "allocator_allocated") -> Confirmation:
        """Collects garbage, empties the cache and measures how much of the metric's growth since the last verdict's onset persists. Use it
        at a safe point only (between steps): emptying the cache waits for the GPU, and the next steps allocate again. ValueError:
        the metric is not available now."""
        before, level_before = self.source.counters(), self._level(metric)
        gc.collect()
        self.source.synchronize()
        self.source.empty_cache()
        after, level_after = self.source.counters(), self._level(metric)
        with self._lock:
            with_cache, without = self._levels_at_onset(metric, level_before)
        growth, persists = level_before - with_cache, level_after - without
        return Confirmation(
            before.allocated, after.allocated, before.reserved, after.reserved, growth, min(growth, persists), metric
        )

    def _level(self, metric: str) -> int:
        """The metric now."""
        _check_metric(metric)
        level: Optional[int]
        if metric == "device_used":
            level = self.source.device_used_bytes()
        elif metric == "process_used":
            level = (self.driver.read(self._clock(), anyway=True) or {}).get(os.getpid())
        else:
            counters = self.source.counters()
            level = counters.allocated if metric == "allocator_allocated" else counters.reserved
        if level is None:
            raise ValueError(f"{metric} is not available now" + (f": {self.driver.reason}" if metric == "process_used" else ""))
        return level

    def _levels_at_onset(self, metric: str, now: int) -> Tuple[int, int]:
        """The metric at the onset, and its value at the onset with the cache emptied. It is the lowest of the first samples: most
        samples fall within a step, and it is compared with a value between two steps."""
        verdict, field = self.last_verdict, _FIELDS[metric]
        since = float("-inf")
        if verdict is not None and verdict.onset_s is not None and self.samples:
            since = self.samples[0].time_s + verdict.onset_s
        most = _LOOKS_AT_ONSET if since > 0 else len(self.samples)
        near = [s for s in self.samples if s.time_s >= since and s[field] is not None][:most]
        levels = [s[field] for s in near]
        if metric == "allocator_allocated":
            for series in self._series.values():
                levels += series.first_since(since, most)
            level = int(min(levels, default=now))
            return level, level
        unused = [s[field] - (s.allocator_reserved - s.allocator_allocated) for s in near]
        return int(min(levels, default=now)), int(min(unused, default=now))

    def _confirmed(self, verdict: Verdict) -> Verdict:
        self.last_verdict = verdict
        try:
            found = self.confirm(verdict.metric)
        except ValueError as error:
            return replace(verdict, because=f"{verdict.because}; not confirmed: {error}")
        persists = f"{found.persists_bytes / MIB:.0f} of {found.growth_bytes / MIB:.0f} MiB"
        if found.leak:
            return replace(verdict, because=f"{verdict.because}; confirmed: {persists} persist after garbage collection")
        words = f"{persists} persist after garbage collection and emptying the cache, so this is not a leak"
        changed: Dict[str, Any] = {"leak": False, "state": "steady", "pattern": "none", "severity": "ok", "oom_in_s": None,
                                   "because": f"{words} (before: {verdict.because})"}  # fmt: skip
        raw = {**verdict.raw, "verdict": {**verdict.raw.get("verdict", {}), **changed}}
        return replace(verdict, text="", growth_per={}, raw=raw, **changed)

    @property
    def sites(self) -> List[Site]:
        """The lines that grew while evidence was recorded, the largest growth first. Empty before that."""
        return list(self.evidence.sites) if self.evidence is not None else []

    def advice(self) -> List[str]:
        """Advice from the last verdict, the lines found and the allocator's settings."""
        verdict = self.last_verdict or self.verdict()
        with self._lock:
            samples = self.samples
            unused = [s.allocator_reserved - s.allocator_allocated for s in samples]
        third = max(1, len(unused) // 3)
        grows = len(unused) >= 3 and min(unused[-third:]) > min(unused[:third]) + 64 * MIB
        said = advice(verdict, self.source.counters(), self.source, self.sites, grows, self.driver.others())
        if self.grows_every_epoch:
            said.insert(0, f"{self.epoch_growth[-1] / MIB:+.1f} MiB in the last epoch; memory grows in every epoch, after garbage collection")
        return said

    # ---- what is done about it

    def before_oom(self, callback: Callable[[Verdict], None], seconds: float) -> None:
        """Calls callback(verdict) once, on the watch's thread, when the predicted out-of-memory error is less than `seconds` away. Set
        `seconds` to the time a checkpoint takes. What counts is the early end of the prediction: one error in ten comes sooner."""
        if not seconds > 0:
            raise ValueError("seconds must be greater than 0: it is the time that saving a checkpoint takes")
        with self._lock:
            self._before_oom.append([callback, float(seconds), False])

    def check(self) -> Verdict:
        """Makes the verdict and acts on it: on_leak, before_oom, evidence. The watch's thread calls it."""
        verdict = self.verdict()
        now = self._clock()
        if verdict.leak and not self._told_leak and self.on_leak is not None:
            self._told_leak = True
            self._call("on_leak", self.on_leak, verdict)
        if verdict.leak and verdict.oom_in_s is not None:
            for entry in list(self._before_oom):
                callback, seconds, called = entry
                if not called and verdict.oom_in_s.low <= seconds:
                    entry[2] = True
                    self._call("before_oom", callback, verdict)
        if self.evidence is not None:
            with self._lock:
                series = list(self._series.values())
            # The judge needs a long time to decide on a rise that began with the program. Growth with every step is reason enough
            # to look for the lines.
            suspected = verdict.leak or self.grows_every_epoch
            if not suspected and verdict.state == "growing":
                suspected = verdict.confidence >= 0.5 or any(one.grows() for one in series)
            try:
                self.evidence.advance(now, suspected, any(one.count_since(now - _OFTEN_S) >= 3 for one in series))
            except Exception as error:
                self._note(f"evidence: {error}")
        return verdict

    def _call(self, what: str, callback: Callable[[Verdict], None], verdict: Verdict) -> None:
        try:
            callback(verdict)
        except Exception as error:
            self._note(f"{what}: {type(error).__name__}: {error}")

    def _on_oom(self, asked_bytes: int, free_bytes: int) -> None:
        try:
            write_evidence(self, asked_bytes, free_bytes)
        except Exception as error:
            self._note(f"writing evidence: {error}")
