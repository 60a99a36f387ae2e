"""The plugin's own outcomes of a test: pytest.fail() and pytest.skip() with messages that explain() does not take for a program's."""
from __future__ import annotations

from typing import Any, NoReturn

import pytest


def fail(words: str) -> NoReturn:
    """Fails the test with only these words."""
    __tracebackhide__ = True
    _raise_verdict(pytest.fail.Exception(words, pytrace=False))


def skip(words: str) -> NoReturn:
    """Skips the test for this reason."""
    __tracebackhide__ = True
    _raise_verdict(pytest.skip.Exception(words))


def _raise_verdict(outcome: Any) -> NoReturn:
    __tracebackhide__ = True
    outcome.is_verdict = True
    raise outcome
