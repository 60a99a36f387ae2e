// Words for the figures and kinds that the agent reports: health, gauges, names. Its conclusions come as words
// (ConclusionWords in types.ts) and are shown unchanged. Pure.
import { moment, printable } from "./format";
import type { Condition, Series, Tone } from "./types";
import { seconds } from "./format";

export const conditionTone = (level: Condition["level"]): Tone =>
  ({ unknown: "faint", healthy: "ok", degraded: "warning", failing: "critical" } as const)[level] ?? "faint";

/** "temperature 71 °C; ECC on, 0 uncorrected; throttle: power cap; no XID error seen" */
export function healthWords(s: Series, nowS: number): string {
  const xid = s.last_xid;
  const xidWords = xid
    ? `last ${printable(xid.text) || `XID ${xid.code}`}, at ${moment(seconds(xid.time), nowS)}`
    : s.health?.hears_xids ? "no XID error seen" : "XID not known";
  return `${printable(s.condition?.words ?? "not known")}; ${xidWords}`;
}

/** A shape for each tone, because colour must not be the only sign. */
export const toneMark: Record<Tone, string> = {
  plain: "",
  critical: "▲",
  warning: "▲",
  watch: "●",
  notice: "↗",
  ok: "✓",
  faint: "…",
};

const figure = (value: number | null | undefined, unit: string): string =>
  value === null || value === undefined || !Number.isFinite(value) ? "–" : `${value.toFixed(0)}${unit}`;

/** 0.87 -> "87 %"; "–" if the driver does not report it. */
export const ratioOrDash = (ratio: number | null | undefined): string =>
  figure(ratio === null || ratio === undefined ? ratio : ratio * 100, " %");

/** The figures of a device: name and value, the most important first. Empty if none is reported. */
export function gauges(s: Series): [string, string][] {
  const g = s.gauges;
  if (s.utilisation_ratio === null && !g) return [];
  const limit = g?.power_limit_watts ?? null;
  const power = limit === null ? figure(g?.power_watts, " W") : `${figure(g?.power_watts, "")}/${figure(limit, " W")}`;
  return [
    ["busy", ratioOrDash(s.utilisation_ratio)],
    ["temperature", figure(g?.temperature_celsius, " °C")],
    ["power", g?.power_watts === null || g?.power_watts === undefined ? "–" : power],
    ["SM clock", typeof g?.sm_clock_hertz === "number" ? `${+(g.sm_clock_hertz / 1e9).toFixed(2)} GHz` : "–"],
    ["fan", ratioOrDash(g?.fan_ratio)],
    ["memory bus", ratioOrDash(g?.memory_utilisation_ratio)],
  ];
}

interface Named {
  id: string;
  index: number | null;
  parent_id?: string;
}

/** "GPU 0"; its id if it has no index. */
export function deviceShort(d: Named): string {
  return `${d.parent_id ? "MIG" : "GPU"} ${d.index ?? printable(d.id)}`;
}

export function commandOf(s: Series): string {
  const p = s.process;
  return printable(p ? p.command || p.name : "") || `pid ${s.pid}`;
}
