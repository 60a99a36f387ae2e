// A verdict in words: those of src/report/words.cpp. Pure.
import { bytes, moment, percent, printable } from "./format";
import type { Alert, Condition, Finding, Pattern, Series, Severity, Stall, Suspect, Verdict } from "./types";
import { seconds } from "./format";

const kPatterns: Record<Pattern, string> = {
  none: "no pattern",
  gradual_leak: "gradual leak",
  sudden_spike: "sudden spike",
  cyclic: "cyclic growth",
  step_increase: "step increase",
  unknown: "no known pattern",
};

export const patternWords = (pattern: Pattern): string => kPatterns[pattern] ?? "no known pattern";

export function verdictWords(f: Finding): string {
  if (f.leak) return `LEAK (${patternWords(f.pattern)})`;
  if (f.stage === "suspected") return "suspected leak, not confirmed";
  switch (f.state) {
    case "steady":
    case "cycling":
    case "falling":
      return f.state;
    case "warming_up":
      return "warming up";
    case "growing":
      return "growing, not yet decidable";
    case "leaking":
      return "rising like a leak, not enough evidence";
    case "slow_growth":
      return "slow growth";
    case "spiked":
      if (f.spike === "stabilised") return "spiked, then stabilised";
      return f.spike === "still_growing" ? "spiked, still growing" : "spiked";
    case "too_short":
      return "too short to tell";
    default:
      return "unknown";
  }
}

export const kRank = { critical: 3, warning: 2, watch: 1, ok: 0 };

/** What colour a verdict has, beside its words. */
export type Tone = Exclude<Severity, "ok"> | "ok" | "notice" | "faint";

export function toneOf(v: Verdict): Tone {
  const f = v.finding;
  if (f.leak) return v.severity === "ok" ? "watch" : v.severity;
  if (f.stage === "suspected") return "notice";
  if (f.state === "growing" || f.state === "leaking" || f.state === "slow_growth") return "notice";
  if (f.state === "spiked") return f.spike === "stabilised" ? "ok" : "notice";
  return f.state === "too_short" ? "faint" : "ok";
}

export const conditionTone = (level: Condition["level"]): Tone =>
  ({ unknown: "faint", healthy: "ok", degraded: "warning", failing: "critical" } as const)[level] ?? "faint";

/** "temperature 71 °C; ECC on, 0 uncorrected; throttle: power cap; no XID error seen" */
export function healthWords(s: Series, nowS: number): string {
  const xid = s.last_xid;
  const heard = xid
    ? `last ${printable(xid.text) || `XID ${xid.code}`}, at ${moment(seconds(xid.time), nowS)}`
    : s.health?.hears_xids ? "no XID error seen" : "XID not known";
  return `${printable(s.condition?.words ?? "not known")}; ${heard}`;
}

/** A shape for each tone: colour is never alone. */
export const toneMark: Record<Tone, string> = {
  critical: "▲",
  warning: "▲",
  watch: "●",
  notice: "↗",
  ok: "✓",
  faint: "…",
};

const figure = (value: number | null | undefined, unit: string): string =>
  value === null || value === undefined || !Number.isFinite(value) ? "–" : `${value.toFixed(0)}${unit}`;

/** 0.87 -> "87 %"; "–" where the driver does not tell. */
export const ratioOrDash = (ratio: number | null | undefined): string =>
  figure(ratio === null || ratio === undefined ? ratio : ratio * 100, " %");

/** What a device does and shows: name and figure, the most telling first. Empty where nothing is told. */
export function gauges(s: Series): [string, string][] {
  const g = s.gauges;
  if (s.utilisation_ratio === null && !g) return [];
  const limit = g?.power_limit_watts ?? null;
  const power = limit === null ? figure(g?.power_watts, " W") : `${figure(g?.power_watts, "")}/${figure(limit, " W")}`;
  return [
    ["busy", ratioOrDash(s.utilisation_ratio)],
    ["temperature", figure(g?.temperature_celsius, " °C")],
    ["power", g?.power_watts === null || g?.power_watts === undefined ? "–" : power],
    ["fan", ratioOrDash(g?.fan_ratio)],
    ["memory bus", ratioOrDash(g?.memory_utilisation_ratio)],
  ];
}

interface Named {
  id: string;
  index: number | null;
  parent_id?: string;
}

/** "GPU 0"; without an index its id. */
export function deviceShort(d: Named): string {
  return `${d.parent_id ? "MIG" : "GPU"} ${d.index ?? printable(d.id)}`;
}

export function commandOf(s: Series): string {
  const p = s.process;
  return printable(p ? p.command || p.name : "") || `pid ${s.pid}`;
}

export function suspectWords(s: Suspect): string {
  const share = percent(Math.min(1, Math.max(0, s.share)));
  if (s.pid === 0) return `no visible process explains ${share} of the growth`;
  return `pid ${s.pid} ${printable(s.command)}: ${share} of the growth`;
}

/** The causes come first, then what to try, each such line marked "try: ". */
export function causesAndAdvice(v: Verdict): { causes: string[]; advice: string[] } {
  return {
    causes: v.causes.filter((c) => !c.startsWith("try: ")),
    advice: v.causes.filter((c) => c.startsWith("try: ")).map((c) => c.slice(5)),
  };
}

export function alertEnd(a: Alert): string {
  return {
    standing: "still active", released: "memory released", process_ended: "process ended", withdrawn: "withdrawn",
    resumed: "makes progress again",
  }[a.ended] ?? "ended";
}

/** What an alert is about. */
export const alertWords = (a: Alert): string => (a.kind === "stall" ? "stalled process" : a.kind === "unreleased" ? "not released" : patternWords(a.finding.pattern));

export const stallTone = (judgement: Stall["judgement"]): Tone =>
  ({ stalled: "warning", unclear: "notice", idle: "faint" } as const)[judgement] ?? "faint";

const kDriverBytes = 768 * 1024 * 1024;

/** Names what no process holds, as `vramtrack top` does: little of it is the driver's own. */
export function unattributedWords(rest: number, capacity: number | null): string {
  if (rest < 0) return `${bytes(-rest)} counted twice (shared)`;
  return rest <= Math.max(kDriverBytes, (capacity ?? 0) * 0.01)
    ? `${bytes(rest)} driver`
    : `${bytes(rest)} held by no visible process`;
}
