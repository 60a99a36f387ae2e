import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, expand, finest, gapsOf, joined, lastUpTo, rest, stack } from "../src/levels";

test("a value stays until it changes", () => {
  assert.deepEqual([...expand([1, 5, 3, 0], 5)], [0, 5, 5, 0, 0]);
  assert.deepEqual([...expand([0, 7], 3)], [7, 7, 7]);
  assert.deepEqual([...expand([], 2)], [0, 0]);
});

test("the last that is not above", () => {
  assert.equal(lastUpTo([1, 2, 2, 5], 2), 2);
  assert.equal(lastUpTo([1, 2, 2, 5], 0), 0);
  assert.equal(lastUpTo([1, 2, 2, 5], 9), 3);
});

test("pieces that follow each other are one", () => {
  const whole = [0, 5, 1, 7, 3, 0, 5, 2];
  const pieces = [{ steps: [0, 5, 1, 7], points: 2 }, { steps: [0, 7], points: 1 }, { steps: [], points: 2 }, { steps: [0, 2], points: 2 }];
  assert.deepEqual([...expand(joined(pieces), 7)], [...expand(whole, 7)]);
  assert.deepEqual(joined([{ steps: [], points: 3 }, { steps: [1, 4], points: 3 }]), [4, 4]);
});

test("the finest level of which a few pieces cover the view", () => {
  const begins = [[0, 100, 200, 300], Array.from({ length: 16 }, (_, i) => i * 25)];
  assert.equal(finest(begins, 0, 399), null);
  assert.deepEqual(finest(begins, 110, 290), { level: 0, first: 1, last: 2 });
  assert.deepEqual(finest(begins, 110, 150), { level: 1, first: 4, last: 6 });
  assert.equal(finest([], 0, 1), null);
});

test("few points are all drawn", () => {
  assert.deepEqual(choose([0, 1, 2, 3], [1, 1, 1, 1], 1, 2, 10), [1, 2, 3]);
});

test("of many points no peak is lost, at any zoom", () => {
  const n = 4096;
  const x = Array.from({ length: n }, (_, i) => i * i);
  const height = x.map((_, i) => i === 1777 ? 1000 : (i * 7919) % 100);
  for (const [from, to] of [[0, x[n - 1]], [x[1000], x[3000]], [x[1700], x[1800]]]) {
    const chosen = choose(x, height, from, to, 200);
    assert.ok(chosen.includes(1777), `${from} to ${to}`);
    assert.ok(chosen.length <= 203);
    assert.deepEqual(chosen, [...new Set(chosen)].sort((a, b) => a - b));
  }
});

test("layers are stacked, and what none has is the rest", () => {
  const layers = [Float64Array.of(1, 2, 3), Float64Array.of(10, 0, 10)];
  assert.deepEqual(stack(layers, [0, 2]), [[1, 3], [11, 13]]);
  assert.deepEqual([...rest([12, 2, 20], layers)], [1, 0, 7]);
});

test("free blocks", () => {
  assert.deepEqual(gapsOf([0, 10, 1, 0, 10, 4, 0, -1, 14, 6, 2, -1, 20, 7, 0, -1]), { bytes: 11, count: 2, largest: 7 });
});
