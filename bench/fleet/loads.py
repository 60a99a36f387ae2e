"""What GPUs of a cluster do in a day, one curve per GPU: draw() for tests/fleet/cluster.py.

    idle        nothing runs
    flat        one job, loaded before
    noise       activations of batches of different sizes
    loads       jobs that come and go; each loads for 1 to 16 minutes, in a line
    cache       fills to its cap in 1 to 10 hours, and again after a restart
    day         requests that follow the hours of a day
    sawtooth    rises for 5 to 90 minutes and falls
    leak        grows in a line or in steps until memory is full, beside what a healthy job does; then it is restarted

Times are seconds since the first sample; what it draws depends on `noise` alone."""
import math

HEALTHY = {"idle": 5, "flat": 25, "noise": 17, "loads": 26, "cache": 9, "day": 10, "sawtooth": 8}
DAY_S = 86_400
IDLE_MIB = 700


class Job:
    """One process: from `begin_s` to `end_s`, loaded to `level` (MiB) in `load_s`; `beyond(age_s)` is what comes on top since it has loaded."""

    def __init__(self, begin_s, end_s, load_s, level, beyond=None, busy=0.8):
        self.begin_s, self.end_s, self.load_s, self.level, self.beyond, self.busy = begin_s, end_s, load_s, level, beyond or (lambda age_s, at_s: 0), busy

    def used(self, at_s):
        age_s = at_s - self.begin_s
        if age_s < self.load_s:
            return self.level * age_s / self.load_s
        return self.level + self.beyond(age_s - self.load_s, at_s)


def one_after_another(noise, length_s, make, pause_s, life_s):
    """Jobs with pauses; the first was there before."""
    jobs, at = [], -noise.uniform(0, life_s[1])
    while at < length_s:
        end = at + noise.uniform(*life_s)
        if end > 0:
            jobs.append(make(at, end))
        at = end + noise.uniform(*pause_s)
    return jobs


def loads(noise, length_s, capacity):
    return one_after_another(noise, length_s, lambda begin, end: Job(begin, end, noise.uniform(60, 960), noise.uniform(0.1, 0.9) * capacity), (20, 1800),
                             (1800, 8 * 3600))


def cache(noise, length_s, capacity):
    weights, cap = noise.uniform(0.15, 0.4) * capacity, noise.uniform(0.6, 0.95) * capacity
    fill_s, is_line, load_s = noise.uniform(3600, 36_000), noise.random() < 0.5, noise.uniform(60, 300)

    def beyond(age_s, _):
        return (cap - weights) * (min(1.0, age_s / fill_s) if is_line else 1 - math.exp(-3 * age_s / fill_s))
    restarts = sorted(noise.uniform(0, length_s) for _ in range(noise.choice((0, 0, 1, 2))))
    ends = restarts + [math.inf]
    begins = [-noise.uniform(0, DAY_S)] + [at + noise.uniform(20, 120) for at in restarts]
    return [Job(begin, end, load_s, weights, beyond, 0.5) for begin, end in zip(begins, ends) if begin < end]


def day(noise, length_s, capacity):
    base, height = noise.uniform(0.1, 0.4) * capacity, noise.uniform(0.1, 0.5) * capacity
    peak_s, sharpness, state = noise.uniform(0, DAY_S), noise.choice((1, 1, 2)), [0.0]

    def beyond(_, at_s):
        state[0] = 0.98 * state[0] + noise.gauss(0, 0.01)  # requests come in waves
        share = (0.5 + 0.5 * math.cos(2 * math.pi * (at_s - peak_s) / DAY_S)) ** sharpness
        return height * max(0.0, share + state[0] * share)
    return [Job(-DAY_S, math.inf, 60, base, beyond, 0.5)]


def sawtooth(noise, length_s, capacity):
    base, height, period_s = noise.uniform(0.1, 0.5) * capacity, noise.uniform(0.03, 0.3) * capacity, noise.uniform(300, 5400)
    return [Job(-DAY_S, math.inf, 60, base, lambda age_s, _: height * (age_s % period_s) / period_s)]


def noisy(noise, length_s, capacity):
    base, width = noise.uniform(0.1, 0.8) * capacity, noise.uniform(0.002, 0.04) * capacity
    return [Job(-DAY_S, math.inf, 60, base, lambda *_: noise.uniform(0, width))]


def flat(noise, length_s, capacity):
    return [Job(-DAY_S, math.inf, 60, noise.uniform(0.1, 0.95) * capacity)]


def idle(*_):
    return []


def leak(noise, length_s, capacity):
    """Jobs that fill the memory in 4 to 60 hours, each from its beginning or from later on. A job that fills it ends, and is started again."""
    level, load_s = noise.uniform(0.1, 0.4) * capacity, noise.uniform(60, 600)
    full_s, late_s = math.exp(noise.uniform(math.log(4 * 3600), math.log(60 * 3600))), noise.choice((0, 0, noise.uniform(0, 3 * 3600)))
    step_s, swing, swing_s = noise.choice((1, 1, 1, noise.uniform(300, 1800))), noise.uniform(0, 0.03) * capacity, noise.uniform(60, 600)

    def beyond(age_s, _):
        grown = max(0.0, age_s - late_s) // step_s * step_s * (capacity - level) / full_s
        return grown + swing * (age_s % swing_s) / swing_s
    jobs, at = [], -noise.uniform(0, 0.5) * full_s
    while at < length_s:
        end = at + load_s + late_s + full_s * (capacity - level - swing) / (capacity - level)
        jobs.append(Job(at, end, load_s, level, beyond))
        at = end + noise.uniform(60, 600)
    return jobs


SHAPES = {"idle": idle, "flat": flat, "noise": noisy, "loads": loads, "cache": cache, "day": day, "sawtooth": sawtooth, "leak": leak}


class Drawn:
    """`kind`; `values`: (MiB, busy percent) for each of `times_s`; `full_s`: when memory ran out."""

    def __init__(self, kind, values, full_s):
        self.kind, self.values, self.full_s = kind, values, full_s


def draw(noise, times_s, leaks, capacity):
    """`capacity` in MiB."""
    kind = "leak" if leaks else noise.choices(list(HEALTHY), HEALTHY.values())[0]
    length_s, most = times_s[-1], capacity - 600
    jobs = SHAPES[kind](noise, length_s, most)
    values, at = [], 0
    for at_s in times_s:
        while at < len(jobs) and jobs[at].end_s <= at_s:
            at += 1
        job = jobs[at] if at < len(jobs) and jobs[at].begin_s <= at_s else None
        used = IDLE_MIB + (job.used(at_s) if job else 0) + noise.uniform(0, 8)
        is_loaded = job and at_s - job.begin_s >= job.load_s
        busy = 100 * min(1.0, job.busy * noise.uniform(0.8, 1.2)) if is_loaded else 4 if job else 0
        values.append((int(min(used, most)), int(busy)))
    return Drawn(kind, values, [job.end_s for job in jobs if leaks and 0 < job.end_s <= length_s])
