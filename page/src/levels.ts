// The levels of detail of a timeline: which points to draw in an interval, and the stack at each. Pure.

/** [point, bytes, point, bytes, ...]: where a value changes. */
export type Steps = number[];

/** The value at each of `count` points. */
export function expand(steps: Steps, count: number): Float64Array {
  const values = new Float64Array(count);
  for (let i = 0; i + 1 < steps.length; i += 2) values.fill(steps[i + 1]!, steps[i]!, i + 2 < steps.length ? steps[i + 2]! : count);
  return values;
}

/** Joins the steps of consecutive pieces, each with this many points, into one sequence. */
export function joined(pieces: { steps: Steps; points: number }[]): Steps {
  const all: Steps = [];
  let begin = 0;
  for (const { steps, points } of pieces) {
    if (steps[0] !== 0 && all.length > 0 && all[all.length - 1] !== 0) all.push(begin, 0); // a piece that begins with nothing does not say so
    for (let i = 0; i + 1 < steps.length; i += 2) all.push(begin + steps[i]!, steps[i + 1]!);
    begin += points;
  }
  return all;
}

/** The finest level at which a few pieces cover the interval: its index, and its first and last piece. `begins`: those of
 * each level's pieces, coarsest level first. Null: only the whole trace covers it. */
export function finest(begins: number[][], from: number, to: number, most = 3): { level: number; first: number; last: number } | null {
  for (let level = begins.length - 1; level >= 0; --level) {
    const first = lastUpTo(begins[level]!, from);
    const last = lastUpTo(begins[level]!, to);
    if (last - first < most) return { level, first, last };
  }
  return null;
}

/** The index of the last of the ascending `values` that is not above `value`; 0 if all are. */
export function lastUpTo(values: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (values[middle]! <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** At most about `most` points between `from` and `to`, plus one beyond each end: the highest of as many intervals of
 * equal width, so that no peak is lost. */
export function choose(x: ArrayLike<number>, height: ArrayLike<number>, from: number, to: number, most: number): number[] {
  const first = lastUpTo(x, from);
  const last = Math.min(x.length - 1, lastUpTo(x, to) + 1);
  if (last - first + 1 <= most) return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  const width = (to - from) / (most - 2);
  const chosen = [first];
  let best = -1;
  let stretch = -1;
  for (let i = first + 1; i < last; ++i) {
    const its = Math.floor((x[i]! - from) / width);
    if (its !== stretch) {
      if (best >= 0) chosen.push(best);
      best = i;
      stretch = its;
    } else if (height[i]! > height[best]!) best = i;
  }
  if (best >= 0) chosen.push(best);
  if (last > first) chosen.push(last);
  return chosen;
}

/** The tops of the layers, stacked from the first at the bottom, at the chosen points. */
export function stack(layers: Float64Array[], chosen: number[]): number[][] {
  const tops: number[][] = [];
  let below = chosen.map(() => 0);
  for (const layer of layers) {
    below = chosen.map((point, i) => below[i]! + Math.max(0, layer[point]!));
    tops.push(below);
  }
  return tops;
}

/** Memory that no layer has. */
export function rest(total: ArrayLike<number>, layers: Float64Array[]): Float64Array {
  const left = Float64Array.from(total);
  for (const layer of layers) for (let i = 0; i < left.length; ++i) left[i]! -= layer[i]!;
  return left.map((value) => Math.max(0, value));
}

export interface Gaps {
  bytes: number;
  count: number;
  largest: number;
}

/** The free blocks of a segment's [offset, bytes, state, layer, ...]. */
export function gapsOf(blocks: number[]): Gaps {
  const gaps = { bytes: 0, count: 0, largest: 0 };
  for (let i = 0; i < blocks.length; i += 4) {
    if (blocks[i + 2] !== 0) continue;
    gaps.bytes += blocks[i + 1]!;
    gaps.count += 1;
    gaps.largest = Math.max(gaps.largest, blocks[i + 1]!);
  }
  return gaps;
}
