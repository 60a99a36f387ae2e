import assert from "node:assert/strict";
import test from "node:test";
import * as f from "../src/format";

const GiB = 2 ** 30;
const MiB = 2 ** 20;

// The same cases as tests/unit/core/format_test.cpp has: one ETA, the same on every screen.
test("sizes", () => {
  assert.equal(f.bytes(512 * MiB), "512 MiB");
  assert.equal(f.bytes(12.34 * GiB), "12.3 GiB");
  assert.equal(f.bytes(NaN), "0 MiB");
  assert.equal(f.bytesOf(20.2 * GiB, 24 * GiB), "20.2/24.0 GiB");
});

test("sizes of any order", () => {
  assert.deepEqual([0, 1, 90, 4096, 7.8 * 1024, 1023.96 * 1024, 45.6 * MiB, 12.34 * GiB, 5000 * GiB, -2 * MiB, NaN].map(f.size),
    ["0 bytes", "1 byte", "90 bytes", "4.0 KiB", "7.8 KiB", "1.0 MiB", "45.6 MiB", "12.3 GiB", "4.9 TiB", "-2.0 MiB", "0 bytes"]);
});

test("times are the reader's, and the zone is named", () => {
  const was = process.env.TZ;
  process.env.TZ = "Asia/Tokyo";
  try {
    assert.equal(f.inLocalTime("reached 24 GiB at 2026-01-05T09:30:00Z; then\u0007"), "reached 24 GiB at 2026-01-05 18:30:00; then?");
    assert.equal(f.inLocalTime("version 2026-01-05 of it"), "version 2026-01-05 of it");
    assert.equal(f.zone(Date.UTC(2026, 0, 5) / 1000), "UTC+09:00");
    process.env.TZ = "UTC";
    assert.equal(f.zone(0), "UTC");
  } finally {
    if (was === undefined) delete process.env.TZ;
    else process.env.TZ = was;
  }
});

test("rates", () => {
  assert.equal(f.rate((12.4 * MiB) / 60), "+12.4 MiB/min");
  assert.equal(f.rate((-0.3 * MiB) / 60), "-0.30 MiB/min");
  assert.equal(f.rate(0.1), "0 MiB/min");
  assert.equal(f.rateInterval({ low: (48 * MiB) / 60, mid: (50 * MiB) / 60, high: (52.3 * MiB) / 60 }),
    "+50.0 MiB/min (48.0 to 52.3)");
});

test("durations and the ETA", () => {
  assert.equal(f.duration(0.0001), "0s");
  assert.equal(f.duration(0.02), "20ms");
  assert.equal(f.duration(0.0996), "0.1s");
  assert.equal(f.duration(1.25), "1.3s");
  assert.equal(f.duration(45), "45s");
  assert.equal(f.duration(59.6), "1m");
  assert.equal(f.duration(3900), "1h 05m");
  assert.equal(f.duration(3 * 86400 + 4 * 3600), "3d 04h");
  assert.equal(f.duration(Infinity), "over 10 years");
  assert.equal(f.duration(NaN), "0s");
  assert.equal(f.eta({ low: 38 * 60, mid: 47 * 60, high: 65 * 60 }), "0h 47m (38m–1h 05m)");
  assert.equal(f.eta({ low: 60, mid: 60, high: 60 }), "0h 01m");
});

test("per cent never says a false 0 or 100", () => {
  assert.equal(f.percent(0.001), "under 1 %");
  assert.equal(f.percent(0.999), "over 99 %");
  assert.equal(f.percent(1), "100 %");
});

test("times have up to nine decimals", () => {
  assert.equal(f.seconds("2026-01-05T08:00:00.123456789Z"), 1767600000.123);
  assert.equal(f.seconds("2026-01-05T08:00:00Z"), 1767600000);
});

test("foreign names cannot hide", () => {
  assert.equal(f.printable("a\u0007b\u202ec\nd"), "a?b?c?d");
});
