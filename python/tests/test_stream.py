"""A stream's verdict is that of detect() on the same samples, wherever one looks."""
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vramtrack
from vramtrack.stream import Stream

MIB, GIB = 2**20, 2**30


def leaking(n):
    return [8 * GIB + max(0, k - 600) * 4 * MIB for k in range(n)]


def sawtooth(n):
    return [4 * GIB + k % 300 * 10 * MIB for k in range(n)]


def restarting(n):
    """Alerts are raised and cleared."""
    return [6 * GIB + k % 1500 * 6 * MIB for k in range(n)]


def noisy(n):
    random_numbers = random.Random(1)
    return [5 * GIB + 2 * MIB * k + random_numbers.gauss(0, 64 * MIB) for k in range(n)]


def with_gaps(n):
    return [math.nan if k % 7 == 0 or 900 < k < 1200 else 4 * GIB + 3 * MIB * k for k in range(n)]


def assert_same(streamed, batch):
    # Samples in hand are a whole recording: there the end itself confirms a suspicion, and a stream may continue.
    if batch.stage == "confirmed_at_end":
        assert streamed.stage == "suspected"
        assert streamed.confidence == batch.confidence
        return
    assert streamed.to_json() == batch.to_json()
    assert str(streamed) == str(batch)
    assert streamed.series == batch.series


@pytest.mark.parametrize("begin", [0.0, 1_750_000_000.0])
@pytest.mark.parametrize("shape", [leaking, sawtooth, restarting, noisy, with_gaps])
def test_streamed_is_batch_at_every_cut(shape, begin):
    times, used = [begin + 2.0 * k for k in range(3000)], shape(3000)
    stream = Stream()
    for n, (time_s, used_bytes) in enumerate(zip(times, used), 1):
        stream.observe(time_s, used_bytes, 24 * GIB)
        if n in (1, 2, 19, 20, 150, 601, 777, 1500, 1501, 2250, 3000):
            assert_same(stream.verdict(), vramtrack.detect(times[:n], used[:n], 24 * GIB))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-3, 600), st.one_of(st.floats(0, 24 * GIB), st.just(math.nan))), min_size=1, max_size=200),
    st.lists(st.integers(1, 200), max_size=4),
    st.one_of(st.none(), st.just(24.0 * GIB)),
)
def test_streamed_is_batch_for_any_samples(steps, cuts, capacity):
    times, used, now = [], [], 0.0
    for step, used_bytes in steps:
        now += step
        times.append(now)
        used.append(used_bytes)
    stream = Stream("process_used")
    for n in range(1, len(times) + 1):
        stream.observe(times[n - 1], used[n - 1], capacity)
        if n in cuts or n == len(times):
            batch = _detect(times[:n], used[:n], capacity)
            assert_same(stream.verdict(explain=True), batch)


def _detect(times, used, capacity):
    verdict = vramtrack.detect(times, used, capacity, metric="process_used", explain=True)
    most = max((value for value in used if not math.isnan(value)), default=0)
    if 0 < most < MIB:  # detect() warns of figures that cannot be bytes; a stream has not seen all of them
        words = str(verdict).rpartition("\n  warning ")[0]
        verdict = vramtrack.verdict.replace(verdict, text=words)
    return verdict


def test_what_a_stream_refuses():
    stream = Stream()
    stream.observe(10.0, 5.0)
    for time_s, used_bytes, words in ((9.0, 5.0, "earlier than the one before it"), (11.0, -1.0, "expected bytes"), (math.nan, 5.0, "expected seconds")):
        with pytest.raises(ValueError, match=words):
            stream.observe(time_s, used_bytes)
    with pytest.raises(ValueError, match="capacity_bytes is -1"):
        stream.observe(11.0, 5.0, -1.0)
    with pytest.raises(ValueError, match="unknown metric 'vram'"):
        Stream("vram")
    stream.observe(10.0, 6.0)
    assert stream.verdict().samples == 2, "what was refused was not taken"


def test_an_outline_is_bounded_and_keeps_the_range():
    stream = Stream()
    n = 50_000
    for k in range(n):
        stream.observe(float(k), GIB + (k == 12_345) * MIB)
    series = stream.verdict().series
    assert 300 <= len(series.times_s) <= 600 and series.times_s[0] == 0.0
    assert max(series.high_bytes) == GIB + MIB and set(series.low_bytes) == {float(GIB)}
    assert all(low <= mean <= high for low, mean, high in zip(series.low_bytes, series.mean_bytes, series.high_bytes))


def test_no_samples():
    assert Stream().verdict().because == "no samples"
