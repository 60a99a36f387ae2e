"""pytest --vramtrack: repeats tests marked limit_gpu_leaks and fails those whose GPU memory grows with every repetition."""
from __future__ import annotations

import argparse
import inspect
import unittest
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import pytest

from vramtrack.printable import printable
from vramtrack.pytest_outcome import fail, skip

_DEFAULT_LIMIT = "0.2 MiB/iter"
_reports: List[Tuple[str, Any]] = []


def _iterations(text: str) -> Any:
    try:
        numbers = [int(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2) or not 1 <= numbers[0] <= numbers[-1]:
        raise argparse.ArgumentTypeError(f"{text!r}: expected the maximum, for example 1024, or the first look and the maximum, 128,1024")
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def _error_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 1e-6 <= rate <= 0.05:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a share from 1e-6 to 0.05, for example 1e-4")
    return rate


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("vramtrack", "GPU memory leaks")
    group.addoption("--vramtrack", action="store_true", help="repeat tests marked limit_gpu_leaks and fail those that leak GPU memory")
    group.addoption("--vramtrack-error-rate", type=_error_rate, default=1e-4, metavar="P",
                    help="share of healthy tests that may fail (default 1e-4)")  # fmt: skip
    group.addoption("--vramtrack-iterations", type=_iterations, default=1024, metavar="[LEAST,]MOST",
                    help="repetitions of a test: before the first look, and at most (default 128,1024)")  # fmt: skip
    group.addoption("--vramtrack-no-gpu", choices=("fail", "skip"), metavar="fail|skip",
                    help="what a gated test does on a machine without a GPU (default fail)")  # fmt: skip
    group.addoption("--vramtrack-inconclusive", choices=("skip", "fail"), metavar="skip|fail",
                    help="what a gated test does when growth above the limit is neither shown nor excluded (default skip)")  # fmt: skip
    parser.addini("vramtrack_inconclusive", "the same as --vramtrack-inconclusive", default="skip")
    parser.addini("vramtrack_no_gpu", "the same as --vramtrack-no-gpu", default="fail")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line(
        "markers",
        'limit_gpu_leaks(limit="0.2 MiB/iter", *, error_rate, iterations, caches, collect): with --vramtrack, repeat the test '
        "and fail it if GPU memory grows by more than the limit with each repetition",
    )
    if config.getini("vramtrack_no_gpu") not in ("fail", "skip"):
        raise pytest.UsageError(f"vramtrack_no_gpu is {config.getini('vramtrack_no_gpu')!r}: expected fail or skip")
    if config.getini("vramtrack_inconclusive") not in ("skip", "fail"):
        raise pytest.UsageError(f"vramtrack_inconclusive is {config.getini('vramtrack_inconclusive')!r}: expected skip or fail")
    _reports.clear()


def _limit_and_options(marker: Any) -> Tuple[Any, Dict[str, Any]]:
    options = dict(marker.kwargs)
    limit = marker.args[0] if marker.args else options.pop("limit", _DEFAULT_LIMIT)
    return limit, options


def _check_marker(marker: Any) -> None:
    from vramtrack.gate import check_arguments

    if len(marker.args) > 1:
        raise TypeError('limit_gpu_leaks takes one limit, for example limit_gpu_leaks("0.2 MiB/iter"), and keyword arguments')
    check_arguments(*_limit_and_options(marker), "limit_gpu_leaks")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: List[Any]) -> None:
    """Rejects invalid markers, with or without --vramtrack."""
    wrong: List[str] = []
    for item in items:
        marker = item.get_closest_marker("limit_gpu_leaks")
        if marker is None:
            continue
        try:
            _check_marker(marker)
        except (TypeError, ValueError) as error:
            wrong.append(f"{item.nodeid}: {error}")
    if wrong:
        raise pytest.UsageError("\n".join(wrong))


def _options(config: Any, own: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "error_rate": config.getoption("--vramtrack-error-rate"),
        "iterations": config.getoption("--vramtrack-iterations"),
        **own,
    }


def _no_gpu(config: Any) -> Any:
    return config.getoption("--vramtrack-no-gpu") or config.getini("vramtrack_no_gpu")


def _require_gpu(config: Any, options: Dict[str, Any]) -> None:
    from vramtrack.errors import NoDeviceError
    from vramtrack.sources import default_source

    if options.get("source") is not None:
        return
    try:
        default_source()
    except NoDeviceError as error:
        reason = f"{error}"
    else:
        return
    if _no_gpu(config) == "skip":
        skip(reason)
    fail(f"{reason}; or pass --vramtrack-no-gpu=skip to skip such tests")


def _counted(item: Any, body: Callable[[], Any]) -> Callable[[], Any]:
    """Before Python 3.11, exceptions have no notes; a section of the report then names the call that failed."""
    from vramtrack.gate import repeated_words

    calls = 0

    def counted() -> None:
        nonlocal calls
        __tracebackhide__ = True
        calls += 1
        try:
            body()
        except BaseException as error:
            if calls > 1 and not hasattr(error, "add_note"):
                item.add_report_section("call", "vramtrack", repeated_words(calls))
            raise

    return counted


def _gated(item: Any, body: Callable[[], Any], limit: Any, options: Dict[str, Any]) -> Any:
    from vramtrack.gate import check_arguments, run_gate

    __tracebackhide__ = True
    options = _options(item.config, options)
    try:
        check_arguments(limit, options, "gpu_leaks.check()")
    except (TypeError, ValueError) as error:
        fail(str(error))
    _require_gpu(item.config, options)
    report = run_gate(_counted(item, body), limit, **options)
    result = report.result
    # These become properties of the test in pytest's JUnit file.
    item.user_properties += [
        ("vramtrack_outcome", result.outcome),
        ("vramtrack_growth_bytes_per_iteration", round(result.growth_bytes, 1)),
        ("vramtrack_growth_low_bytes", round(result.low_bytes, 1)),
        ("vramtrack_growth_high_bytes", round(result.high_bytes, 1)),
        ("vramtrack_iterations", result.iterations),
        ("vramtrack_warm_up_iterations", result.warm_up_iterations),
    ]
    _reports.append((item.nodeid, report))
    if report.failed:
        fail(f"GPU memory {report}")
    if report.inconclusive:
        if (item.config.getoption("--vramtrack-inconclusive") or item.config.getini("vramtrack_inconclusive")) == "fail":
            fail(f"the leak gate is inconclusive: GPU memory {report}")
        skip(f"the leak gate is inconclusive: GPU memory {report.because}")
    return report


def _warn(item: Any, text: str) -> None:
    item.warn(pytest.PytestWarning(text))


def _not_repeated(item: Any) -> Optional[str]:
    """The reason why the marker has no effect on this test, or None."""
    if not isinstance(item, pytest.Function):
        return "not a test function"
    if item.cls is not None and issubclass(item.cls, unittest.TestCase):
        return "a method of unittest.TestCase"
    # A call would only create a coroutine. The plugin for async tests runs it.
    return "async" if inspect.iscoroutinefunction(item.obj) else None


def pytest_runtest_setup(item: Any) -> None:
    if item.config.getoption("--vramtrack") and item.get_closest_marker("limit_gpu_leaks") is not None:
        why = _not_repeated(item)
        if why is not None:
            _warn(item, f"{item.name} is {why}: limit_gpu_leaks cannot repeat it and has no effect; gate a part of it "
                        "with the fixture gpu_leaks or vramtrack.check()")  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Optional[bool]:
    marker = pyfuncitem.get_closest_marker("limit_gpu_leaks")
    if marker is None or not pyfuncitem.config.getoption("--vramtrack") or _not_repeated(pyfuncitem):
        return None
    __tracebackhide__ = True
    limit, options = _limit_and_options(marker)
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    def body() -> None:
        __tracebackhide__ = True
        pyfuncitem.obj(**arguments)

    _gated(pyfuncitem, body, limit, options)
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    if call.when == "call":
        item._vramtrack_ran = call.excinfo is None
    if call.excinfo is not None and item.config.getoption("--vramtrack"):
        from vramtrack.explanation import explained_words

        words = explained_words(call.excinfo.value)
        if words is not None:
            item.add_report_section(call.when, "out of memory", words)
    yield


class GpuLeaks:
    """The fixture gpu_leaks, which gates a part of a test. Without --vramtrack, that part runs once."""

    def __init__(self, item: Any) -> None:
        self._item = item
        self._asked = False

    def check(self, body: Callable[[], Any], limit: Any = _DEFAULT_LIMIT, **options: Any) -> Any:
        """Repeats body() and fails the test if it leaks. Returns the report, or None without --vramtrack."""
        __tracebackhide__ = True
        self._asked = True
        if not self._item.config.getoption("--vramtrack"):
            body()
            return None
        return _gated(self._item, body, limit, options)


@pytest.fixture
def gpu_leaks(request: Any) -> Iterator[GpuLeaks]:
    gate = GpuLeaks(request.node)
    yield gate
    ran_to_its_end = getattr(request.node, "_vramtrack_ran", False)
    if request.config.getoption("--vramtrack") and ran_to_its_end and not gate._asked:
        _warn(request.node, f"{request.node.name} requests gpu_leaks but never calls gpu_leaks.check(), so nothing was gated")


@pytest.fixture
def gpu_wait(request: Any) -> Any:
    """Waits until GPU memory is free, or fails the test and names who holds it: gpu_wait(free="20GiB", gpu=0)."""
    from vramtrack.gpu_wait import GpuWait

    return GpuWait(_no_gpu(request.config))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not _reports:
        return
    terminalreporter.section("GPU memory leaks (vramtrack)")
    for nodeid, report in _reports:
        word = "LEAKS" if report.failed else "passes" if report.passed else "inconclusive"
        terminalreporter.write_line(f"{word:<12} {printable(nodeid)}: {report.because}")
