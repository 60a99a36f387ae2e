"""The fixture gpu_wait: what it asks `vramtrack wait`, and what a test says when the time is over."""
import pytest
from plugin_options import plugin_options

PROGRAM = """#!/bin/sh
echo "$@" >> "{folder}/asked"
echo "waiting for something"
{then}
"""


@pytest.fixture
def run(pytester, monkeypatch):
    def run(body, then, *options):
        program = pytester.path / "program"
        program.write_text(PROGRAM.format(folder=pytester.path, then=then))
        program.chmod(0o755)
        monkeypatch.setenv("VRAMTRACK_PROGRAM", str(program))
        pytester.makepyfile(body)
        return pytester.runpytest_subprocess(*plugin_options(), "-p", "no:cacheprovider", *options)

    return run


def asked(pytester):
    return (pytester.path / "asked").read_text().splitlines()


def test_it_waits_and_the_test_goes_on(run, pytester):
    result = run("""
        def test_serving(gpu_wait):
            gpu_wait(free="20GiB", gpu=[0, 1], timeout_s=90)
            gpu_wait(free=2**30)
            gpu_wait(empty=True, user="ada", container="0123")
            gpu_wait(pid=4242, gone=True)
    """, "exit 0")  # fmt: skip
    result.assert_outcomes(passed=1)
    assert asked(pytester) == [
        "wait --timeout 90s --free 20GiB --gpu 0 --gpu 1",
        "wait --timeout 60s --free 1073741824B",
        "wait --timeout 60s --user ada --container 0123 --empty",
        "wait --timeout 60s --pid 4242 --gone",
    ]


BODY = """
    def test_serving(gpu_wait):
        gpu_wait(free="20GiB")
"""


def test_when_the_time_is_over_the_test_fails_and_names_the_holder(run):
    result = run(BODY, 'echo "vramtrack: not met:" >&2; echo "  pid 7 python holds 70.0 GiB" >&2; exit 1')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["vramtrack: not met:", "*pid 7 python holds 70.0 GiB"])


@pytest.mark.parametrize("option, outcome", [("--vramtrack-no-gpu=skip", "skipped"), ("--vramtrack-no-gpu=fail", "failed")])
def test_without_a_gpu_it_does_what_the_option_says(run, option, outcome):
    run(BODY, 'echo "vramtrack: no GPU found: none" >&2; exit 2', option).assert_outcomes(**{outcome: 1})


def test_without_the_program_it_says_what_to_do(pytester, monkeypatch):
    monkeypatch.delenv("VRAMTRACK_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", "")
    pytester.makepyfile(BODY)
    result = pytester.runpytest_subprocess(*plugin_options(), "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["gpu_wait needs the program vramtrack*VRAMTRACK_PROGRAM"])
