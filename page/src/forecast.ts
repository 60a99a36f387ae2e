// The forecast for the chart, if nothing changes: the trend of the past, and the band of predicted ends. Pure.
import { seconds } from "./format";
import type { Series } from "./types";

export interface Trend {
  fromS: number;
  toS: number;
  fromBytes: number;
  toBytes: number;
}

export interface Band {
  /** The verdict's time and the trend's level at that time: the start of the forecast. */
  atS: number;
  bytes: number;
  /** The level at which memory runs out. */
  limitBytes: number;
  /** When that level is reached: the 10th, 50th and 90th percentiles, in seconds since 1970. */
  lowS: number;
  midS: number;
  highS: number;
}

/** The agent's line, in the chart's units. */
export function trendOf(s: Series): Trend | null {
  const t = s.trend;
  return t && { fromS: seconds(t.from), toS: seconds(t.to), fromBytes: t.from_bytes, toBytes: t.to_bytes };
}

/** Only for a leak with a predicted end: the same ETA on every screen. */
export function bandOf(s: Series, trend: Trend | null): Band | null {
  const { finding, time } = s.verdict;
  const oom = finding.oom_in_s;
  if (!oom || !finding.leak || s.limit_bytes === null) return null;
  const at = seconds(time);
  return {
    atS: at,
    bytes: Math.min(s.limit_bytes, trend ? trend.toBytes : s.used_bytes),
    limitBytes: s.limit_bytes,
    lowS: at + oom.low,
    midS: at + oom.mid,
    highS: at + oom.high,
  };
}

/**
 * How far beyond now a chart of `pastS` reaches: the whole band if it fits, or up to its middle; if even its first end
 * is far off, enough to show its direction. Never so far that the past becomes a sliver.
 */
export function futureSeconds(band: Band | null, pastS: number): number {
  if (!band) return 0;
  const most = 1.5 * pastS;
  const all = 1.05 * (band.highS - band.atS);
  if (all <= most) return all;
  return band.lowS - band.atS <= most ? Math.min(1.1 * (band.midS - band.atS), most) : 0.3 * pastS;
}
