"""Watch: watches this process's GPU memory while it runs."""
from __future__ import annotations

import gc
import sys
import threading
import time
from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from vramtrack import categories, interpreter_end, marks
from vramtrack.advice import advice
from vramtrack.breakdown import Breakdown, advice_on_pools, breakdown
from vramtrack.callbacks import Callbacks
from vramtrack.confirmation import Confirmation, confirm, confirmed, levels_at_onset
from vramtrack.attach_socket import allow_attach
from vramtrack.driver import DEFAULT_LIBRARY, DriverMemory
from vramtrack.evidence import Evidence, write_evidence
from vramtrack.explanation import print_explanation
from vramtrack.html_table import table
from vramtrack.mark_series import EpochGrowth, Marks
from vramtrack.memory_source import MemorySource, Site
from vramtrack.pinned_series import HOST_PINNED, PinnedSeries
from vramtrack.ranks import Rank, ranks_of, words
from vramtrack.sources import default_source
from vramtrack.stream import Stream
from vramtrack.units import MIB, format_change, format_size
from vramtrack.verdict import Verdict, is_graver
from vramtrack.watch_sample import FIELDS, Samples, WatchSample, check_metric, limit_bytes, metric_of_process, take_sample

_POOLS_BYTES = 256 * MIB  # the least unused memory in private pools that is worth mentioning
_SHOWN_SITES = 10  # in a notebook


def _explain_uncaught(*exception: Any) -> None:
    """sys.excepthook while a watch runs: prints the cause of an out-of-memory error below its traceback."""
    sys.__excepthook__(*exception)
    print_explanation(exception[1])


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
                    it: it is based on all samples
    evidence        names the lines that leak. When a leak is suspected, the watch records the stacks of live blocks for `evidence_s`
                    seconds and at least eight marks, names the lines that grew, and stops recording. While it records, an
                    allocation takes about 2 us longer, and two snapshots hold the allocator's lock for milliseconds. At most once
                    every half hour
    directory       where evidence of an out-of-memory error is written. None: it is not written
    driver_library  the NVML library, which provides figures of this and other processes. None: the figure of the whole device only.
                    `driver.reason` says why process figures are missing. They take at most a thousandth of the time
    ranks           under torchrun: True puts a summary of this rank into `directory`, or into a folder of this machine, and reads those
                    of the others (see ranks()). A path: into that folder, which all machines share. False: neither
    on_leak         called once, with the verdict, when a leak is found
    clock           returns the time in seconds; for tests

    An out-of-memory error that ends the with-statement, or that nobody catches, is explained on standard error (see explain()).

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
        ranks: Union[bool, str] = True,
        on_leak: Optional[Callable[[Verdict], None]] = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if interval_s <= 0 or check_every_s <= 0:
            raise ValueError("interval_s and check_every_s must be greater than 0")
        self.source = source if source is not None else default_source()
        self.interval_s = interval_s
        self.check_every_s = check_every_s
        self.max_samples = max(100, max_samples)
        self._samples = Samples(self.max_samples)
        #: the samples; after max_samples of them only every second one, then every fourth, and so on
        self.samples: List[WatchSample] = self._samples.kept
        self.evidence = Evidence(self.source, evidence_s) if evidence else None
        self.directory = directory
        self.on_leak = on_leak
        self._callbacks = Callbacks(self._note)
        self.last_verdict: Optional[Verdict] = None
        #: errors in callbacks and in reading memory; the watch continues after them
        self.errors: List[str] = []
        self._clock = clock
        self.driver = DriverMemory(self.source.identity(), driver_library)
        self._first_s: Optional[float] = None
        self._ranks = ranks_of(ranks, directory, clock, check_every_s)
        self._lock = threading.RLock()
        self._stream = Stream("device_used", settings, self.source.device_id)
        self._last: Optional[WatchSample] = None
        self._pinned = PinnedSeries(settings, self.source.device_id)
        self._marks = Marks()
        self._worked = False  # a mark since the last sample: the program works, so its growth is not a model being loaded
        self._end = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._unlisten: Optional[Callable[[], None]] = None
        self._unobserve: Optional[Callable[[], None]] = None
        self._excepthook: Optional[Callable[..., Any]] = None

    # ---- its thread

    def start(self) -> "Watch":
        """Starts sampling memory, receiving marks and observing out-of-memory errors, and admits `vramtrack attach` (allow_attach())."""
        if self._thread is not None:
            return self
        self._end.clear()
        try:
            allow_attach()
        except OSError as error:
            self._note(f"attach: {error}")
        self._unlisten = marks.listen(self._take_mark)
        if self.directory is not None:
            self._unobserve = self.source.observe_oom(self._on_oom)
        self._thread = threading.Thread(target=self._run, name="vramtrack-watch", daemon=True)
        self._thread.start()
        interpreter_end.add(self)
        if sys.excepthook == sys.__excepthook__:  # a hook set by someone else is left alone
            self._excepthook = sys.excepthook = _explain_uncaught
        return self

    def stop(self) -> None:
        """Stops the watch. Its samples and verdicts remain."""
        self._end.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None
        interpreter_end.remove(self)
        for end in (self._unlisten, self._unobserve):
            if end is not None:
                end()
        self._unlisten = self._unobserve = None
        if self._excepthook is not None and sys.excepthook == self._excepthook:
            sys.excepthook = sys.__excepthook__
        self._excepthook = None
        if self.evidence is not None:
            self.evidence.cancel()
        if self._ranks is not None:
            self._ranks.leave()

    def ask_to_end(self) -> None:
        """For the end of the interpreter: asks its thread to end, without waiting."""
        self._end.set()

    def wait_for_end(self, seconds: float) -> None:
        """For the end of the interpreter: waits at most this long for its thread."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)
        if self._ranks is not None:
            self._ranks.leave()

    def in_child(self) -> None:
        """A forked child has no watch thread, and a lock held at the fork would stay locked forever."""
        self._marks.in_child()
        self._lock = threading.RLock()
        self._end = threading.Event()
        self._thread = self._unlisten = self._unobserve = None
        self._ranks = None  # the child is not the rank
        if self.evidence is not None:
            self.evidence.in_child()

    __enter__ = start

    def __exit__(self, *exception: Any) -> None:
        self.stop()
        print_explanation(exception[1])

    def _run(self) -> None:
        next_check = self._clock() + self.check_every_s
        while True:
            try:
                self.sample()
                if categories.is_wanted:
                    categories.look_now_and_then()
                if self._clock() >= next_check:
                    next_check = self._clock() + self.check_every_s
                    next_check = self._clock() + self._callbacks.next_check_in(self.check(), self.check_every_s, self.interval_s)
            except Exception as error:  # a failing watch must not end the job
                self._note(f"sampling: {error}")
            if self._end.wait(min(self.interval_s, max(0.0, next_check - self._clock()))):
                return

    def _note(self, text: str) -> None:
        if len(self.errors) < 100 and text not in self.errors:
            self.errors.append(text)

    # ---- observations

    def sample(self) -> WatchSample:
        """Takes one sample now."""
        taken = take_sample(self.source, self.driver, self._clock, self._note)
        with self._lock:
            if self._last is not None and taken.time_s < self._last.time_s:
                taken = taken._replace(time_s=self._last.time_s)  # the clock was set back: time stands still until it has caught up
            self._last = taken
            if self._first_s is None:
                self._first_s = taken.time_s
            if self._worked:
                self._worked = False
                self._stream.works(taken.time_s)
                self._pinned.works(taken.time_s)
            self._stream.observe(taken.time_s, taken.device_used, taken.device_total)
            for metric in ("allocator_allocated", "allocator_reserved", "process_used"):
                self._stream.observe_beside(metric, taken.time_s, taken[FIELDS[metric]], limit_bytes(taken, metric))
            self._pinned.observe(taken.time_s, taken.host_pinned)
            self._samples.add(taken)
        return taken

    def step(self) -> None:
        """Marks the end of a training step."""
        self._take_mark("step")

    def request(self) -> None:
        """Marks the end of a request."""
        self._take_mark("request")

    def epoch(self, collect: bool = True) -> None:
        """Marks the end of an epoch. First collects garbage (tens of milliseconds), so that only persistent memory is counted.
        With collect=False, it only sets the mark, which does not count towards epoch_growth."""
        if collect:
            gc.collect()
            used = self._used_now()
            if used is not None:
                self._marks.add_epoch(used)
        self._take_mark("epoch")

    def mark(self, name: str) -> None:
        """Marks the end of an iteration of any other kind."""
        self._take_mark(name)

    def _take_mark(self, name: str) -> None:
        used = self._used_now()
        if used is None:
            return
        now = self._marks.add(name, used, self._clock)
        self._worked = True
        if now is not None and self.evidence is not None:
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
        return self._marks.epoch_growth

    @property
    def grows_every_epoch(self) -> bool:
        """Whether memory grew in each of the last three epochs, by 1 MiB or more in total. The very first epoch is warm-up and does
        not count."""
        return self._marks.grows_every_epoch

    @property
    def growth_per_epoch(self) -> Optional[EpochGrowth]:
        """How much memory grows from epoch to epoch, after garbage collection, with the certainty. The first epoch is warm-up; four more of
        a second each are enough. None: too few, or no growth."""
        return self._marks.growth_per_epoch

    # ---- conclusions

    def verdict(self, metric: Optional[str] = None, confirm: bool = False) -> Verdict:
        """The verdict so far.

        metric   "allocator_allocated", "allocator_reserved", "process_used", "device_used" or "host_pinned"; default: the allocator's
                 or the device's, whichever is more severe
        confirm  True: collects garbage and empties the cache. If less than half of the growth persists, it is not a leak. Use it at
                 a safe point only, between steps
        """
        if metric is not None:
            verdict = self._of(metric)
        else:
            verdict = self._of(metric_of_process(self._last))
            outside = self._of("device_used") if self._last is not None and self._last.device_used is not None else None
            if outside is not None and outside.leak and is_graver(outside, verdict):
                verdict = outside
        verdict = verdict.with_growth_per(self._growth_per(verdict))
        epochs = self.growth_per_epoch
        if epochs is not None and epochs.is_sure and verdict.metric != HOST_PINNED:
            verdict = replace(verdict, because=f"{verdict.because}; memory grows by {epochs}")
        if confirm and (verdict.leak or verdict.state == "growing"):
            verdict = self._confirmed(verdict)
        if metric is None:
            verdict = self._with_ranks(verdict)
        self.last_verdict = verdict
        return verdict

    def _with_ranks(self, verdict: Verdict) -> Verdict:
        ranks, last = self._ranks, self._last
        if ranks is None or last is None or self._first_s is None:
            return verdict
        return ranks.add_to(verdict, last[FIELDS[verdict.metric]] or 0, self._first_s, last.time_s)

    def ranks(self) -> List[Rank]:
        """The latest summaries of the job's ranks, including this one, by rank. It reads their files now. Empty outside torchrun."""
        return [] if self._ranks is None else self._ranks.look(all_of_them=True)

    def rank_words(self) -> str:
        """Which ranks of the job grow, and which grew first, in one sentence. It reads their files now. "" outside torchrun."""
        return "" if self._ranks is None else words(self.ranks(), self._ranks.job.world_size)

    def _of(self, metric: str) -> Verdict:
        if metric == HOST_PINNED:
            with self._lock:
                return self._pinned.verdict()
        check_metric(metric)
        with self._lock:
            verdict = self._stream.verdict(metric=metric)
        if metric == "process_used" and verdict.samples == 0 and self.driver.reason:
            verdict = replace(verdict, because=f"the driver has no process figures: {self.driver.reason}")
        return verdict

    def _growth_per(self, verdict: Verdict) -> Dict[str, float]:
        if verdict.metric == HOST_PINNED or (not verdict.leak and verdict.state not in ("growing", "slow_growth")):
            return {}
        return self._marks.growth_per(self._onset_s(verdict))

    def _onset_s(self, verdict: Optional[Verdict]) -> Optional[float]:
        """When the verdict's growth began, by the clock of the samples. None: there is no growth, or it began before the first sample."""
        with self._lock:
            if verdict is None or verdict.onset_s is None or not self.samples:
                return None
            return self.samples[0].time_s + verdict.onset_s

    def confirm(self, metric: str = "allocator_allocated") -> Confirmation:
        """Collects garbage, empties the cache and measures how much of the metric's growth since the last verdict's onset persists. Use it
        only at a safe point (between steps): emptying the cache waits for the GPU, and the next steps allocate again. ValueError: the
        metric is not available at present."""

        def at_onset(now_bytes: int) -> Tuple[int, int]:
            since = self._onset_s(self.last_verdict)
            with self._lock:
                return levels_at_onset(self.samples, self._marks, metric, since, now_bytes)

        return confirm(self.source, self.driver, metric, self._clock, at_onset)

    def _confirmed(self, verdict: Verdict) -> Verdict:
        self.last_verdict = verdict
        try:
            return confirmed(verdict, self.confirm(verdict.metric))
        except ValueError as error:
            return replace(verdict, because=f"{verdict.because}; not confirmed: {error}")

    @property
    def sites(self) -> List[Site]:
        """The lines that grew while evidence was recorded, largest growth first. Empty before that."""
        return list(self.evidence.sites) if self.evidence is not None else []

    def breakdown(self) -> Breakdown:
        """The current composition of the memory: allocated, cached, private pools of CUDA graphs, outside the allocator, pinned host
        memory. It may hold the allocator's lock for milliseconds."""
        return breakdown(self.source)

    def advice(self) -> List[str]:
        """Advice from the last verdict, the lines found and the allocator's settings."""
        verdict = self.last_verdict or self.verdict()
        with self._lock:
            grows = self._samples.cache_grows()
        lines = advice(verdict, self.source.counters(), self.source, self.sites, grows, self.driver.others())
        try:
            lines += advice_on_pools(self.breakdown(), _POOLS_BYTES)
        except Exception as error:  # the rest of the advice does not need the pools
            self._note(f"pools: {error}")
        with self._lock:
            pinned = self._pinned.advice()
        if pinned is not None:
            lines.append(pinned)
        if self.grows_every_epoch:
            lines.insert(0, f"memory grows every epoch, even after garbage collection: {self.growth_per_epoch}")
        return lines

    def _repr_html_(self) -> str:
        """In a notebook: the verdict with its chart, and the lines that grew."""
        parts = [self.verdict()._repr_html_()]
        if self.sites:
            rows = [(f"{site.file}:{site.line} in {site.name}", format_change(site.growth_bytes), format_size(site.live_bytes)) for site in self.sites[:_SHOWN_SITES]]
            parts.append(table("Lines that grew", ("line", "growth", "live"), rows))
        return f"<div>{''.join(parts)}</div>"

    # ---- reactions

    def before_oom(self, callback: Callable[[Verdict], None], seconds: float) -> None:
        """Calls callback(verdict) once, on the watch's thread, when the predicted out-of-memory error is less than `seconds` away. Set
        `seconds` to the time a checkpoint takes. The early end of the prediction counts: one error in ten comes sooner."""
        self._callbacks.add_before_oom(callback, seconds)

    def check(self) -> Verdict:
        """Makes the verdict and acts on it: on_leak, before_oom, evidence. The watch's thread calls it."""
        verdict = self.verdict()
        if self._ranks is not None:
            self._ranks.share(self._note)
        now = self._clock()
        self._callbacks.call(verdict, self.on_leak)
        if self.evidence is not None:
            # The judge needs a long time to decide on a rise that began with the program. Growth with every step is reason enough to search
            # for the lines.
            suspected = verdict.leak or self.grows_every_epoch
            if not suspected and verdict.state == "growing":
                suspected = verdict.confidence >= 0.5 or self._marks.any_grows()
            try:
                self.evidence.advance(now, suspected, self._marks.come_often(now))
            except Exception as error:
                self._note(f"evidence: {error}")
        return verdict

    def _on_oom(self, asked_bytes: int, free_bytes: int) -> None:
        try:
            write_evidence(self, asked_bytes, free_bytes)
        except Exception as error:
            self._note(f"writing evidence: {error}")
