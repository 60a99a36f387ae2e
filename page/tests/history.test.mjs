import assert from "node:assert/strict";
import test from "node:test";
import { append, atTimes, noColumns, stack, trim, withGaps } from "../src/history";

const columns = (t, mean) => ({ t: [...t], min: [...mean], mean: [...mean], max: [...mean] });

test("live samples join a point while it lasts", () => {
  const c = noColumns();
  let n = 1;
  for (const [t, v] of [[0, 10], [1, 20], [2, 30], [5, 7]]) n = append(c, t, v, 5, n);
  assert.deepEqual(c, { t: [0, 5], min: [10, 7], mean: [20, 7], max: [30, 7] });
});

test("a sample that the store had already changes nothing", () => {
  const c = columns([0, 5, 10], [1, 2, 3]);
  append(c, 4, 99, 5, 1);
  assert.deepEqual(c, columns([0, 5, 10], [1, 2, 3]));
});

test("what is before the range goes", () => {
  const c = columns([0, 5, 10], [1, 2, 3]);
  trim(c, 5);
  assert.deepEqual(c, columns([5, 10], [2, 3]));
});

test("a stretch without samples breaks the line", () => {
  const { x, mean } = withGaps(columns([0, 1, 2, 10, 11], [1, 1, 1, 5, 5]), 1);
  assert.deepEqual(x, [0, 1, 2, 6, 10, 11]);
  assert.deepEqual(mean, [1, 1, 1, null, 5, 5]);
});

test("a process holds nothing before it began and after it ended", () => {
  assert.deepEqual(atTimes(columns([2, 3], [7, 8]), [0, 1, 2, 3, 4, 5, 6, 7], 1), [0, 0, 7, 8, 8, 8, 0, 0]);
});

test("layers add up to what is used; what nobody holds is at the bottom, what grows on top", () => {
  const x = [0, 1, 2, 3];
  const GiB = 2 ** 30;
  const grows = columns(x, [1, 2, 3, 4].map((v) => v * GiB));
  const steady = columns(x, [6, 6, 6, 6].map((v) => v * GiB));
  const used = [8, 9, 10, 11].map((v) => v * GiB);
  const layers = stack(x, used, [{ key: "grows", columns: grows }, { key: "steady", columns: steady }], 1, 8);
  assert.deepEqual(layers.map((l) => l.key), ["", "steady", "grows"]);
  assert.deepEqual(layers[0].own, [1, 1, 1, 1].map((v) => v * GiB));
  assert.deepEqual(layers.at(-1).top, used);
});

test("beyond so many, processes share a layer; nothing is lost", () => {
  const processes = [1, 2, 3, 4].map((v) => ({ key: `p${v}`, columns: columns([0, 1], [v, v]) }));
  const layers = stack([0, 1], [10, 10], processes, 1, 2);
  assert.deepEqual(layers.map((l) => l.key), ["", "others", "p3", "p4"]);
  assert.deepEqual(layers.at(-1).top, [10, 10]);
});

test("where the device has no sample, no layer has", () => {
  const layers = stack([0, 1, 2], [4, null, 4], [{ key: "p", columns: columns([0, 2], [3, 3]) }], 1, 8);
  for (const l of layers) assert.equal(l.top[1], null);
});

test("shared memory that is counted twice makes no negative layer", () => {
  const [rest] = stack([0], [4], [{ key: "p", columns: columns([0], [5]) }], 1, 8);
  assert.deepEqual(rest.own, [0]);
});
