"""Kinds that need no framework but arrays: leak_jax.py and leak_cupy.py run them, each with its own allocator.

A framework's module gives `array(size_bytes)`: that many bytes on the device, written to, in an object of .nbytes; and
`fit(size_bytes)`: the size nearest to it that is to be had, where not every size is cheap (JAX compiles for each).
"""
import collections

from job import healthy, twins


def array_kinds(array, fit=int):
    def work(job):
        """What every step does beside the defect: something that is needed and let go."""
        size = fit(job.free_bytes * job.random.uniform(0.02, 0.03))
        job.hold(size)
        array(size)
        job.hold(-size)

    def keep(job, kept, size_bytes):
        size_bytes = fit(size_bytes)
        job.hold(size_bytes)
        kept.append(array(size_bytes))

    def outputs(job, fixed):
        """Every step's result stays in a list."""
        job.begin()
        kept = []
        for _ in job.steps():
            work(job)
            job.onset(not fixed)
            if not fixed:
                keep(job, kept, job.leak_bytes)

    def cache(job, fixed):
        """Results by input, for ever; repaired: at most this many bytes of them."""
        job.begin()
        entries = collections.OrderedDict()
        held = 0
        for step in job.steps():
            work(job)
            size = fit(job.leak_bytes * job.random.uniform(0.5, 1.5))
            while fixed and held + size > job.free_bytes // 2:
                old = entries.popitem(last=False)[1].nbytes
                held -= old
                job.hold(-old)
            job.onset(not fixed)
            job.hold(size)
            entries[step] = array(size)
            held += size

    def epochs(job, fixed):
        """After every epoch a copy of the state stays; repaired: the last one only."""
        job.begin()
        size = fit(job.leak_bytes * job.epoch_steps)
        kept = []
        for step in job.steps():
            work(job)
            if step % job.epoch_steps != job.epoch_steps - 1:
                continue
            if fixed and kept:
                kept.clear()
                job.hold(-size)
            job.onset(not fixed)
            keep(job, kept, size)

    def sawtooth(job, fixed):
        """Results gathered, handed on, the pool emptied; the defect: a tenth of each cycle stays."""
        job.begin()
        cycle_steps = max(job.life_steps // 10, 8)
        gathered, lost = [], []
        for _ in job.steps():
            work(job)
            keep(job, gathered, 0.35 * job.free_bytes / cycle_steps)
            if len(gathered) < cycle_steps:
                continue
            stays = 0 if fixed else max(1, round(len(gathered) * 0.18))
            job.onset(stays > 0)
            lost += gathered[:stays]
            job.hold(-sum(a.nbytes for a in gathered[stays:]))
            gathered = []
            job.memory.release()

    def sizes_vary(job):
        """Inputs of very different sizes: the pool is a running maximum."""
        job.begin()
        for _ in job.steps():
            size = fit(job.free_bytes * 0.45 * min(1.0, 0.12 * job.random.lognormvariate(0.0, 0.7)))
            job.hold(size)
            array(size)
            job.hold(-size)

    return [*twins(outputs, "outputs_kept", "outputs_dropped", "gradual_leak"),
            *twins(epochs, "epochs_kept", "epochs_last", "step_increase"),
            *twins(sawtooth, "sawtooth_rising", "sawtooth", "cyclic"),
            healthy(sizes_vary, "sizes_vary"),
            *twins(cache, "cache_unbounded", "cache_limited", "gradual_leak")]
