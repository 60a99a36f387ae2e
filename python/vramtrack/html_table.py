"""Tables for notebooks: the _repr_html_ of the package's results."""
from __future__ import annotations

from html import escape
from typing import Any, Iterable, List, Sequence, Tuple

from vramtrack.printable import printable

Row = Sequence[Any]
_NUMBER = ' style="text-align:right;white-space:nowrap"'


def _text(value: Any) -> str:
    return escape(printable(value))


def table(headline: str, columns: Sequence[str], rows: Iterable[Row], notes: Iterable[str] = ()) -> str:
    """A headline, a row for each of `rows`, and `notes` below. The first column is text, as is each column whose name ends in a full stop,
    which is not shown; the others are figures. The table contains no scripts and loads nothing."""
    is_text = [i == 0 or name.endswith(".") for i, name in enumerate(columns)]
    parts: List[str] = [f"<p><strong>{_text(headline)}</strong></p>"]
    body: List[Tuple[str, ...]] = [tuple(map(_text, row)) for row in rows]
    if body:
        head = "".join(f'<th scope="col"{"" if text else _NUMBER}>{_text(name.rstrip("."))}</th>' for name, text in zip(columns, is_text))
        lines = "".join("<tr>" + "".join(f"<td{'' if text else _NUMBER}>{cell}</td>" for cell, text in zip(row, is_text)) + "</tr>" for row in body)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>")
    parts += [f"<p>{_text(note)}</p>" for note in notes]
    return f'<div class="vramtrack-table">{"".join(parts)}</div>'
