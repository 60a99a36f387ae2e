// The history of series as columns: the data from the store, continued with live samples, within bounds. Pure.
import type { Columns } from "./types";

/** Empty columns. */
export const noColumns = (): Columns => ({ t: [], min: [], mean: [], max: [] });

/** The largest distance between two points without a missing sample between them. */
export const gapAfter = (stepS: number): number => 2.01 * stepS;

/**
 * Adds one live sample: it joins the last point while that point's interval of `stepS` lasts, so the columns stay as
 * coarse as before. The caller keeps `counts`, the number of live samples in the last point, from 1. A sample that is
 * not later than the last point is ignored: the stream begins with samples that the store may contain already.
 */
export function append(c: Columns, atS: number, bytes: number, stepS: number, count: number): number {
  const last = c.t.length - 1;
  const begin = c.t[last];
  if (begin !== undefined && atS < begin) return count;
  if (begin !== undefined && atS - begin < stepS) {
    c.min[last] = Math.min(c.min[last]!, bytes);
    c.max[last] = Math.max(c.max[last]!, bytes);
    c.mean[last] = c.mean[last]! + (bytes - c.mean[last]!) / (count + 1);
    return count + 1;
  }
  c.t.push(atS);
  c.min.push(bytes);
  c.mean.push(bytes);
  c.max.push(bytes);
  return 1;
}

/** Drops points before `fromS`. */
export function trim(c: Columns, fromS: number): void {
  let n = 0;
  while (n < c.t.length && c.t[n]! < fromS) ++n;
  if (n === 0) return;
  for (const column of [c.t, c.min, c.mean, c.max]) column.splice(0, n);
}

/** For a chart: x, and columns of y with null where samples are missing, rather than a line across. */
export function withGaps(c: Columns, stepS: number): { x: number[]; min: Y; mean: Y; max: Y } {
  const out = { x: [] as number[], min: [] as Y, mean: [] as Y, max: [] as Y };
  c.t.forEach((t, i) => {
    const before = c.t[i - 1];
    if (before !== undefined && t - before > gapAfter(stepS)) {
      out.x.push((before + t) / 2);
      out.min.push(null);
      out.mean.push(null);
      out.max.push(null);
    }
    out.x.push(t);
    out.min.push(c.min[i]!);
    out.mean.push(c.mean[i]!);
    out.max.push(c.max[i]!);
  });
  return out;
}
type Y = (number | null)[];

/**
 * A process's memory at each of the device's points: its last known value, and 0 before its first and after its last
 * sample, when it does not exist. Both have points at the same intervals, so they are at most one step apart.
 */
export function atTimes(c: Columns, x: number[], stepS: number): number[] {
  const last = c.t[c.t.length - 1];
  let i = -1;
  return x.map((t) => {
    while (i + 1 < c.t.length && c.t[i + 1]! <= t + stepS / 2) ++i;
    return i < 0 || last === undefined || t > last + gapAfter(stepS) ? 0 : c.mean[i]!;
  });
}

const kNoticeable = 64 * 1024 * 1024;

/** Growth over the points shown: the mean of the last eighth less that of the first, so that noise changes nothing. */
function growth(y: number[]): number {
  const n = Math.max(1, Math.floor(y.length / 8));
  const mean = (part: number[]): number => part.reduce((a, b) => a + b, 0) / Math.max(1, part.length);
  return Math.round((mean(y.slice(-n)) - mean(y.slice(0, n))) / kNoticeable);
}

export interface Layer {
  /** A series' key; "" for memory that no process holds, "others" for the merged ones. */
  key: string;
  /** Bytes of this layer alone. */
  own: Y;
  /** Its upper edge: the sum of all layers below and itself. */
  top: Y;
}

/**
 * The device's memory in layers: at the bottom, memory that no process holds (used less all processes, never below 0),
 * then the processes; those that grow most are on top, so that the others stay level below them. At most `most`
 * processes, the largest, have layers of their own; the rest are merged.
 */
export function stack(x: number[], used: Y, processes: { key: string; columns: Columns }[], stepS: number,
                      most: number): Layer[] {
  const rows = processes
    .map((p) => ({ key: p.key, own: atTimes(p.columns, x, stepS) }))
    .filter((p) => p.own.some((v) => v > 0))
    .sort((a, b) => Math.max(...b.own) - Math.max(...a.own));
  const kept = rows.slice(0, most);
  const joined = rows.slice(most);
  const sum = x.map((_, i) => rows.reduce((total, r) => total + r.own[i]!, 0));
  const layers: { key: string; own: number[] }[] = [
    { key: "", own: used.map((u, i) => (u === null ? 0 : Math.max(0, u - sum[i]!))) },
  ];
  if (joined.length > 0)
    layers.push({ key: "others", own: x.map((_, i) => joined.reduce((total, r) => total + r.own[i]!, 0)) });
  layers.push(...kept.sort((a, b) => growth(a.own) - growth(b.own) || (a.key < b.key ? -1 : 1)));
  const below = x.map(() => 0);
  return layers.map((l) => ({
    key: l.key,
    own: l.own.map((v, i) => (used[i] === null ? null : v)),
    top: l.own.map((v, i) => (used[i] === null ? null : (below[i] = below[i]! + v))),
  }));
}
