"""pytest --vramtrack: tests marked with limit_gpu_leaks are repeated, and fail when GPU memory grows with every repetition."""
from __future__ import annotations

import inspect
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple

import pytest

_reports: List[Tuple[str, Any]] = []


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("vramtrack", "GPU memory leaks")
    group.addoption("--vramtrack", action="store_true", help="repeat tests marked limit_gpu_leaks and fail those that leak GPU memory")
    group.addoption("--vramtrack-error-rate", type=float, default=1e-4, metavar="P",
                    help="share of healthy tests that may fail (default 1e-4)")  # fmt: skip
    group.addoption("--vramtrack-iterations", type=int, default=1024, metavar="N",
                    help="most repetitions of a test (default 1024)")  # fmt: skip


def pytest_configure(config: Any) -> None:
    config.addinivalue_line(
        "markers",
        'limit_gpu_leaks(limit="0.2 MiB/iter", *, error_rate, iterations, caches, collect): with --vramtrack, repeat the test '
        "and fail it if GPU memory grows by more than the limit with each repetition",
    )
    _reports.clear()


def _options(config: Any, own: Dict[str, Any]) -> Dict[str, Any]:
    most = config.getoption("--vramtrack-iterations")
    options = {"error_rate": config.getoption("--vramtrack-error-rate"), "iterations": (min(128, most), most)}
    options.update(own)
    if isinstance(options["iterations"], int):
        options["iterations"] = (min(128, options["iterations"]), options["iterations"])
    return options


def _gated(item: Any, body: Callable[[], Any], limit: str, options: Dict[str, Any]) -> Any:
    from vramtrack.gate import run_gate

    report = run_gate(body, limit, **_options(item.config, options))
    result = report.result
    # They are properties of the test in pytest's JUnit file.
    item.user_properties += [
        ("vramtrack_outcome", result.outcome),
        ("vramtrack_growth_bytes_per_iteration", round(result.growth_bytes, 1)),
        ("vramtrack_growth_low_bytes", round(result.low_bytes, 1)),
        ("vramtrack_growth_high_bytes", round(result.high_bytes, 1)),
        ("vramtrack_iterations", result.iterations),
        ("vramtrack_warm_up_iterations", result.warm_up_iterations),
    ]
    _reports.append((item.nodeid, report))
    if not report.passed:
        pytest.fail(f"GPU memory {report}", pytrace=False)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Optional[bool]:
    marker = pyfuncitem.get_closest_marker("limit_gpu_leaks")
    if marker is None or not pyfuncitem.config.getoption("--vramtrack"):
        return None
    if len(marker.args) > 1:
        raise pytest.UsageError('limit_gpu_leaks takes one limit, for example limit_gpu_leaks("0.2 MiB/iter")')
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        # Called, it would make a coroutine and run nothing: left to the plugin that runs such tests.
        warnings.warn(f"{pyfuncitem.name} is async: limit_gpu_leaks does not repeat it; gate a part of it with the fixture gpu_leaks")
        return None
    options = dict(marker.kwargs)
    limit = marker.args[0] if marker.args else options.pop("limit", "0.2 MiB/iter")
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    def body() -> None:
        pyfuncitem.obj(**arguments)

    _gated(pyfuncitem, body, limit, options)
    return True


class GpuLeaks:
    """The fixture gpu_leaks: gates a part of a test. Without --vramtrack the part runs once."""

    def __init__(self, item: Any) -> None:
        self._item = item

    def check(self, body: Callable[[], Any], limit: str = "0.2 MiB/iter", **options: Any) -> Any:
        """Repeats body() and fails the test if it leaks; returns the report, None without --vramtrack."""
        if not self._item.config.getoption("--vramtrack"):
            body()
            return None
        return _gated(self._item, body, limit, options)


@pytest.fixture
def gpu_leaks(request: Any) -> GpuLeaks:
    return GpuLeaks(request.node)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not _reports:
        return
    terminalreporter.section("GPU memory leaks (vramtrack)")
    for nodeid, report in _reports:
        word = "LEAKS" if not report.passed else report.result.outcome.replace("_", " ")
        terminalreporter.write_line(f"{word:<10} {nodeid}: {report.result.because}")
