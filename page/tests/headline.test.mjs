import assert from "node:assert/strict";
import test from "node:test";
import { headline } from "../src/headline";

const gpu = (index, state) => ({
  key: `device_used GPU-${index}`,
  device: { id: `GPU-${index}`, index, name: "NVIDIA A10", capacity_bytes: 24 * 2 ** 30, parent_id: "" },
  verdict: { severity: "ok", suspect: null, finding: { leak: false, state, spike: "none", oom_in_s: null } },
});

test("what was seen too briefly is not called healthy", () => {
  const young = headline([gpu(0, "too_short"), gpu(1, "too_short")], 0);
  assert.match(young.text, /^Not known yet/);
  assert.equal(young.tone, "faint");
  assert.match(headline([gpu(0, "steady"), gpu(1, "too_short")], 0).text, /Nothing leaks so far; not known yet of GPU 1/);
  assert.deepEqual(headline([gpu(0, "steady")], 0), { tone: "ok", text: "Nothing leaks." });
});
