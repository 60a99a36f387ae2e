import assert from "node:assert/strict";
import test from "node:test";
import { bandOf, futureSeconds, trendOf } from "../src/forecast";
import { unattributedWords, verdictWords } from "../src/words";

const verdict = (changes = {}) => ({
  time: "1970-01-01T00:10:00Z",
  severity: "critical",
  dissent: [], suspect: null, framework: "", causes: [],
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

test("the band ends at the capacity when the verdict says", () => {
  const b = bandOf(verdict(), 1300, 2000, null);
  assert.deepEqual([b.atS, b.lowS, b.midS, b.highS, b.bytes], [600, 700, 800, 1000, 1300]);
});

test("without a leak, an end or a capacity there is no band", () => {
  assert.equal(bandOf(verdict({ leak: false }), 1, 2, null), null);
  assert.equal(bandOf(verdict({ oom_in_s: null }), 1, 2, null), null);
  assert.equal(bandOf(verdict(), 1, null, null), null);
});

test("the future never makes a sliver of the past", () => {
  const b = bandOf(verdict({ oom_in_s: { low: 1e5, mid: 1e6, high: 1e7 } }), 1, 2, null);
  assert.ok(futureSeconds(b, 3600) <= 0.5 * 3600);
  assert.equal(futureSeconds(null, 3600), 0);
  assert.equal(futureSeconds(bandOf(verdict(), 1, 2, null), 3600), 420);
});

test("words for a state this page does not know", () => {
  assert.equal(verdictWords(verdict({ leak: false, state: "later_invention" }).finding), "unknown");
});

test("what no process holds has a name", () => {
  const GiB = 2 ** 30;
  assert.equal(unattributedWords(0.4 * GiB, 24 * GiB), "410 MiB driver");
  assert.equal(unattributedWords(2.1 * GiB, 24 * GiB), "2.1 GiB held by no visible process");
  assert.equal(unattributedWords(-GiB, 24 * GiB), "1.0 GiB counted twice (shared)");
});
