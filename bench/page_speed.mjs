// What a day of eight GPUs costs to draw: node bench/page_speed.mjs FOLDER; FOLDER holds the built page.
// The data is made up and served from here, so that the time is the page's. It asks for 24 h of 8 GPUs and of one GPU with
// its processes, and reads Chromium's own count of the main thread's CPU time: scripts, style, layout and paint.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import { extname, join, resolve } from "node:path";
import { launch } from "../tests/browser/machine.mjs";

const folder = resolve(process.argv[2]);
const kGpus = 8;
const kProcesses = 8; // on each
const kMostMs = 200;
const GiB = 2 ** 30;
const nowS = 1767600000;
const iso = (s) => new Date(s * 1000).toISOString();

function finding(leak) {
  return {
    detector: "judge", leak, state: leak ? "leaking" : "steady", pattern: leak ? "gradual_leak" : "none", spike: "none",
    confidence: leak ? 0.9 : 0.01, growth_bytes_per_s: { low: 1e5, mid: leak ? 1.2e5 : 0, high: 1.4e5 }, r_squared: 0.99,
    oom_in_s: leak ? { low: 20000, mid: 30000, high: 45000 } : null, onset: leak ? iso(nowS - 50000) : null, because: "",
  };
}
const series = [];
for (let g = 0; g < kGpus; ++g) {
  const device = { id: `GPU-${g}`, index: g, name: "NVIDIA H100 80GB HBM3", pci_bus_id: "", parent_id: "", capacity_bytes: 80 * GiB };
  const common = {
    device, samples: 86400, first: iso(nowS - 90000), last: iso(nowS), interval_s: 1, peak_bytes: 60 * GiB, ended: false,
    paused: false, ignored: false, utilisation_ratio: 0.9, alerts: [], explain: [],
    level_bytes: 50 * GiB, condition: null, end: "", next: "", trend: null, health: null, last_xid: null,
  };
  const verdict = (leak) => ({ time: iso(nowS), severity: leak ? "warning" : "ok", finding: finding(leak), dissent: [],
                               suspect: null, framework: "PyTorch", causes: [], advice: [] });
  series.push({ ...common, key: `device_used/GPU-${g}`, metric: "device_used", pid: 0, process: null, used_bytes: 50 * GiB,
                gauges: { memory_utilisation_ratio: 0.4, temperature_celsius: 61, power_watts: 512, power_limit_watts: 700, fan_ratio: null }, load: null,
                verdict: verdict(g === 0) });
  for (let p = 0; p < kProcesses; ++p) {
    const pid = 1000 + g * 100 + p;
    series.push({ ...common, key: `process_used/GPU-${g}/${pid}/1`, metric: "process_used", pid, used_bytes: 6 * GiB,
      gauges: null, load: { gpu_ratio: 0.8, cpu_ratio: 1.1, host_bytes: 5 * GiB },
      process: { pid, user: "ada", command: `python train.py --rank ${p}`, name: "python", container: "", pod: "", slurm_job: "", framework: "PyTorch" },
      verdict: verdict(g === 0 && p === 0) });
  }
}
const view = { schema: "vramtrack.view.v1", time: iso(nowS), clock_is_relative: false, files: [], headline: { tone: "warning", text: "GPU 0 leaks." }, series, notices: [], warnings: [] };

function past(url) {
  const q = new URL(url, "http://x").searchParams;
  const [from, to] = [Date.parse(q.get("from")) / 1000, Date.parse(q.get("to")) / 1000];
  const points = Number(q.get("points"));
  const step = Math.max((to - from) / points, 60);
  return {
    from: iso(from), to: iso(to), resolution: "minute", step_s: step,
    series: q.getAll("series").map((key, k) => {
      const of = key.startsWith("device") ? 50 : 6;
      const t = Array.from({ length: Math.floor((to - from) / step) }, (_, i) => from + i * step);
      const mean = t.map((_, i) => GiB * (of + Math.sin(i / 9 + k) * 0.3 + i / 1000));
      return { key, t, mean, min: mean.map((v) => v - GiB / 4), max: mean.map((v) => v + GiB / 4) };
    }),
  };
}

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const server = http.createServer((request, response) => {
  const path = request.url.split("?")[0];
  const json = (value) => response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
  if (path === "/api/v1/events") {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(`event: view\ndata: ${JSON.stringify(view)}\n\nevent: alerts\ndata: {"time":null,"alerts":[]}\n\n`);
  } else if (path === "/api/v1/status") json({ host: "bench", version: "0", interval_s: 1, simulated: null, recording: true });
  else if (path === "/api/v1/series") json({ series: series.map((s) => ({ key: s.key, metric: s.metric, device: s.device.id, pid: s.pid || null, first: s.first, last: s.last })) });
  else if (path === "/api/v1/sites") json({ processes: [] });
  else if (path === "/api/v1/acts") json({ schema: "vramtrack.acts.v1", enabled: false, dry_run: true, off: false, off_because: null, policies: [], climbs: [], acts: [] });
  else if (path === "/api/v1/history") json(past(request.url));
  else {
    const file = path === "/" ? "index.html" : path.slice(1);
    response.writeHead(200, { "Content-Type": types[extname(file)] }).end(readFileSync(join(folder, file)));
  }
});

const browser = await launch();
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}`;
const page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
const session = await page.context().newCDPSession(page);
// CPU time of the thread, not time by the clock: a busy machine adds nothing to it.
await session.send("Performance.enable", { timeDomain: "threadTicks" });
const busyMs = async () => (await session.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value * 1000;

/** The main thread's time from `act` until the page has drawn `until` and rests. */
async function cost(act, until) {
  const before = await busyMs();
  await act();
  await page.waitForFunction(until);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 250)))));
  return (await busyMs()) - before;
}

const first = [];
const again = [];
const one = [];
const all = "[...document.querySelectorAll('.gpu .chart')].filter((c) => Number(c.dataset.points) >= 390).length === 8";
for (let i = 0; i < 5; ++i) {
  await page.goto("about:blank");
  await page.goto(url);
  await page.waitForSelector(".gpu canvas");
  first.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
  await page.waitForFunction("document.querySelectorAll('.gpu canvas').length === 8");
  again.push(await cost(() => page.click('button[aria-label="24h: the last 24 hours"]'),
    `document.querySelector('button[aria-label="24h: the last 24 hours"]').getAttribute("aria-pressed") === "true" && ${all}`));
  one.push(await cost(() => page.click(".gpu h3 a"),
    "Number(document.querySelector('.chart')?.dataset.points) >= 590 && document.querySelector('.chart[data-layers]') !== null"));
}
await browser.close();
server.closeAllConnections();
server.close();

const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const told = (name, values) => console.log(`${name}: ${middle(values).toFixed(0)} ms (${values.map((v) => v.toFixed(0)).join(", ")})`);
told("first contentful paint", first);
told("24 h of 8 GPUs, main thread", again);
told("a GPU's page, 24 h, 8 processes, main thread", one);
// The best of five: what a busy machine adds (cold caches) is not the page's.
assert.ok(Math.min(...again) < kMostMs, `24 h of 8 GPUs took ${Math.min(...again).toFixed(0)} ms at best`);
assert.ok(Math.min(...one) < kMostMs, `a GPU's page took ${Math.min(...one).toFixed(0)} ms at best`);
