// axe-core on every view of the dashboard in both themes: node accessibility.mjs VRAMTRACK
// VRAMTRACK_AXE_REPORT names a file for what it looked at and found.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { axeSource, chromiumPath, launch, openPage, playwright, startAgent } from "./machine.mjs";

const binary = resolve(process.argv[2]);
const report = process.env.VRAMTRACK_AXE_REPORT;
playwright();
chromiumPath();
const source = axeSource();

let browser;
let agent;
const told = [];
before(async () => {
  browser = await launch();
  // The leak has to stand until the last of these tests: at this speed its card is full after five and a half minutes.
  agent = await startAgent(binary, { speed: 60 });
});
after(async () => {
  await browser?.close();
  await agent?.stop();
  const order = ({ view, theme }) => Object.keys(kViews).indexOf(view) + (theme === "dark" ? 100 : 0);
  told.sort((a, b) => order(a) - order(b));
  if (report) writeFileSync(report, `${JSON.stringify(told, null, 1)}\n`);
});

const leaks = (page) => page.waitForSelector('h1.headline:has-text("GPU 0 leaks")');
const kViews = {
  overview: leaks,
  "a GPU": async (page) => {
    await leaks(page);
    await page.click("li.gpu h3 a");
    await page.waitForSelector('.chart[data-layers="2"]');
  },
  "the lines of a process": async (page) => {
    // The processes of a simulation run under nothing.
    await page.route(/\/api\/v1\/sites$/, (route) => route.fulfill({ json: { processes: [{ pid: 4242, user: "ada" }] } }));
    await page.route(/\/api\/v1\/sites\?pid=4242$/, (route) => route.fulfill({ json: {
      verdict: { leak: true, can_tell: true, because: "1 site kept growing", next_step: "", growth_bytes_per_s: 2202010 },
      sites: [{ leak: true, site: "train.py:57 train_step", call: "cuMemAlloc", live_bytes: 5284823040, live_count: 5632,
                growth_bytes_per_s: 2202010, frames: [{ function: "train_step", file: "train.py", line: 57, python: true }] }],
      sites_left_out: 3,
    } }));
    await kViews["a GPU"](page);
    await page.click("table.lines summary");
    await page.waitForSelector("ol.stack");
  },
  alerts: async (page) => {
    await leaks(page);
    await page.keyboard.press("A");
    await page.waitForSelector("li.alert");
  },
  "acknowledging an alert": async (page) => {
    await kViews.alerts(page);
    await page.click("li.alert button.acknowledge");
    await page.waitForSelector("li.alert input");
  },
  help: async (page) => {
    await leaks(page);
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
  },
  "a GPU that is not there": async (page) => {
    await page.goto(`${agent.url}/#/gpu/none`);
    await page.waitForSelector('h1:has-text("GPU")');
  },
};

/** What axe finds: rule, why, and where. All of its rules, those of good practice and of names too. */
async function violations(page) {
  await page.evaluate(source);
  const found = await page.evaluate(() => window.axe.run(document, {
    rules: { "label-content-name-mismatch": { enabled: true } },
  }));
  assert.ok(found.passes.length > 10, "axe looked at next to nothing");
  return { rules: found.passes.length, violations: found.violations.map((v) => ({
    rule: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map((n) => n.html.slice(0, 120)),
  })) };
}

// Each has its own page, and none changes what the agent has.
describe("accessibility", { concurrency: 3 }, () => {
  for (const colorScheme of ["light", "dark"])
    for (const [name, reach] of Object.entries(kViews))
      it(`axe finds nothing: ${name}, ${colorScheme}`, async () => {
        const { page, context } = await openPage(browser, agent.url, { colorScheme });
        try {
          await reach(page);
          const found = await violations(page);
          told.push({ view: name, theme: colorScheme, ...found });
          assert.deepEqual(found.violations, []);
        } finally {
          await context.close();
        }
      });

  it("the help takes the focus and gives it back", async () => {
    const { page, context } = await openPage(browser, agent.url);
    await leaks(page);
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
    await page.focus('button[title^="Help"]');
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog[open]");
    assert.equal(await focused(), "Close");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog[open]", { state: "detached" });
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("title") ?? ""), "Help (?)");
    await context.close();
  });

  it("the token is asked for in a form that axe finds nothing in", async () => {
    const { page, context } = await openPage(browser, agent.url);
    await leaks(page);
    // The agent is asked again without a right: as if a token had been set.
    await page.route("**/api/**", (route) => route.fulfill({ status: 401, contentType: "application/json", body: '{"error":{"code":"unauthorised","message":"token"}}' }));
    await page.reload();
    await page.waitForSelector("form.token");
    assert.deepEqual((await violations(page)).violations, []);
    await context.close();
  });
});
