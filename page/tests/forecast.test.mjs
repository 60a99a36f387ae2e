import assert from "node:assert/strict";
import test from "node:test";
import { bandOf, futureSeconds, trendOf } from "../src/forecast";

const series = (changes = {}, limit_bytes = 2000) => ({ used_bytes: 1300, limit_bytes, verdict: verdict(changes) });
const verdict = (changes = {}) => ({
  time: "1970-01-01T00:10:00Z",
  severity: "critical",
  dissent: [], suspect: null, framework: "", causes: [], advice: [],
  finding: {
    detector: "judge", leak: true, state: "leaking", pattern: "gradual_leak", spike: "none", confidence: 0.9,
    growth_bytes_per_s: { low: 1, mid: 2, high: 3 }, r_squared: 1, oom_in_s: { low: 100, mid: 200, high: 400 },
    onset: "1970-01-01T00:00:00Z", because: "", ...changes,
  },
});

test("the trend is the agent's", () => {
  const trend = { from: "1970-01-01T00:00:00Z", to: "1970-01-01T00:10:00Z", from_bytes: 100, to_bytes: 1300 };
  assert.deepEqual(trendOf({ trend }), { fromS: 0, toS: 600, fromBytes: 100, toBytes: 1300 });
  assert.equal(trendOf({ trend: null }), null);
});

test("the band ends where memory does, when the verdict says", () => {
  const b = bandOf(series(), null);
  assert.deepEqual([b.atS, b.lowS, b.midS, b.highS, b.bytes, b.limitBytes], [600, 700, 800, 1000, 1300, 2000]);
});

test("without a leak, an end or a capacity there is no band", () => {
  assert.equal(bandOf(series({ leak: false }), null), null);
  assert.equal(bandOf(series({ oom_in_s: null }), null), null);
  assert.equal(bandOf(series({}, null), null), null);
});

test("the future never makes a sliver of the past", () => {
  const b = bandOf(series({ oom_in_s: { low: 1e5, mid: 1e6, high: 1e7 } }), null);
  assert.ok(futureSeconds(b, 3600) <= 0.5 * 3600);
  assert.equal(futureSeconds(null, 3600), 0);
  assert.equal(futureSeconds(bandOf(series(), null), 3600), 420);
});
