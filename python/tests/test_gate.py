import random
import sys
import xml.etree.ElementTree as ElementTree

import pytest

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
    assert failed.value.result.low_bytes == pytest.approx(MIB / 2)
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
        assert report.passed == passes, str(report)


def test_garbage_in_cycles_is_no_leak(device):
    class Node:
        def __init__(self):
            self.me, self.handle = self, device.allocate(MIB)

        def __del__(self):
            device.free(self.handle)

    assert vramtrack.check(Node, "0.1 MiB/iter", iterations=(100, 200)).passed


def test_a_series_that_is_already_there():
    result = growth_of([1e9 + i * MIB for i in range(200)], "0.2 MiB/iter")
    assert result.failed and result.growth_bytes == pytest.approx(MIB) and "GrowthResult fails" in repr(result)
    assert growth_of([1e9] * 10).outcome == "too_short"


@pytest.mark.parametrize("limit, options, words", [
    ("fast", {}, "0.2 MiB/iter"), (-1, {}, "0 bytes"), (0, {"error_rate": 0.5}, "1e-6 to 0.05"), (0, {"caches": 99}, "0 to 16"),
])  # fmt: skip
def test_options_are_checked(device, limit, options, words):
    with pytest.raises(ValueError, match=words):
        vramtrack.run_gate(lambda: None, limit, **options)


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


def run_suite(pytester, *options):
    pytester.makepyfile(SUITE)
    plugin = [] if _plugin_is_installed() else ["-p", "vramtrack.pytest_plugin"]
    return pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", *options)


def _plugin_is_installed():
    from importlib.metadata import entry_points

    found = entry_points(group="pytest11") if sys.version_info >= (3, 10) else entry_points().get("pytest11", ())
    return any(entry.name == "vramtrack" for entry in found)


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


def test_plugin_leaves_async_tests_alone(pytester):
    pytester.makepyfile('import pytest\n\n@pytest.mark.limit_gpu_leaks("1 MiB/iter")\nasync def test_body(): assert False\n')
    plugin = [] if _plugin_is_installed() else ["-p", "vramtrack.pytest_plugin"]
    done = pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", "--vramtrack")
    assert "is async: limit_gpu_leaks does not repeat it" in done.stdout.str()
    assert "1 passed" not in done.stdout.str()
