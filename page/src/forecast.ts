// Where memory goes if nothing changes: the trend through the past and the band of ends, for the chart. Pure.
import { seconds } from "./format";
import type { Columns, Verdict } from "./types";

export interface Trend {
  fromS: number;
  toS: number;
  fromBytes: number;
  toBytes: number;
}

export interface Band {
  /** The verdict's time and the trend's level there: where the future begins. */
  atS: number;
  bytes: number;
  capacityBytes: number;
  /** When the capacity is reached: the 10th, 50th and 90th percentile, in seconds since 1970. */
  lowS: number;
  midS: number;
  highS: number;
}

/** The slope is the verdict's, the level that of the points since the onset; later points weigh more. */
export function trendOf(v: Verdict, c: Columns): Trend | null {
  const f = v.finding;
  if (!f.onset || f.growth_bytes_per_s.mid === 0) return null;
  const onset = seconds(f.onset);
  const at = seconds(v.time);
  const slope = f.growth_bytes_per_s.mid;
  let sum = 0;
  let weights = 0;
  c.t.forEach((t, i) => {
    if (t < onset || t > at) return;
    const w = 0.1 + (t - onset) / Math.max(1, at - onset);
    sum += w * (c.mean[i]! + slope * (at - t));
    weights += w;
  });
  if (weights === 0) return null;
  const level = sum / weights;
  return { fromS: onset, toS: at, fromBytes: level - slope * (at - onset), toBytes: level };
}

/** Only for a verdict that says leak and when it ends: one ETA, the same on every screen. */
export function bandOf(v: Verdict, usedBytes: number, capacityBytes: number | null, trend: Trend | null): Band | null {
  const oom = v.finding.oom_in_s;
  if (!oom || !v.finding.leak || capacityBytes === null) return null;
  const at = seconds(v.time);
  return {
    atS: at,
    bytes: Math.min(capacityBytes, trend ? trend.toBytes : usedBytes),
    capacityBytes,
    lowS: at + oom.low,
    midS: at + oom.mid,
    highS: at + oom.high,
  };
}

/**
 * How far beyond now a chart of `pastS` reaches: all of the band where it fits, or up to its middle; where even its first
 * end is far off, enough to see where it points. Never so much that the past becomes a sliver.
 */
export function futureSeconds(band: Band | null, pastS: number): number {
  if (!band) return 0;
  const most = 1.5 * pastS;
  const all = 1.05 * (band.highS - band.atS);
  if (all <= most) return all;
  return band.lowS - band.atS <= most ? Math.min(1.1 * (band.midS - band.atS), most) : 0.3 * pastS;
}
