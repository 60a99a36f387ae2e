// The page of `vramtrack fleet watch` in a real browser; the server it reads is made up here: node fleet.mjs VRAMTRACK
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { axeSource, chromiumPath, launch, openPage, playwright } from "./machine.mjs";

const binary = resolve(process.argv[2]);
playwright();
chromiumPath();

const kNodes = 6;
const kBegin = Math.floor(Date.now() / 1000) - 5 * 3600;

/** Two jobs on six nodes: GPUs of node 0 and 1 leak; a third job's image has leaked since it changed. */
function matrix() {
  const out = [];
  for (let n = 0; n < kNodes; ++n)
    for (let gpu = 0; gpu < 2; ++gpu) {
      const leaks = n < 2 && gpu === 0;
      const values = [];
      for (let i = 0; i < 600; ++i) values.push([kBegin + 30 * i, String(20000 + (leaks ? 90 * i : 0) + ((i * 7919) % 40))]);
      out.push({ metric: { __name__: "DCGM_FI_DEV_FB_USED", Hostname: `node${n}`, UUID: `GPU-${n}-${gpu}`, gpu: String(gpu),
                           hpc_job: String(70 + gpu), image: gpu ? "vllm:1" : "<b>torch</b>:2", user: "ada" }, values });
      out.push({ metric: { __name__: "DCGM_FI_DEV_FB_TOTAL", Hostname: `node${n}`, UUID: `GPU-${n}-${gpu}`, gpu: String(gpu) },
                 values: values.slice(-6).map(([t]) => [t, "81559"]) });
    }
  return out;
}

const all = matrix();
let broken = false;
const server = createServer((request, response) => {
  const answer = (status, data) => response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(data));
  request.on("data", () => {}).on("end", () => {
    if (broken) return answer(500, { status: "error", error: "the disk is full" });
    if (request.url.startsWith("/api/v1/label/__name__/")) return answer(200, { status: "success", data: ["DCGM_FI_DEV_FB_USED"] });
    if (request.url.startsWith("/api/v1/label/Hostname/"))
      return answer(200, { status: "success", data: [...Array(kNodes).keys()].map((n) => `node${n}`) });
    if (request.url.startsWith("/api/v1/label/")) return answer(200, { status: "success", data: [] });
    if (request.url.startsWith("/api/v1/series")) return answer(200, { status: "success", data: all.map((one) => one.metric) });
    if (request.url.startsWith("/api/v1/query_range")) return answer(200, { status: "success", data: { resultType: "matrix", result: all } });
    answer(404, { status: "error", error: "unknown" });
  });
});

let browser;
let watch;
let url;
before(async () => {
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  watch = spawn(binary, ["fleet", "watch", "--url", `http://127.0.0.1:${server.address().port}`, "--listen", "127.0.0.1:0", "--every", "1s",
                         "--history", "6h", "--set", "cost.usd-per-gpu-hour=2"], { stdio: ["ignore", "ignore", "pipe"] });
  url = await new Promise((done, fail) => {
    let log = "";
    watch.stderr.on("data", (data) => {
      log += data;
      const match = /the fleet is on (http:\/\/[^/]+)/.exec(log);
      if (match) done(match[1]);
    });
    watch.once("exit", () => fail(new Error(log)));
  });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  watch?.kill("SIGTERM");
  server.close();
  server.closeAllConnections?.();
});

async function on(use, options, expected = /^$/) {
  const { page, context, trouble } = await openPage(browser, url, options);
  try {
    await use(page);
    assert.deepEqual(trouble.filter((words) => !expected.test(words)), []);
  } finally {
    await context.close();
  }
}

// Until the first pass has ended, the API answers 503, which Chromium tells its console.
const kEarly = /503/;
const leaks = (page) => page.waitForSelector('h1.headline:has-text("2 GPUs of 12 leak")', { timeout: 60_000 });

describe("the fleet's page", () => {
  it("says which jobs leak, when they end and what that costs", () => on(async (page) => {
    await leaks(page);
    assert.match(await page.textContent("h1.headline"), /the first runs out of memory in .*At risk: \$\d+ of work/);
    assert.equal(await page.getAttribute('section[data-jobs]', "data-jobs"), "1");
    const row = await page.textContent('tr[data-job="job 70"]');
    assert.match(row, /job 70.*node0 GPU 0.*2 of 6/);
    assert.match(await page.title(), /^\(2\) The fleet/);
  }, {}, kEarly));

  it("shows each leak of a job, and foreign text as text", () => on(async (page) => {
    await leaks(page);
    await page.click('tr[data-job="job 70"] summary');
    await page.waitForSelector('tr[data-job="job 70"] li:has-text("node1 GPU 0")');
    assert.match(await page.textContent('tr[data-job="job 70"]'), /image <b>torch<\/b>:2/);
    assert.equal(await page.locator("b").count(), 0);
  }, {}, kEarly));

  it("names what leaks have in common", () => on(async (page) => {
    await leaks(page);
    assert.match(await page.textContent('[data-finding="signature"]'), /leaks on 2 nodes \(node0, node1\)/);
  }, {}, kEarly));

  it("filters", () => on(async (page) => {
    await leaks(page);
    await page.fill('input[type="search"]', "torch ada");
    await page.waitForSelector('section[data-jobs="1"]');
    await page.fill('input[type="search"]', "nobody");
    await page.waitForSelector('section[data-jobs="0"]');
  }, {}, kEarly));

  it("says when the server fails, and keeps what it knew", () => on(async (page) => {
    await leaks(page);
    broken = true;
    try {
      await page.waitForSelector('p.strip.trouble:has-text("the disk is full")', { timeout: 60_000 });
      assert.match(await page.textContent("h1.headline"), /2 GPUs of 12 leak/);
    } finally {
      broken = false;
    }
    await page.waitForSelector("p.strip.trouble", { state: "detached", timeout: 60_000 });
  }, {}, kEarly));

  for (const colorScheme of ["light", "dark"])
    it(`has no flaw that axe-core knows, ${colorScheme}`, () => on(async (page) => {
      await leaks(page);
      await page.click('tr[data-job="job 70"] summary');
      // The policy of the page allows no scripts but its own; the test's is put in beneath it.
      const found = await page.evaluate(`${axeSource()}; axe.run()`);
      assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`), []);
      if (process.env.VRAMTRACK_SCREENSHOTS) await page.screenshot({ path: `${process.env.VRAMTRACK_SCREENSHOTS}/fleet-${colorScheme}.png`, fullPage: true });
    }, { colorScheme }, kEarly));

  it("fits a telephone", () => on(async (page) => {
    await leaks(page);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
    if (process.env.VRAMTRACK_SCREENSHOTS) await page.screenshot({ path: `${process.env.VRAMTRACK_SCREENSHOTS}/fleet-phone.png`, fullPage: true });
  }, { viewport: { width: 360, height: 740 } }, kEarly));
});
