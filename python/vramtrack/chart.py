"""The chart of a verdict: the series, its trend, where memory ends, and when it will."""
from __future__ import annotations

from html import escape
from typing import List, Optional, Tuple

from vramtrack.verdict import Verdict

_WIDTH, _HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 54, 34
_COLOURS = {"critical": "#c62828", "warning": "#b85c00", "watch": "#8a6d00", "ok": "#2e7d32"}


def size_text(size_bytes: float) -> str:
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(size_bytes) >= scale:
            return f"{size_bytes / scale:.1f} {unit}"
    return f"{size_bytes:.0f} B"


def time_text(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f}s"
    if seconds < 7200:
        return f"{seconds / 60:.0f}m"
    if seconds < 172800:
        return f"{seconds / 3600:.1f}h"
    return f"{seconds / 86400:.1f}d"


def _tick_text(seconds: float, span_s: float) -> str:
    """All ticks of one axis in one unit."""
    for scale, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if span_s >= 2 * scale:
            return f"{round(seconds / scale, 1):g}{unit}"
    return f"{round(seconds, 1):g}s"


def headline(v: Verdict) -> str:
    return ", ".join(filter(None, _headlines(v)))


def _headlines(v: Verdict) -> Tuple[str, str]:
    """What it is, and when it ends: a line each."""
    words = f"LEAK ({v.pattern.replace('_', ' ')})" if v.leak else v.state.replace("_", " ")
    if v.leak or v.state in ("growing", "slow_growth"):
        words += f", {v.growth_bytes_per_s.mid * 60 / 2**20:+.1f} MiB/min, confidence {100 * v.confidence:.0f} %"
    if v.oom_in_s is None:
        return words, ""
    low, mid, high = v.oom_in_s
    return words, f"out of memory in {time_text(mid)} ({time_text(low)}\u2013{time_text(high)})"


def _ticks(low: float, high: float, count: int = 4) -> List[float]:
    return [low + (high - low) * k / count for k in range(count + 1)]


def svg(v: Verdict) -> str:
    """SVG without scripts or external parts; its colours follow a dark page."""
    s = v.series
    what, when = _headlines(v)
    colour = "#6b6b6b" if v.state in ("growing", "slow_growth") else _COLOURS.get(v.severity, "#2e7d32")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{escape(headline(v), quote=True)}" font-family="system-ui, sans-serif" font-size="12">'
        "<style>.vt{fill:#1a1a1a}.vt-bg{fill:#fff}.vt-dim{fill:#5a5a5a}.vt-grid{stroke:#e3e3e3}"
        "@media(prefers-color-scheme:dark){.vt{fill:#eee}.vt-bg{fill:#16181c}.vt-dim{fill:#a8a8a8}.vt-grid{stroke:#33363c}}</style>"
        f'<rect class="vt-bg" width="{_WIDTH}" height="{_HEIGHT}"/>'
        f'<text x="{_LEFT}" y="22" font-size="14" font-weight="600" fill="{colour}">{escape(what)}</text>'
        f'<text x="{_LEFT}" y="40" font-size="13" fill="{colour}">{escape(when)}</text>'
    )
    if len(s.times_s) < 2:
        return head + f'<text class="vt-dim" x="{_LEFT}" y="60">{escape(v.because)}</text></svg>'

    begin, last = s.times_s[0], s.times_s[-1]
    span = max(last - begin, 1e-9)
    # The future is shown as far as the late end of the prediction, but never more than twice the past.
    ahead = 0.0 if v.oom_in_s is None else min(1.08 * v.oom_in_s.high, 2.0 * span)
    top = max(s.high_bytes)
    shows_end = v.capacity_bytes is not None and (v.oom_in_s is not None or v.capacity_bytes < 2 * top)
    ceiling = float(v.capacity_bytes) * 1.04 if shows_end and v.capacity_bytes else top * 1.1 or 1.0
    floor = 0.0 if shows_end else max(0.0, min(s.low_bytes) - 0.5 * (top - min(s.low_bytes)))
    if ceiling <= floor:
        ceiling = floor + 1

    def x(time_s: float) -> float:
        return _LEFT + (time_s - begin) / (span + ahead) * (_WIDTH - _LEFT - _RIGHT)

    def y(size_bytes: float) -> float:
        return _HEIGHT - _BOTTOM - (size_bytes - floor) / (ceiling - floor) * (_HEIGHT - _TOP - _BOTTOM)

    def points(rows: List[Tuple[float, float]]) -> str:
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in rows)

    parts = [head]
    for value in _ticks(floor, ceiling):
        parts.append(f'<line class="vt-grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        parts.append(f'<text class="vt-dim" x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{size_text(value)}</text>')
    for offset in _ticks(0, span + ahead):
        anchor = "start" if offset == 0 else "end" if offset > span + ahead - 1e-9 else "middle"
        parts.append(
            f'<text class="vt-dim" x="{x(begin + offset):.1f}" y="{_HEIGHT - 12}" text-anchor="{anchor}">{_tick_text(offset, span + ahead)}</text>'
        )
    if v.oom_in_s is not None and ahead > 0:
        left, right = x(last + min(v.oom_in_s.low, ahead)), x(last + min(v.oom_in_s.high, ahead))
        parts.append(
            f'<rect class="vt-eta" x="{left:.1f}" y="{_TOP}" width="{max(2.0, right - left):.1f}" '
            f'height="{_HEIGHT - _TOP - _BOTTOM}" fill="#c62828" opacity="0.16"/>'
        )
        if v.oom_in_s.mid < ahead:
            parts.append(
                f'<line x1="{x(last + v.oom_in_s.mid):.1f}" x2="{x(last + v.oom_in_s.mid):.1f}" y1="{_TOP}" '
                f'y2="{_HEIGHT - _BOTTOM}" stroke="#c62828" stroke-dasharray="2 3"/>'
            )
    if shows_end and v.capacity_bytes:
        at = y(v.capacity_bytes)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#c62828"/>')
        parts.append(
            f'<text x="{_LEFT + 4}" y="{at + 14:.1f}" fill="#c62828">out of memory at {size_text(v.capacity_bytes)}</text>'
        )
    upper = [(x(t), y(h)) for t, h in zip(s.times_s, s.high_bytes)]
    lower = [(x(t), y(low)) for t, low in zip(s.times_s, s.low_bytes)]
    parts.append(f'<polygon class="vt-range" points="{points(upper + lower[::-1])}" fill="#1f6fb5" opacity="0.35"/>')
    middle = [(a, (b + d) / 2) for (a, b), (_, d) in zip(upper, lower)]
    parts.append(f'<polyline class="vt-series" points="{points(middle)}" fill="none" stroke="#1f6fb5" stroke-width="1.5"/>')
    trend = _trend(v, begin, last, ahead)
    if trend is not None:
        (t0, b0), (t1, b1) = trend
        if shows_end and v.capacity_bytes and b1 > v.capacity_bytes and b1 > b0:
            t1 = t0 + (v.capacity_bytes - b0) / (b1 - b0) * (t1 - t0)
            b1 = float(v.capacity_bytes)
        parts.append(
            f'<line class="vt-trend" x1="{x(t0):.1f}" y1="{y(b0):.1f}" x2="{x(t1):.1f}" y2="{y(b1):.1f}" '
            'stroke="#c62828" stroke-width="1.5" stroke-dasharray="6 4"/>'
        )
    parts.append("</svg>")
    return "".join(parts)


def _trend(v: Verdict, begin: float, last: float, ahead: float) -> Optional[Tuple[Tuple[float, float], Tuple[float, float]]]:
    """The line of the verdict's growth, from the onset on, through the middle of the last tenth of the series."""
    if not (v.leak or v.state in ("growing", "slow_growth")) or v.growth_bytes_per_s.mid <= 0:
        return None
    s = v.series
    tail = max(1, len(s.times_s) // 10)
    at = sum(s.times_s[-tail:]) / tail
    level = sum((low + high) / 2 for low, high in zip(s.low_bytes[-tail:], s.high_bytes[-tail:])) / tail
    slope = v.growth_bytes_per_s.mid
    start = begin + (v.onset_s or 0.0)
    start = max(start, at - (level - min(s.low_bytes)) / slope if slope > 0 else start, begin)
    return (start, level + slope * (start - at)), (last + ahead, level + slope * (last + ahead - at))


def html(v: Verdict) -> str:
    """The chart, and the reasons beneath it."""
    rows = [f"<p>{escape(v.because)}</p>"]
    if v.growth_per:
        rows.append(
            "<p>" + escape(", ".join(f"{size / 2**20:+.1f} MiB per {mark}" for mark, size in v.growth_per.items())) + "</p>"
        )
    if v.causes:
        rows.append("<ul>" + "".join(f"<li>{escape(cause)}</li>" for cause in v.causes) + "</ul>")
    return f'<div class="vramtrack-verdict">{svg(v)}{"".join(rows)}</div>'
