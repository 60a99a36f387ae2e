"""The chart of a verdict in a notebook, drawn by the C++ code that draws the charts of `vramtrack report --format html`."""
from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Optional, Sequence, Tuple

from vramtrack import _core


@dataclass(frozen=True)
class Series:
    """The samples behind a verdict, thinned out for drawing: range and mean of each of at most 600 intervals. `times_s` is the time of the
    first sample of each interval."""

    times_s: Tuple[float, ...] = ()
    low_bytes: Tuple[float, ...] = ()
    high_bytes: Tuple[float, ...] = ()
    mean_bytes: Tuple[float, ...] = ()


def svg(
    series: Series,
    *,
    label: str,
    duration_s: float,
    interval_s: float,
    clock_is_relative: bool,
    capacity_bytes: Optional[float],
    alerts_s: Sequence[float] = (),
    onset_s: Optional[float] = None,
    oom_in_s: Optional[Tuple[float, float, float]] = None,
    growth_bytes_per_s: float = 0.0,
) -> Optional[str]:
    """An SVG element without scripts or external parts; None with fewer than two points. `duration_s`, `alerts_s` and `onset_s`
    count from the first sample, `oom_in_s` from the last."""
    picture = _core.chart_svg(
        series.times_s, series.low_bytes, series.mean_bytes, series.high_bytes, duration_s=duration_s, interval_s=interval_s,
        clock_is_relative=clock_is_relative, capacity_bytes=capacity_bytes, alerts_s=alerts_s, onset_s=onset_s,
        oom_in_s=oom_in_s, growth_bytes_per_s=growth_bytes_per_s, label=label,
    )  # fmt: skip
    return picture or None


def html(headline: str, picture: Optional[str], reasons: Sequence[str], causes: Sequence[str], advice: Sequence[str] = ()) -> str:
    """The headline, the chart, and the reasons below it."""
    parts = [f"<p><strong>{escape(headline)}</strong></p>", picture or ""]
    parts += [f"<p>{escape(reason)}</p>" for reason in reasons]
    lines = [*causes, *(f"try: {what}" for what in advice)]
    if lines:
        parts.append("<ul>" + "".join(f"<li>{escape(text)}</li>" for text in lines) + "</ul>")
    return f'<div class="vramtrack-verdict">{"".join(parts)}</div>'
