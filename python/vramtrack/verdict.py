"""Verdict: what vramtrack concludes about one series, and detect(), which concludes it."""
from __future__ import annotations

import json
from array import array
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from vramtrack import _core, chart
from vramtrack.chart import Series

MIB = 2**20


class Interval(NamedTuple):
    """10th, 50th and 90th percentile."""

    low: float
    mid: float
    high: float


class Suspect(NamedTuple):
    """The process whose growth explains the device's; `pid` None: no visible one does."""

    pid: Optional[int]
    command: str
    share: float


@dataclass(frozen=True)
class Finding:
    """One detector's opinion that was not the winning one."""

    detector: str
    leak: bool
    state: str
    pattern: str
    confidence: float
    growth_bytes_per_s: Interval
    r_squared: float
    oom_in_s: Optional[Interval]
    because: str


@dataclass(frozen=True)
class Alert:
    """What a live watch of the same samples would have raised, and when (seconds since the first sample)."""

    raised: Optional[str]
    raised_s: float
    cleared: Optional[str]
    cleared_s: Optional[float]
    ended: str
    severity: str
    leak: bool
    pattern: str
    confidence: float
    growth_bytes_per_s: Interval
    oom_in_s: Optional[Interval]


@dataclass(frozen=True)
class Verdict:
    """The fields of vramtrack.analysis.v1 (docs/formats/analysis.md) as attributes; str() gives it in words.

    In a notebook it shows itself with a chart. `growth_per` is filled by Watch: growth in bytes for each kind of mark
    ("step", "epoch", "request").
    """

    leak: bool
    state: str
    pattern: str
    spike: Optional[str]
    severity: str
    detector: str
    confidence: float
    growth_bytes_per_s: Interval
    r_squared: float
    oom_in_s: Optional[Interval]
    onset: Optional[str]
    onset_s: Optional[float]
    because: str
    dissent: Tuple[Finding, ...] = ()
    suspect: Optional[Suspect] = None
    framework: Optional[str] = None
    causes: Tuple[str, ...] = ()
    alerts: Tuple[Alert, ...] = ()
    metric: str = "device_used"
    capacity_bytes: Optional[int] = None
    samples: int = 0
    start: Optional[str] = None
    end: Optional[str] = None
    duration_s: float = 0.0
    interval_s: float = 0.0
    warnings: Tuple[str, ...] = ()
    explain: Tuple[str, ...] = ()
    growth_per: Dict[str, float] = field(default_factory=dict)
    text: str = ""
    series: Series = field(default_factory=Series, repr=False)
    #: the analysis line as it is: everything, also fields newer than this class
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        words = self.text or f"{self.state}: {self.because}"
        for mark, growth in self.growth_per.items():
            words += f"\n  per {mark:<8} {growth / MIB:+.1f} MiB per {mark}"
        return words

    def with_growth_per(self, growth: Dict[str, float]) -> "Verdict":
        return replace(self, growth_per=dict(growth))

    def to_json(self) -> str:
        """The vramtrack.analysis.v1 line."""
        return json.dumps(self.raw, ensure_ascii=False)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        return str(self).partition("\n")[0]

    def _repr_svg_(self) -> Optional[str]:
        return chart.svg(
            self.series,
            label=self.headline,
            duration_s=self.duration_s,
            interval_s=self.interval_s,
            clock_is_relative=self.start is None,
            capacity_bytes=self.capacity_bytes,
            alerts_s=[alert.raised_s for alert in self.alerts],
            onset_s=self.onset_s if self.leak else None,
            oom_in_s=self.oom_in_s if self.leak else None,
            growth_bytes_per_s=self.growth_bytes_per_s.mid,
        )

    def _repr_html_(self) -> str:
        reasons = [self.because]
        if self.growth_per:
            reasons.append(", ".join(f"{size / MIB:+.1f} MiB per {mark}" for mark, size in self.growth_per.items()))
        return chart.html(self.headline, self._repr_svg_(), reasons, self.causes)


_NO_SAMPLES = {"leak": False, "state": "too_short", "pattern": "none", "spike": None, "severity": "ok", "detector": "judge",
               "confidence": 0.0, "growth_bytes_per_s": {"low": 0.0, "mid": 0.0, "high": 0.0}, "r_squared": 0.0,
               "oom_in_s": None, "onset": None, "onset_s": None, "because": "no samples", "dissent": [], "suspect": None,
               "framework": None, "causes": []}  # fmt: skip


def _interval(value: Any) -> Any:
    return None if value is None else Interval(value["low"], value["mid"], value["high"])


def _alert(a: Dict[str, Any]) -> Alert:
    return Alert(
        a["raised"], a["raised_s"], a["cleared"], a["cleared_s"], a["ended"], a["severity"], a["leak"], a["pattern"],
        a["confidence"], _interval(a["growth_bytes_per_s"]), _interval(a["oom_in_s"]),
    )  # fmt: skip


def _finding(f: Dict[str, Any]) -> Finding:
    return Finding(
        f["detector"], f["leak"], f["state"], f["pattern"], f["confidence"], _interval(f["growth_bytes_per_s"]),
        f["r_squared"], _interval(f["oom_in_s"]), f["because"],
    )  # fmt: skip


# The words are the command line's; what they advise is said in Python's terms.
_OPTIONS = (
    ("(--interval)", "(interval_s of a Watch)"),
    ("say it with --capacity, as in --capacity 24GiB", "give capacity_bytes, as in capacity_bytes=24 * 2**30"),
    ("say it with --capacity", "give capacity_bytes"),
    ("earlier ones are in --format json", "earlier ones are in Verdict.alerts"),
)


def in_python(words: str) -> str:
    """The words without options of the command line."""
    for option, ours in _OPTIONS:
        words = words.replace(option, ours)
    return words


def verdict_of(analysis: Any, metric: str) -> Verdict:
    """What the core has concluded, as Python gives it."""
    line: Dict[str, Any] = json.loads(analysis.line) if analysis.line else {}
    columns = (analysis.times_s, analysis.low_bytes, analysis.high_bytes, analysis.mean_bytes)
    return _verdict(line, in_python(analysis.text), Series(*(tuple(values) for values in columns)), metric)


def _verdict(line: Dict[str, Any], text: str, series: Series, metric: str) -> Verdict:
    v = line.get("verdict", _NO_SAMPLES)
    suspect = v.get("suspect")
    return Verdict(
        leak=v["leak"],
        state=v["state"],
        pattern=v["pattern"],
        spike=v["spike"],
        severity=v["severity"],
        detector=v["detector"],
        confidence=v["confidence"],
        growth_bytes_per_s=_interval(v["growth_bytes_per_s"]),
        r_squared=v["r_squared"],
        oom_in_s=_interval(v["oom_in_s"]),
        onset=v["onset"],
        onset_s=v["onset_s"],
        because=v["because"],
        dissent=tuple(_finding(f) for f in v["dissent"]),
        suspect=None if suspect is None else Suspect(suspect["pid"], suspect["command"], suspect["share"]),
        framework=v["framework"],
        causes=tuple(v["causes"]),
        alerts=tuple(_alert(a) for a in line.get("alerts", ())),
        metric=metric,
        capacity_bytes=line.get("capacity_bytes"),
        samples=line.get("samples", 0),
        start=line.get("start"),
        end=line.get("end"),
        duration_s=line.get("duration_s", 0.0),
        interval_s=line.get("interval_s", 0.0),
        warnings=tuple(line.get("warnings", ())),
        explain=tuple(line.get("explain", ())),
        text=text.rstrip("\n"),
        series=series,
        raw=line,
    )


def column(values: Any, name: str) -> Any:
    """What the core reads without a copy, or one copy as 64-bit floats."""
    if hasattr(values, "to_numpy"):  # a column of a table
        values = values.to_numpy()
    dtype = getattr(values, "dtype", None)
    if dtype is not None:
        if getattr(values, "ndim", 1) != 1:
            raise ValueError(f"{name} has {values.ndim} dimensions: expected one")
        if str(dtype) == "float64" and values.flags["C_CONTIGUOUS"]:
            return values
        if hasattr(values, "astype") and dtype.kind in "iufb":
            return values.astype("float64", order="C")
        raise ValueError(f"{name} has the type {dtype}: expected numbers")
    if isinstance(values, array) and values.typecode == "d":
        return values
    try:
        return array("d", [float("nan") if value is None else value for value in values])
    except TypeError:
        raise ValueError(f"{name} is {type(values).__name__}: expected a sequence of numbers or a NumPy array") from None


def detect(
    times_s: Sequence[float],
    used_bytes: Sequence[float],
    capacity_bytes: Optional[float] = None,
    *,
    metric: str = "device_used",
    settings: Optional[Dict[str, Any]] = None,
    explain: bool = False,
    device_id: int = 0,
) -> Verdict:
    """What `vramtrack analyze` would conclude of these samples.

    times_s         seconds since 1970, or since some beginning; never decreasing
    used_bytes      as many; NaN (or None in a list) where nothing could be read: missing is not zero
    capacity_bytes  where memory ends; without it there is no oom_in_s
    metric          "device_used", "process_used", "allocator_allocated" or "allocator_reserved"
    settings        any of docs/CONFIG.md: {"detection.leak-prior": 0.2}
    explain         fills Verdict.explain with every gate and figure
    device_id       the GPU's number, for the words

    Contiguous float64 arrays are read where they lie; anything else is copied once. The GIL is free meanwhile.
    ValueError: what cannot be used, and where. Cost: some 0.2 us a sample.
    """
    times, used = column(times_s, "times_s"), column(used_bytes, "used_bytes")
    capacity = None if capacity_bytes is None else float(capacity_bytes)
    most = _core.largest(used)
    if capacity is not None and capacity > 0 and 1.01 * capacity < most < float("inf"):
        # 1 %: the driver and the allocator do not count quite the same.
        raise ValueError(f"used_bytes reaches {_words(most)}, above capacity_bytes={capacity:.0f}: bytes are expected of both")
    verdict = verdict_of(_core.analyze(times, used, capacity, metric, assignments(settings), explain, device_id), metric)
    if 0 < most < MIB:
        note = f"used_bytes never exceeds {most:g}: bytes are expected"
        text = verdict.text.rstrip("\n") + f"\n  warning    {note}\n" if verdict.text else ""
        verdict = replace(verdict, text=text, warnings=(*verdict.warnings, note))
    return verdict


def _words(size: float) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


def assignments(settings: Optional[Dict[str, Any]]) -> List[str]:
    """Settings as the core reads them."""
    return [f"{name}={_setting(value)}" for name, value in (settings or {}).items()]


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return json.dumps(list(value))
    return str(value)
