// The page of `vramtrack fleet watch` in a real browser; the server it reads is made up: node fleet.mjs VRAMTRACK
import assert from "node:assert/strict";
import { resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { startFleet } from "./fleet_machine.mjs";
import { axeSource, chromiumPath, launch, openPage, playwright } from "./machine.mjs";

const binary = resolve(process.argv[2]);
playwright();
chromiumPath();

let browser;
let fleet;
before(async () => {
  fleet = await startFleet(binary);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  fleet?.stop();
});

async function on(use, options, expected = /^$/) {
  const { page, context, trouble } = await openPage(browser, fleet.url, options);
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
    fleet.state.broken = true;
    try {
      await page.waitForSelector('p.strip.trouble:has-text("the disk is full")', { timeout: 60_000 });
      assert.match(await page.textContent("h1.headline"), /2 GPUs of 12 leak/);
    } finally {
      fleet.state.broken = false;
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
