import random
import sys
import warnings
import xml.etree.ElementTree as ElementTree

import pytest
from plugin_options import plugin_options

import vramtrack
from vramtrack.gate import test_growth as growth_of

MIB = 2**20
pytest_plugins = ["pytester"]


def test_a_flat_body_stops_at_the_first_look(device):
    report = vramtrack.check(lambda: device.free(device.allocate(50 * MIB)), collect=False)
    assert report.passed and report.result.iterations == 128 and report.result.settled
    assert "0 MiB/iteration" in str(report)


def test_a_leak_fails_with_bound_and_lines(device):
    def body():
        device.allocate(MIB // 2)  # leaks

    with pytest.raises(vramtrack.LeakError) as failed:
        vramtrack.check(body, "0.2 MiB/iter", collect=False)
    assert isinstance(failed.value, AssertionError)
    assert failed.value.result.low_bytes == pytest.approx(MIB / 2) and failed.value.result.iterations == 1024
    text = str(failed.value)
    assert "grows 0.50 MiB/iteration (at least 0.50 MiB/iteration" in text and "in body: +8.0 MiB" in text
    assert failed.value.sites[0].file == __file__


def test_what_each_iteration_replaces_is_not_named(device):
    held = [device.allocate(2048 * MIB)]

    def body():
        device.free(held.pop())
        held.append(device.allocate(2048 * MIB))
        device.allocate(MIB // 2)  # leaks

    report = vramtrack.run_gate(body, "0.2 MiB/iter", collect=False)
    assert [site.line for site in report.sites] == [body.__code__.co_firstlineno + 3]


def test_healthy_and_leaking_under_noise(device):
    """The same body with and without a leak, warm-up, caches and jitter: as the C++ simulation, from end to end."""
    for leak_mib, passes in ((0.0, True), (0.5, False)):
        rng = random.Random(11)
        held, count = [], [0]

        def body():
            count[0] += 1
            if count[0] < 30:
                device.allocate(200 * MIB // count[0] ** 2)
            if count[0] in (60, 200):
                device.allocate(64 * MIB)  # a cache takes another piece
            while held:
                device.free(held.pop())
            held.append(device.allocate(int(rng.uniform(0, 6) * MIB)))
            device.allocate(int(leak_mib * MIB))

        report = vramtrack.run_gate(body, collect=False, source=device)
        assert report.failed == (not passes), str(report)


def test_garbage_in_cycles_is_no_leak(device):
    class Node:
        def __init__(self):
            self.me, self.handle = self, device.allocate(MIB)

        def __del__(self):
            device.free(self.handle)

    assert vramtrack.check(Node, "0.1 MiB/iter", iterations=(100, 200)).passed


def filling(device, entries, mib=5):
    """A body with a cache that takes one entry per iteration until it is full."""
    kept = []

    def body():
        if len(kept) < entries:
            kept.append(device.allocate(mib * MIB))

    return body


def test_a_cache_that_fills_is_inconclusive(device):
    with pytest.warns(UserWarning, match="the leak gate is inconclusive: GPU memory grows 5.00 MiB/iteration"):
        report = vramtrack.check(filling(device, 800), collect=False)
    assert report.inconclusive and not report.passed and not report.failed
    with pytest.raises(vramtrack.LeakError, match="inconclusive after 1024 iterations"):
        vramtrack.check(filling(device, 800), collect=False, inconclusive="fail")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vramtrack.check(filling(device, 800), collect=False, inconclusive="ignore")
    with pytest.raises(ValueError, match="expected warn, fail or ignore"):
        vramtrack.check(lambda: None, inconclusive="skip")


def test_a_leak_that_would_not_fit_is_told_before_memory_is_full(device):
    report = vramtrack.run_gate(lambda: device.allocate(60 * MIB), collect=False, evidence=False)
    assert report.failed and report.result.iterations == 256


def test_a_leak_that_runs_out_of_memory_is_a_leak(device):
    device.allowed_bytes = 100 * 2 * MIB
    held = []
    with pytest.raises(vramtrack.LeakError, match="grows 2.00 MiB/iteration.*; call 101 ran out of memory"):
        vramtrack.check(lambda: held.append(device.allocate(2 * MIB)), collect=False)
    with pytest.raises(vramtrack.SimulatedOutOfMemoryError):  # without growth before, it is the body's error
        vramtrack.check(lambda: device.allocate(10 * 2**30), collect=False)


@pytest.mark.parametrize("broken", ["start_stacks", "snapshot", "growing_sites", "stop_stacks"])
def test_an_error_while_collecting_evidence_leaves_the_verdict(device, monkeypatch, broken):
    def fail(*arguments):
        raise RuntimeError("no recorder\nmore")

    monkeypatch.setattr(device, broken, fail)
    with pytest.raises(vramtrack.LeakError, match="the lines could not be found: RuntimeError: no recorder$"):
        vramtrack.check(lambda: device.allocate(MIB), collect=False)


def test_a_body_that_fails_while_lines_are_looked_for_leaks_all_the_same(device):
    calls = []

    def body():
        calls.append(device.allocate(MIB))
        if len(calls) > 1030:
            raise KeyError("worn out")

    with pytest.raises(vramtrack.LeakError, match="the lines could not be found: KeyError: 'worn out'"):
        vramtrack.check(body, collect=False)


class NotCounting(vramtrack.SimulatedDevice):
    """As PyTorch without its caching allocator: all counters are 0. The driver sees what is used."""

    driver_sees = True

    def counters(self):
        return vramtrack.Counters(0, 0, 0, 0, 0, 0, 0)

    def device_used_bytes(self):
        return super().device_used_bytes() if self.driver_sees else None


def test_counters_that_stay_0_never_pass():
    device = NotCounting()
    device.allocate(100 * MIB)
    report = vramtrack.run_gate(lambda: device.free(device.allocate(MIB)), source=device, collect=False)
    assert report.passed and report.metric == "device_used" and "the driver's figure for the whole device was tested" in str(report)
    leak = vramtrack.run_gate(lambda: device.allocate(2 * MIB), source=device, collect=False, evidence=False)
    assert leak.failed and leak.metric == "device_used"
    device.driver_sees = False
    for body in (lambda: None, lambda: device.allocate(2 * MIB)):
        blind = vramtrack.run_gate(body, source=device, collect=False)
        assert blind.inconclusive and "nothing was measured; the allocator's counters are 0 and the driver reports no figure" in str(blind)


def test_an_allocator_that_begins_late_is_read_from_then_on(device):
    calls = []

    def body():
        calls.append(0)
        if len(calls) > 3:
            device.free(device.allocate(MIB))

    report = vramtrack.run_gate(body, collect=False)
    assert report.passed and report.metric == "allocator_allocated" and report.notes == ()


def test_a_series_that_is_already_there():
    result = growth_of([1e9 + i * MIB for i in range(200)], "0.2 MiB/iter")
    assert result.failed and result.growth_bytes == pytest.approx(MIB) and "GrowthResult fails" in repr(result)
    assert growth_of([1e9] * 10).outcome == "too_short"


@pytest.mark.parametrize("limit, options, words", [
    ("fast", {}, "0.2 MiB/iter"), (-1, {}, "0 bytes"), (0, {"error_rate": 0.5}, "1e-6 to 0.05"), (0, {"caches": 99}, "0 to 16"),
    (0.2, {}, 'a limit of 0.2 bytes per iteration is too small to mean anything; write "0.2 MiB/iter"'), (0, {"iterations": (200, 100)}, "the maximum, for example"),
    (0, {"iterations": 0}, "iterations is 0"), (0, {"iterations": "many"}, "iterations is 'many'"),
])  # fmt: skip
def test_options_are_checked(device, limit, options, words):
    with pytest.raises(ValueError, match=words):
        vramtrack.check(lambda: None, limit, **options)


def test_an_unknown_option_is_named_with_the_nearest(device):
    with pytest.raises(TypeError, match=r"check\(\) has no argument 'eror_rate'; did you mean error_rate\? It has caches, "):
        vramtrack.check(lambda: None, eror_rate=0.1)
    with pytest.raises(TypeError, match="the limit is None"):
        vramtrack.check(lambda: None, None)


def test_a_number_of_iterations_is_the_most_of_them(device):
    calls = []
    with pytest.warns(UserWarning, match="iterations=10 is raised to 108: fewer iterations cannot show a leak at an error rate of 1e-4"):
        report = vramtrack.check(lambda: calls.append(device.allocate(0)), iterations=10, collect=False)
    assert report.result.iterations == len(calls) == 108
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vramtrack.check(lambda: None, iterations=300, collect=False).result.iterations == 128


def test_words_are_in_the_limits_own_unit_and_the_error_rate_is_what_was_asked_for(device):
    report = vramtrack.run_gate(lambda: device.allocate(MIB), "0.5 MiB/request", collect=False, evidence=False)
    assert "grows 1.00 MiB/request (at least 1.00 MiB/request at error rate 1e-4 over 3 looks); the limit is 0.50 MiB/request" in str(report)
    report = vramtrack.run_gate(lambda: device.allocate(MIB), 1000, iterations=256, collect=False, evidence=False)
    assert "MiB/iteration at error rate 1e-4)" in str(report), "one look that can fail has all of it"


def test_a_later_call_that_fails_says_which_it_was(device):
    calls = []

    def body():
        calls.append(0)
        if len(calls) == 3:
            raise KeyError("gone")

    with pytest.raises(KeyError) as failed:
        vramtrack.check(body, collect=False)
    if sys.version_info >= (3, 11):
        assert failed.value.__notes__ == ["call 3 of up to 1024; the leak gate repeats the body"]


SUITE = """
    import pytest, vramtrack
    MIB = 2**20
    device = vramtrack.SimulatedDevice()

    @pytest.fixture(autouse=True)
    def simulated():
        with vramtrack.use_source(device):
            yield

    @pytest.fixture
    def size():
        return MIB

    @pytest.mark.limit_gpu_leaks("0.2 MiB/iter", collect=False)
    def test_leaks(size):
        device.allocate(size)

    @pytest.mark.limit_gpu_leaks("0.2 MiB/iter", collect=False)
    def test_healthy(size):
        device.free(device.allocate(size))

    def test_fixture(gpu_leaks, size):
        gpu_leaks.check(lambda: device.free(device.allocate(size)), collect=False)

    def test_plain():
        pass
"""


def run_suite(pytester, *options, suite=SUITE):
    pytester.makepyfile(suite)
    return pytester.runpytest_subprocess(*plugin_options(), "-p", "no:cacheprovider", *options)


def test_plugin_fails_what_leaks(pytester):
    done = run_suite(pytester, "--vramtrack", "--junitxml=out.xml")
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines([
        "*grows 1.00 MiB/iteration (at least 1.00 MiB/iteration*", "*in test_leaks: +16.0 MiB*", "LEAKS *test_leaks*",
        "passes *test_healthy*",
    ])  # fmt: skip
    cases = {case.get("name"): case for case in ElementTree.parse(pytester.path / "out.xml").iter("testcase")}
    properties = {p.get("name"): p.get("value") for p in cases["test_leaks"].iter("property")}
    assert properties["vramtrack_outcome"] == "fails"
    assert float(properties["vramtrack_growth_low_bytes"]) == pytest.approx(MIB)
    assert cases["test_leaks"].find("failure") is not None and cases["test_healthy"].find("failure") is None


def test_plugin_is_silent_without_its_option(pytester):
    done = run_suite(pytester)
    done.assert_outcomes(passed=4)
    assert "vramtrack" not in done.stdout.str().split("plugins:")[-1].split("\n", 1)[-1]


def test_fewer_iterations(pytester):
    done = run_suite(pytester, "--vramtrack", "--vramtrack-iterations=150", "--vramtrack-error-rate=1e-3")
    done.assert_outcomes(passed=3, failed=1)


def test_first_look_and_most(pytester):
    done = run_suite(pytester, "--vramtrack", "--vramtrack-iterations=140,600", "-rA")
    done.assert_outcomes(passed=3, failed=1)
    assert "140 iterations after 0 of warm-up" in done.stdout.str()


@pytest.mark.parametrize("option, words", [
    ("--vramtrack-iterations=9,3", "'9,3': expected the maximum"), ("--vramtrack-iterations=x", "'x': expected the maximum"),
    ("--vramtrack-error-rate=0.5", "'0.5': expected a share from 1e-6 to 0.05"), ("--vramtrack-no-gpu=no", "invalid choice"),
])  # fmt: skip
def test_wrong_command_line_options(pytester, option, words):
    done = run_suite(pytester, "--vramtrack", option)
    assert done.ret == pytest.ExitCode.USAGE_ERROR and words in done.stderr.str()


@pytest.mark.parametrize("arguments, words", [
    ("0.2", 'a limit of 0.2 bytes per iteration is too small to mean anything; write "0.2 MiB/iter"'), ('"fast"', "'fast' is not a valid growth limit"),
    ("eror_rate=1e-3", "limit_gpu_leaks has no argument 'eror_rate'; did you mean error_rate?"),
    ("error_rate='x'", "error_rate is 'x'"), ('"1 MiB/iter", "2 MiB/iter"', "takes one limit"), ("iterations=(1,)", "iterations is (1,)"),
])  # fmt: skip
def test_a_wrong_marker_is_one_line_at_collection(pytester, arguments, words):
    suite = f"import pytest\n\n@pytest.mark.limit_gpu_leaks({arguments})\ndef test_body(): pass\n"
    done = run_suite(pytester, suite=suite)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in done.stderr.lines if "ERROR" in line]
    assert "::test_body: " in line and words in line and "Traceback" not in done.stdout.str() + done.stderr.str()


def test_wrong_arguments_of_the_fixture_are_one_line(pytester):
    suite = "def test_body(gpu_leaks):\n    gpu_leaks.check(lambda: None, eror_rate=1)\n"
    done = run_suite(pytester, "--vramtrack", suite=suite)
    done.assert_outcomes(failed=1)
    assert "gpu_leaks.check() has no argument 'eror_rate'; did you mean error_rate?" in done.stdout.str()
    assert "pytest_plugin.py" not in done.stdout.str()


INCONCLUSIVE = """
    import pytest, vramtrack
    device = vramtrack.SimulatedDevice()
    kept = []

    @pytest.fixture(autouse=True)
    def simulated():
        with vramtrack.use_source(device):
            yield

    @pytest.mark.limit_gpu_leaks("0.2 MiB/iter", collect=False)
    def test_fills():
        if len(kept) < 800:
            kept.append(device.allocate(5 * 2**20))
"""


def test_what_is_inconclusive_is_skipped_or_fails_by_choice(pytester):
    done = run_suite(pytester, "--vramtrack", "--junitxml=out.xml", suite=INCONCLUSIVE)
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["inconclusive *test_fills*: grows 5.00 MiB/iteration*"])
    (case,) = ElementTree.parse(pytester.path / "out.xml").iter("testcase")
    assert "the leak gate is inconclusive" in case.find("skipped").get("message")
    run_suite(pytester, "--vramtrack", "--vramtrack-inconclusive=fail", suite=INCONCLUSIVE).assert_outcomes(failed=1)
    pytester.makeini("[pytest]\nvramtrack_inconclusive = fail\n")
    run_suite(pytester, "--vramtrack", suite=INCONCLUSIVE).assert_outcomes(failed=1)


NO_GPU = """
    import sys
    sys.modules["torch"] = None
    import pytest

    @pytest.mark.limit_gpu_leaks
    def test_marked(): pass

    def test_fixture(gpu_leaks): gpu_leaks.check(lambda: None)
"""


def test_without_a_gpu_it_fails_in_one_line(pytester):
    done = run_suite(pytester, "--vramtrack", suite=NO_GPU)
    done.assert_outcomes(failed=2)
    text = done.stdout.str()
    assert "so there is no GPU memory to read" in text and "--vramtrack-no-gpu=skip" in text
    assert "Error" not in text and "def " not in text and len(done.stdout.lines) < 25, "none of the plugin's source"


def test_without_a_gpu_it_is_skipped_where_that_is_said(pytester):
    run_suite(pytester, "--vramtrack", "--vramtrack-no-gpu=skip", suite=NO_GPU).assert_outcomes(skipped=2)
    pytester.makeini("[pytest]\nvramtrack_no_gpu = skip\n")
    run_suite(pytester, "--vramtrack", suite=NO_GPU).assert_outcomes(skipped=2)
    run_suite(pytester, "--vramtrack", "--vramtrack-no-gpu=fail", suite=NO_GPU).assert_outcomes(failed=2)
    pytester.makeini("[pytest]\nvramtrack_no_gpu = perhaps\n")
    assert "expected fail or skip" in run_suite(pytester, suite=NO_GPU).stderr.str()


def test_a_body_that_fails_later_says_which_call_it_was(pytester):
    suite = """
        import pytest, vramtrack
        calls = []

        @pytest.mark.limit_gpu_leaks
        def test_body():
            calls.append(0)
            assert len(calls) < 2, "twice"

        def test_fixture(gpu_leaks):
            gpu_leaks.check(lambda: 1 / (len(calls) - 2))
    """
    simulated = "import vramtrack\nvramtrack.set_default_source(vramtrack.SimulatedDevice())\n"
    pytester.makeconftest(simulated)
    done = run_suite(pytester, "--vramtrack", "-rN", suite=suite)
    done.assert_outcomes(failed=2)
    text = done.stdout.str()
    assert text.count("call 2") == 1 and "the leak gate repeats the body" in text, "a first call fails as ever"
    assert "twice" in text and "ZeroDivisionError" in text
    assert "pytest_plugin.py" not in text and "gate.py" not in text, "none of the plugin's source"


def test_what_is_not_gated_is_warned_of(pytester):
    suite = """
        import pytest, unittest, vramtrack
        device = vramtrack.SimulatedDevice()
        vramtrack.set_default_source(device)

        class TestOld(unittest.TestCase):
            @pytest.mark.limit_gpu_leaks
            def test_leaks(self):
                device.allocate(2**20)

        def test_forgets(gpu_leaks):
            pass

        def test_checks(gpu_leaks):
            gpu_leaks.check(lambda: None)

        def test_fails_before(gpu_leaks):
            assert False
    """
    done = run_suite(pytester, "--vramtrack", suite=suite)
    done.assert_outcomes(passed=3, failed=1, warnings=2)
    text = done.stdout.str()
    assert "test_leaks is a method of unittest.TestCase: limit_gpu_leaks cannot repeat it and has no effect" in text
    assert "test_forgets requests gpu_leaks but never calls gpu_leaks.check(), so nothing was gated" in text
    run_suite(pytester, suite=suite).assert_outcomes(passed=3, failed=1, warnings=0)


def test_plugin_leaves_async_tests_alone(pytester):
    pytester.makepyfile('import pytest\n\n@pytest.mark.limit_gpu_leaks("1 MiB/iter")\nasync def test_body(): assert False\n')
    done = pytester.runpytest_subprocess(*plugin_options(), "-p", "no:cacheprovider", "--vramtrack")
    assert "is async: limit_gpu_leaks cannot repeat it" in done.stdout.str()
    assert "1 passed" not in done.stdout.str()
