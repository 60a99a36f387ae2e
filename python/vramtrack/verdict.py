"""detect() and its result, the Verdict on one series of memory samples."""
from __future__ import annotations

import json
from array import array
from dataclasses import dataclass, field, fields, replace
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from vramtrack import _core, chart
from vramtrack.chart import Series
from vramtrack.printable import printable
from vramtrack.units import MIB, format_change, format_size


class Interval(NamedTuple):
    """The 10th, 50th and 90th percentiles."""

    low: float
    mid: float
    high: float


class Suspect(NamedTuple):
    """The process whose growth explains the device's growth. `pid` None: no visible process explains it."""

    # fields: Suspect
    pid: Optional[int]
    command: Optional[str]
    share: float
    # end


class End(NamedTuple):
    """How a process, or the run of a device, ended. `pid` None: unknown. Times are seconds since the first sample."""

    # fields: End
    how: str
    time: Optional[str]
    time_s: float
    pid: Optional[int]
    used_bytes: int
    command: Optional[str]
    growth_bytes_per_s: Optional[float]
    onset: Optional[str]
    onset_s: Optional[float]
    confidence: Optional[float]
    r_squared: Optional[float]
    while_loading: bool
    # end


class Run(NamedTuple):
    """A period in which a device was in use. `pid` None: unknown. Times are seconds since the first sample."""

    # fields: Run
    begin: Optional[str]
    begin_s: float
    end: Optional[str]
    end_s: Optional[float]
    peak_bytes: int
    how: str
    pid: Optional[int]
    growth_bytes_per_s: Optional[float]
    onset: Optional[str]
    onset_s: Optional[float]
    first_alert: Optional[str]
    first_alert_s: Optional[float]
    lead_s: Optional[float]
    # end


class Fact(NamedTuple):
    """One line below a verdict. Lines with the same label are grouped."""

    label: str
    text: str


@dataclass(frozen=True)
class ConclusionWords:
    """The verdict in the same words as everywhere: `vramtrack analyze`, `top`, the dashboard, reports. Empty: nothing to report."""

    verdict: str = ""
    headline: str = ""
    tone: str = "faint"
    word: str = ""
    word_tone: str = "faint"
    concern: int = 0
    severity: str = ""
    pattern: str = ""
    forecast: str = ""
    end: str = ""
    suspect: str = ""
    by: str = ""
    stall: str = ""
    stall_tone: str = "plain"
    next: str = ""
    unattributed: str = ""
    facts: Tuple[Fact, ...] = ()
    advice: Tuple[Fact, ...] = ()
    dissent: Tuple[Fact, ...] = ()


@dataclass(frozen=True)
class AlertWords:
    """An alert in the same words as everywhere."""

    what: str = ""
    severity: str = ""
    tone: str = "plain"
    state: str = ""
    figures: str = ""
    ended: str = ""


@dataclass(frozen=True)
class Finding:
    """The finding of one of the other detectors."""

    # fields: Finding
    detector: str
    leak: bool
    state: str
    pattern: str
    confidence: float
    growth_bytes_per_s: Interval
    r_squared: float
    oom_in_s: Optional[Interval]
    because: str
    # end


@dataclass(frozen=True)
class Alert:
    """An alert that a live watch of the same samples would have raised. Times are seconds since the first sample."""

    # fields: Alert
    raised: Optional[str]
    raised_s: float
    cleared: Optional[str]
    cleared_s: Optional[float]
    lead_s: Optional[float]
    ended: str
    leak: bool
    pattern: str
    severity: str
    confidence: float
    growth_bytes_per_s: Interval
    oom_in_s: Optional[Interval]
    stage: Optional[str]
    suspected_s: Optional[float]
    kind: str
    end_kind: Optional[str]
    suspected_for_s: Optional[float]
    paged_because: Optional[str]
    incident: Optional[str]
    # end
    told: AlertWords = AlertWords()


@dataclass(frozen=True)
class Verdict:
    """The fields of vramtrack.analysis.v1 (docs/formats/analysis.md) as attributes. str() gives the verdict in words.

    A notebook shows it with a chart. Watch fills `growth_per`: growth in bytes for each kind of mark ("step", "epoch",
    "request"), and `ranks`: which ranks of the job grow, if one does.
    """

    # fields: Verdict
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
    ending: Optional[End] = None
    oom_if_growth_continues_s: Optional[float] = None
    stage: Optional[str] = None
    advice: Tuple[str, ...] = ()
    # end
    leaked: bool = False
    told: ConclusionWords = ConclusionWords()
    alerts: Tuple[Alert, ...] = ()
    suspicions: Tuple[Alert, ...] = ()
    paging: Optional[str] = None
    runs: Tuple[Run, ...] = ()
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
    ranks: str = ""
    text: str = ""
    series: Series = field(default_factory=Series, repr=False)
    #: the whole analysis line, including fields that this class does not have
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        words = self.text or f"{self.state}: {self.because}"
        for mark, growth in self.growth_per.items():
            name = printable(mark)
            words += f"\n  per {name:<8} {format_change(growth)} per {name}"
        if self.ranks:
            words += f"\n  ranks        {printable(self.ranks)}"
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
            reasons.append(", ".join(f"{format_change(size)} per {printable(mark)}" for mark, size in self.growth_per.items()))
        if self.ranks:
            reasons.append(printable(self.ranks))
        return chart.html(self.headline, self._repr_svg_(), reasons, self.causes, self.advice)


_GRADES = ("ok", "watch", "warning", "critical")


def is_graver(one: Verdict, other: Verdict) -> bool:
    """By severity, then by a much earlier end. A leak in the allocator appears in its verdict and the device's at about the same time."""
    if one.severity != other.severity:
        return _GRADES.index(one.severity) > _GRADES.index(other.severity)
    return one.oom_in_s is not None and (other.oom_in_s is None or one.oom_in_s.low < 0.5 * other.oom_in_s.low)


_NO_SAMPLES = {"leak": False, "state": "too_short", "pattern": "none", "spike": None, "severity": "ok", "detector": "judge",
               "confidence": 0.0, "growth_bytes_per_s": {"low": 0.0, "mid": 0.0, "high": 0.0}, "r_squared": 0.0,
               "oom_in_s": None, "onset": None, "onset_s": None, "because": "no samples", "dissent": [], "suspect": None,
               "framework": None, "causes": [], "advice": []}  # fmt: skip


def _of_line(kind: Any, line: Dict[str, Any]) -> Any:
    """An object of the class, from those of its fields that the analysis line has."""
    names = getattr(kind, "_fields", None) or [f.name for f in fields(kind)]
    return kind(**{name: _value(line[name]) for name in names if name in line})


def _value(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == set(Interval._fields):
        return Interval(**value)
    return tuple(value) if isinstance(value, list) else value


def _words_of(kind: Any, line: Dict[str, Any]) -> Any:
    told = line.get("told") or {}
    facts = {name: tuple(Fact(**fact) for fact in told[name]) for name in ("facts", "advice", "dissent") if name in told}
    return replace(_of_line(kind, told), **facts)


def _alert(line: Dict[str, Any]) -> Alert:
    return replace(_of_line(Alert, line), told=_words_of(AlertWords, line))


def verdict_of(analysis: Any, metric: str) -> Verdict:
    """The core's analysis as a Verdict."""
    line: Dict[str, Any] = json.loads(analysis.line) if analysis.line else {}
    columns = (analysis.times_s, analysis.low_bytes, analysis.high_bytes, analysis.mean_bytes)
    return _verdict(line, analysis.text, Series(*(tuple(values) for values in columns)), metric)


def _verdict(line: Dict[str, Any], text: str, series: Series, metric: str) -> Verdict:
    v = line.get("verdict", _NO_SAMPLES)
    return replace(
        _of_line(Verdict, v),
        dissent=tuple(_of_line(Finding, f) for f in v["dissent"]),
        suspect=None if v["suspect"] is None else _of_line(Suspect, v["suspect"]),
        ending=None if v.get("end") is None else _of_line(End, v["end"]),
        leaked=line.get("leaked", False),
        told=_words_of(ConclusionWords, line),
        alerts=tuple(_alert(a) for a in line.get("alerts", ())),
        suspicions=tuple(_alert(a) for a in line.get("suspicions", ())),
        paging=line.get("paging"),
        runs=tuple(_of_line(Run, r) for r in line.get("runs", ())),
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
    """The values in a form that the core reads without copying, or a single copy of them as 64-bit floats."""
    if hasattr(values, "to_numpy"):  # a column of a table
        values = values.to_numpy()
    dtype = getattr(values, "dtype", None)
    if dtype is not None:
        if getattr(values, "ndim", 1) != 1:
            raise ValueError(f"{name} has {values.ndim} dimensions; expected one")
        if str(dtype) == "float64" and values.flags["C_CONTIGUOUS"]:
            return values
        if hasattr(values, "astype") and dtype.kind in "iufb":
            return values.astype("float64", order="C")
        raise ValueError(f"{name} has the type {dtype}; expected numbers")
    if isinstance(values, array) and values.typecode == "d":
        return values
    try:
        return array("d", [float("nan") if value is None else value for value in values])
    except TypeError:
        raise ValueError(f"{name} is {type(values).__name__}; expected a sequence of numbers or a NumPy array") from None


def detect(
    times_s: Sequence[float],
    used_bytes: Sequence[float],
    capacity_bytes: Optional[float] = None,
    *,
    metric: str = "device_used",
    settings: Optional[Dict[str, Any]] = None,
    explain: bool = False,
    device_id: int = 0,
    beside: Optional[Mapping[str, Sequence[float]]] = None,
) -> Verdict:
    """The verdict that `vramtrack analyze` would give on these samples.

    times_s         seconds since 1970, or since any other beginning; they must not decrease
    used_bytes      one value for each time; NaN (or None in a list) where nothing could be read. Missing is not zero
    capacity_bytes  where memory ends; without it there is no oom_in_s
    metric          "device_used", "process_used", "allocator_allocated" or "allocator_reserved"
    settings        settings from docs/CONFIG.md: {"detection.leak-prior": 0.2}
    explain         True: fills Verdict.explain with every condition and figure behind the verdict
    device_id       the GPU's number in the verdict's words
    beside          other metrics of the same process and device at the same times, as a Watch's samples have them. Growth of
                    "allocator_reserved" is not a leak while "allocator_allocated" does not grow

    Contiguous float64 arrays are not copied; anything else is copied once. The GIL is released. It takes about 0.2 us per sample.
    ValueError: the argument and position that cannot be used.
    """
    times, used = column(times_s, "times_s"), column(used_bytes, "used_bytes")
    capacity = None if capacity_bytes is None else float(capacity_bytes)
    most = _core.largest(used)
    if capacity is not None and capacity > 0 and 1.01 * capacity < most < float("inf"):
        # 1 % more is accepted, because the driver and the allocator count slightly differently.
        raise ValueError(f"used_bytes reaches {format_size(most)}, above capacity_bytes={capacity:.0f}; give both in bytes")
    if beside:
        analysis = _analyze_beside(times, used, capacity, metric, assignments(settings), explain, device_id, beside)
    else:
        analysis = _core.analyze(times, used, capacity, metric, assignments(settings), explain, device_id)
    verdict = verdict_of(analysis, metric)
    if 0 < most < MIB:
        note = f"used_bytes never exceeds {most:g}; give it in bytes"
        text = verdict.text.rstrip("\n") + f"\n  warning    {note}\n" if verdict.text else ""
        verdict = replace(verdict, text=text, warnings=(*verdict.warnings, note))
    return verdict


def _analyze_beside(
    times: Any,
    used: Any,
    capacity: Optional[float],
    metric: str,
    settings: List[str],
    explain: bool,
    device_id: int,
    beside: Mapping[str, Sequence[float]],
) -> Any:
    stream = _core.Stream(metric, settings, device_id)
    if capacity is not None:
        stream.set_capacity(capacity)
    columns = [(name, column(values, f"beside[{name!r}]")) for name, values in beside.items() if name != metric]
    for name, values in [("used_bytes", used), *((f"beside[{name!r}]", values) for name, values in columns)]:
        if len(values) != len(times):
            raise ValueError(f"times_s has {len(times)} values and {name} {len(values)}: expected as many")
    for n, time_s in enumerate(times):
        stream.observe(time_s, used[n])
        for name, values in columns:
            stream.observe_beside(name, time_s, values[n])
    return stream.final_analysis(explain)


def assignments(settings: Optional[Dict[str, Any]]) -> List[str]:
    """The settings in the form that the core reads."""
    return [f"{name}={_setting(value)}" for name, value in (settings or {}).items()]


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return json.dumps(list(value))
    return str(value)
