// The pages of `snapshot page`, `snapshot flamegraph` and `report` in a real browser, without a network: node timeline.mjs VRAMTRACK
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { axeSource, chromiumPath, here, launch, patience, playwright } from "./machine.mjs";

const binary = resolve(process.argv[2]);
playwright();
chromiumPath();

let folder;
let browser;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "vramtrack-timeline-"));
  execFileSync("python3", [join(here, "snapshots.py"), folder]);
  for (const name of ["leak", "gaps", "full", "bare"]) execFileSync(binary, ["snapshot", "page", "--output", `${name}.html`, `${name}.pickle`], { cwd: folder });
  execFileSync(binary, ["snapshot", "flamegraph", "--output", "flame.html", "gaps.pickle"], { cwd: folder });
  execFileSync(binary, ["snapshot", "flamegraph", "--output", "both.html", "leak.pickle", "gaps.pickle"], { cwd: folder });
  execFileSync(binary, ["simulate", "leaking_training", "--csv", "gpu.csv", "--process-csv", "apps.csv"], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  assert.equal(spawnSync(binary, ["report", "--format", "html", "--output", "report.html", "gpu.csv", "apps.csv"], { cwd: folder }).status, 1, "there is a leak");
  browser = await launch();
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs `use` on a page from the disk, without a network; nothing may go wrong on it, nor be asked for. */
async function on(name, use, options = { viewport: { width: 1200, height: 900 } }) {
  const context = await browser.newContext({ ...options, offline: true });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(patience(10_000));
    const trouble = [];
    page.on("pageerror", (error) => trouble.push(error.message));
    page.on("console", (message) => trouble.push(message.text()));
    page.on("request", (request) => { if (!request.url().endsWith(`${name}.html`) && request.url() !== "about:srcdoc") trouble.push(request.url()); });
    await page.goto(`file://${join(folder, name)}.html`);
    await use(page);
    assert.deepEqual(trouble, []);
  } finally {
    await context.close();
  }
}

const drawn = (page) => page.waitForSelector(".chart[data-points] canvas");
const said = (page) => page.locator(".say").first().textContent();
const data = (page) => page.evaluate(() => ({ ...document.querySelector(".chart").dataset }));

/** The pixels of the chart, or of the first segment, by the colours that are asked for: "#rrggbb" -> count, in a stretch of its width. */
const pixels = (page, selector, colours, from = 0, to = 1) => page.evaluate(([where, asked, begin, end]) => {
  const canvas = document.querySelector(where);
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const left = Math.floor(canvas.width * begin);
  const { data } = copy.getImageData(left, 0, Math.ceil(canvas.width * end) - left, canvas.height);
  const known = new Map(asked.map((colour) => [parseInt(colour.slice(1), 16), colour]));
  const counts = Object.fromEntries(asked.map((colour) => [colour, 0]));
  for (let i = 0; i < data.length; i += 4) {
    const colour = known.get((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    if (colour !== undefined) ++counts[colour];
  }
  return counts;
}, [selector, colours, from, to]);

const kLeak = "#0072b2";
const kModel = "#e69f00";

describe("timeline page", () => {
  it("draws what was live, each line of code as high as its bytes", () => on("leak", async (page) => {
    await drawn(page);
    const early = await pixels(page, ".chart canvas", [kLeak, kModel], 0.2, 0.3);
    const late = await pixels(page, ".chart canvas", [kLeak, kModel], 0.8, 0.9);
    // 45 MiB to 75 MiB in the first stretch and 240 MiB to 270 MiB in the other.
    assert.ok(late[kLeak] > 3.2 * early[kLeak] && late[kLeak] < 6.5 * early[kLeak], JSON.stringify([early, late]));
    assert.ok(late[kModel] > 0.6 * early[kModel] && late[kModel] < 1.6 * early[kModel], JSON.stringify([early, late]));
    assert.ok((await pixels(page, ".chart canvas", ["#b3141f"], 0.9, 1))["#b3141f"] > 200, "the failure");
    assert.equal((await data(page)).marks, "7"); // six epochs and the failure
  }));

  it("tells of a moment and a layer by keys alone", () => on("leak", async (page) => {
    await drawn(page);
    await page.keyboard.press("Tab");
    while (!(await page.evaluate(() => document.activeElement.classList.contains("chart")))) await page.keyboard.press("Tab");
    await page.keyboard.press("End");
    assert.match(await said(page), /^\+5\.4\d\d s, allocation 36,3\d\d: 3\d\d\.0 MiB live; 1\.0 GiB reserved/);
    await page.keyboard.press("ArrowUp");
    assert.match(await said(page), /300\.0 MiB of it: me\/project\/train\.py:88 train_step/);
    assert.match(await page.locator(".stack").textContent(), /run\.py:7/);
    await page.keyboard.press("Home");
    assert.match(await said(page), /^\+0\.00\d s, allocation \d+:/);
    const all = Number((await data(page)).points);
    for (let i = 0; i < 8; ++i) await page.keyboard.press("+");
    assert.ok(Number((await data(page)).points) < all / 2, "zoomed in");
    await page.keyboard.press("Escape");
    assert.equal(Number((await data(page)).points), all);
  }));

  it("zooms by dragging, and tells what is under the pointer", () => on("leak", async (page) => {
    await drawn(page);
    const box = await page.locator(".chart .u-over").boundingBox();
    const at = (x, y) => page.mouse.move(box.x + box.width * x, box.y + box.height * y, { steps: 4 });
    await at(0.9, 0.95);
    await page.waitForFunction(() => /train_step/.test(document.querySelector(".say").textContent));
    await at(0.4, 0.5);
    await page.mouse.down();
    await at(0.45, 0.5);
    await page.mouse.up();
    await page.waitForFunction(() => document.querySelector(".chart").dataset.level !== "0");
    await page.click("text=to the failure");
    assert.match(await said(page), /^\+5\.4/);
    assert.ok(Number((await data(page)).marks) <= 2);
  }));

  it("shows more the deeper it is zoomed into, to each allocation", () => on("leak", async (page) => {
    await drawn(page);
    await page.focus(".chart");
    const allocation = async () => Number(/allocation ([\d,]+)/.exec(await said(page))[1].replaceAll(",", ""));
    await page.keyboard.press("Home");
    for (let i = 0; i < 60; ++i) await page.keyboard.press("Shift+ArrowRight"); // about the middle
    const steps = [];
    const levels = [];
    for (const zooms of [0, 1, 7]) {
      for (let i = 0; i < zooms; ++i) await page.keyboard.press("+");
      const from = await allocation();
      await page.keyboard.press("ArrowRight");
      steps.push((await allocation()) - from);
      levels.push((await data(page)).level);
      await page.keyboard.press("ArrowLeft");
    }
    assert.deepEqual(levels, ["0", "1", "2"], JSON.stringify(steps));
    assert.ok(steps[0] > 8 && steps[2] === 1, JSON.stringify(steps));
    // What is stacked there is what is live there, in each level.
    const live = /([\d.]+) MiB live/.exec(await said(page))[1];
    const held = (await page.locator(".legend .bytes").allTextContents()).map((words) => (words.endsWith("MiB") ? parseFloat(words) : 0));
    assert.ok(Math.abs(held.reduce((a, b) => a + b, 0) - Number(live)) < 0.2, `${held} of ${live}`);
    await page.keyboard.press("Escape");
    assert.equal((await data(page)).level, "0");
    assert.ok(statSync(join(folder, "leak.html")).size < 12 * 2 ** 20);
  }));

  it("stacks by what the memory is, and over allocations", () => on("leak", async (page) => {
    await drawn(page);
    assert.equal((await data(page)).layers, "2");
    await page.selectOption('select[aria-label="stacked by"]', "category");
    assert.equal((await data(page)).layers, "1");
    await page.selectOption('select[aria-label="across"]', "events");
    await page.click("text=to the peak");
    assert.match(await said(page), /MiB live/);
    assert.equal((await data(page)).marks, "7");
  }));

  it("shows fragmentation at sight", () => on("gaps", async (page) => {
    await drawn(page);
    const words = await page.locator("section:has(h2) p").first().textContent();
    const [, pieces] = /1\.0 GiB reserved in 1 segment, [\d.]+ MiB of it free in (\d+) pieces; the largest is [\d.]+ MiB/.exec(words);
    assert.ok(Number(pieces) > 20, words);
    const gaps = await pixels(page, ".segments canvas", ["#eceff2"]);
    const whole = await page.evaluate(() => { const c = document.querySelector(".segments canvas"); return c.width * c.height; });
    const share = gaps["#eceff2"] / whole;
    assert.ok(share > 0.3 && share < 0.9, `${share} of the segment`);
    assert.equal((await data(page)).layers, "25"); // 24 lines and the rest
  }));

  it("begins at the out-of-memory, and shows who held the memory then", () => on("full", async (page) => {
    await drawn(page);
    assert.match(await said(page), /^\+7\.96\d s, .*; 1\.0 GiB reserved; .*out of memory: 200\.0 MiB requested$/);
    assert.equal((await data(page)).marks, "1");
    await page.click("text=to the failure");
    assert.match(await said(page), /^\+7\.965 s, allocation 53,248: 895\.8 MiB live; 1\.0 GiB reserved; out of memory: 200\.0 MiB requested$/);
    assert.match(await page.locator(".legend button").first().textContent(), /879\.8 MiB.*train\.py:88 train_step/);
    // The failure is a line from top to bottom at the end, and the red of its words stands above the chart, on none of the lines.
    const failure = await pixels(page, ".chart canvas", ["#b3141f"], 0.97, 1);
    assert.ok(failure["#b3141f"] > 300, JSON.stringify(failure));
    await page.click("text=show all");
    await page.click("text=to the peak");
    assert.doesNotMatch(await said(page), /out of memory/);
  }));

  it("names each epoch above the chart, also where the run failed", () => on("leak", async (page) => {
    await drawn(page);
    await page.evaluate(() => {
      window.words = {};
      const fill = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
        window.words[text] = y;
        return fill.call(this, text, x, y, ...more);
      };
      document.querySelector('select[aria-label="stacked by"]').dispatchEvent(new Event("change"));
    });
    await page.waitForFunction(() => window.words["1.0 GiB"] && window.words["out of memory: 990.0 MiB requested"]);
    const words = await page.evaluate(() => window.words);
    const epochs = [0, 1, 2, 3, 4, 5].map((n) => words[`epoch ${n}`]);
    assert.ok(epochs.every((y) => y > 0 && y === epochs[0]), JSON.stringify(words));
    assert.ok(words["out of memory: 990.0 MiB requested"] < epochs[0], JSON.stringify(words));
    assert.ok(epochs[0] < words["1.0 GiB"], "above what is drawn");
  }));

  it("of a snapshot without a trace shows the segments", () => on("bare", async (page) => {
    await page.waitForSelector(".segments canvas");
    assert.match(await page.textContent("main"), /There is no trace of events/);
  }));

  it("fits a phone, in the dark, by touch", () => on("gaps", async (page) => {
    await drawn(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing sticks out");
    await page.locator(".overview").tap();
    await page.click("text=zoom in");
    await page.locator(".legend button").nth(2).tap();
    assert.match(await said(page), /of it: .*model\.py:\d+ f\d+/);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(20, 25, 31)");
  }, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2, colorScheme: "dark" }));

  it("a flame graph has sizes, a table and none of the framework where that is hidden", () => on("flame", async (page) => {
    const first = page.locator(".graph:not([hidden]) .f");
    assert.match(await first.first().textContent(), /^all \d+\.\d MiB$/);
    const all = await first.count();
    await page.check("#only");
    assert.ok((await first.count()) < all);
    assert.equal(await page.locator(".graph:not([hidden]) .torch, .graph:not([hidden]) .native").count(), 0);
    await page.fill("#find", "model.py");
    assert.match(await page.textContent("#say"), /^[\d.]+ % of the bytes/);
    await page.locator(".graph:not([hidden]) .f").nth(1).click();
    await page.keyboard.press("Escape");
    await page.click("summary");
    assert.match(await page.locator("tbody tr").first().textContent(), /MiB/);
  }));
  it("two flame graphs stand side by side, and below each other on a phone", async () => {
    const use = async (page) => {
      const boxes = [];
      for (const frame of await page.locator("iframe").all()) {
        boxes.push(await frame.boundingBox());
        await frame.contentFrame().locator(".f").first().waitFor();
      }
      assert.equal(boxes.length, 2);
      return boxes;
    };
    await on("both", async (page) => {
      const [left, right] = await use(page);
      assert.ok(right.x >= left.x + left.width - 1 && right.y === left.y, JSON.stringify([left, right]));
    });
    await on("both", async (page) => {
      const [upper, lower] = await use(page);
      assert.ok(lower.y >= upper.y + upper.height - 1 && lower.x === upper.x, JSON.stringify([upper, lower]));
    }, { viewport: { width: 390, height: 844 } });
  });

});

/** Each page, and what shows that it has been drawn. */
const kPages = { leak: ".chart[data-points] canvas", flame: ".graph:not([hidden]) .f", report: "svg" };
const kSizes = { desktop: { width: 1200, height: 900 }, phone: { width: 390, height: 844 } };
describe("axe finds nothing", () => {
  for (const [name, last] of Object.entries(kPages))
    for (const [device, viewport] of Object.entries(kSizes))
      for (const colorScheme of ["light", "dark"])
        it(`in ${name}.html, ${device}, ${colorScheme}`, () => on(name, async (page) => {
          await page.waitForSelector(last);
          await page.evaluate(axeSource());
          const { passes, violations } = await page.evaluate(() => window.axe.run());
          assert.ok(passes.length > 10, "axe looked at next to nothing");
          assert.deepEqual(violations.map((one) => [one.id, one.nodes[0].html]), []);
        }, { viewport, colorScheme }));
});
