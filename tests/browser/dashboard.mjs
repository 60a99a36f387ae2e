// The dashboard in a real browser, on a real agent that simulates a leak: node dashboard.mjs VRAMTRACK
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { chromiumPath, launch, openPage, playwright, startAgent } from "./machine.mjs";

const binary = resolve(process.argv[2]);
playwright();
chromiumPath();

const kHeadline = "h1.headline";
const kLeaks = { state: "visible" };
// A GPU's own chart, drawn; the overview's are compact and may still be there when the address has changed.
const kDrawn = '.chart[data-band]:not(.compact):not([data-points="0"]):has(canvas)';

let browser;
let agent;
before(async () => {
  browser = await launch();
  // The leak has to stand until the last of these tests: at this speed its card is full after five and a half minutes.
  agent = await startAgent(binary, { speed: 60 });
});
after(async () => {
  await browser?.close();
  await agent?.stop();
});

/** Runs `use` on a page and then holds that nothing went wrong on it, but what `expected` says. */
async function on(url, use, options, expected = /^$/) {
  const { page, context, trouble } = await openPage(browser, url, options);
  try {
    await use(page, context);
    assert.deepEqual(trouble.filter((words) => !expected.test(words)), []);
  } finally {
    await context.close();
  }
}

const leak = (page) => page.waitForSelector(`${kHeadline}:has-text("GPU 0 leaks")`, kLeaks);
const toGpu = async (page) => {
  await leak(page);
  await page.click("li.gpu h3 a");
  await page.waitForSelector(`${kDrawn}[data-marks*="onset"]`);
};

/** Pixels of the plot's canvas whose colour passes `test`, a function body of r, g, b. */
const pixels = (page, selector, test) => page.evaluate(([where, body]) => {
  const canvas = document.querySelector(`${where} canvas`);
  // A copy: reading a canvas that is drawn on by the GPU makes Chromium warn.
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  const passes = new Function("r", "g", "b", "a", `return ${body}`);
  let n = 0;
  for (let i = 0; i < data.length; i += 4) if (passes(data[i], data[i + 1], data[i + 2], data[i + 3])) ++n;
  return n;
}, [selector, test]);

/** Waits until more than `least` pixels are so; a page that never draws them fails with the number it has. */
const drawn = async (page, what, selector, test, least) => {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const n = await pixels(page, selector, test);
    if (n > least) return;
    assert.ok(Date.now() < deadline, `${n} pixels of ${what}`);
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
};

// All at once, since most of their time is waiting: those of one agent in turn, for what one acknowledges all see.
let last = Promise.resolve();
const inTurn = (name, use) => it(name, () => {
  const mine = last.then(use);
  last = mine.catch(() => {});
  return mine;
});

describe("dashboard", { concurrency: 40 }, () => {
  it("a leak appears without reload", async () => {
    // Slowly enough that a page which opens late still opens before the alarm, however busy the machine is.
    let opened = false;
    for (const speed of [60, 20, 6]) {
      if (opened) break;
      const own = await startAgent(binary, { speed });
      try {
        await on(own.url, async (page) => {
          await page.waitForSelector(kHeadline);
          opened = !/GPU \d leaks/.test(await page.textContent(kHeadline));
          if (!opened) return;
          await page.evaluate(() => { window.sameDocument = true; });
          await page.waitForSelector(`${kHeadline}:has-text("GPU 0 leaks")`, { ...kLeaks, timeout: 600_000 });
          assert.equal(await page.evaluate(() => window.sameDocument), true);
          const text = await page.textContent(kHeadline);
          assert.match(text, /pid 4242 python train\.py/);
          assert.match(text, /out of memory in \d+h \d\dm \(.+–.+\)/);
          assert.match(await page.title(), /^\(\d\)/);
        });
      } finally {
        await own.stop();
      }
    }
    assert.ok(opened, "no page opened before the alarm");
  });

  inTurn("draws history, trend, band of ends, onset and pattern", async () => {
    await on(agent.url, async (page) => {
      await toGpu(page);
      const chart = page.locator(".chart").first();
      const [low, mid, high] = (await chart.getAttribute("data-band")).split(" ").map(Number);
      assert.ok(low <= mid && mid <= high && low < high);
      assert.match(await chart.getAttribute("data-marks"), /onset: (gradual leak|cyclic growth)/);
      // Orange over white: the band; blue: the line. What is drawn first may have the newest points only: the rest of the
      // history is still on its way.
      await drawn(page, "the band", ".chart", "a > 40 && a < 120 && r > 190 && b < 60", 200);
      await drawn(page, "the line", ".chart", "a > 200 && b > 150 && r < 60", 50);
      const figures = await page.textContent("dl.verdict");
      for (const word of ["Pattern", "R²", "Probability of a leak", "MiB/min", "Because", "Since", "PyTorch"])
        assert.ok(figures.includes(word), word);
      // One ETA: the verdict's is the headline's. Both are read at once: the next rendering may say another minute.
      const [headline, verdict] = await page.evaluate(() =>
        ["p.eta.big", "dl.verdict"].map((where) => document.querySelector(where).textContent.trim()));
      assert.equal(headline, /out of memory in [^)]+\)/.exec(verdict)?.[0] ?? "");
    });
  });

  it("every text of the verdict stands beside its label, at any width", async () => {
    await on(agent.url, async (page) => {
      await toGpu(page);
      await page.waitForSelector("details[open] dl.verdict dd");
      for (const width of [1280, 700]) {
        await page.setViewportSize({ width, height: 900 });
        const texts = await page.evaluate(() => [...document.querySelectorAll("dl.verdict > div")].flatMap((row) => {
          const label = row.querySelector("dt").getBoundingClientRect();
          return [...row.querySelectorAll("dd")].map((dd, i) => {
            const { left, width, top } = dd.getBoundingClientRect();
            return { i, text: dd.textContent, width, beside: left >= label.right, beneath: top >= label.bottom };
          });
        }));
        assert.ok(texts.some(({ i }) => i > 0), "a label with several texts");
        for (const { text, width: own, beside, beneath } of texts) {
          assert.ok(width > 736 ? beside : beneath, `${text}, ${width} px`);
          assert.ok(own > width / 3, `${text}: ${own} px wide`);
        }
      }
    });
  });

  inTurn("the past is there at once, from the store", async () => {
    await on(agent.url, async (page) => {
      await toGpu(page);
      const answers = page.waitForResponse((r) => r.url().includes("/history") && r.url().includes("device_used"));
      await page.click('button[aria-label="6h: the last 6 hours"]');
      const history = await (await answers).json();
      assert.ok(history.series[0].t.length > 20);
      await page.waitForSelector('button[aria-label="6h: the last 6 hours"][aria-pressed="true"]');
    });
  });

  inTurn("shows who holds the memory, an area each and one for nobody's", async () => {
    await on(agent.url, async (page) => {
      await toGpu(page);
      await page.waitForSelector('.chart[data-layers="2"]');
      const legend = await page.textContent("ul.layers");
      assert.match(legend, /4242 python train\.py/);
      assert.match(legend, /unattributed/);
      assert.match(await page.textContent("section:has(ul.layers)"), /1 process holds .+ driver/);
    });
  });

  inTurn("says which GPU is not well, why, and what to do", async () => {
    await on(agent.url, async (page) => {
      await leak(page);
      await page.waitForSelector('li.gpu .health:has-text("failing: XID 48")');
      assert.equal(await page.locator("li.gpu .health").count(), 1, "a card says only what is wrong");
      await toGpu(page);
      assert.match(await page.textContent(".health"), /Health: ✓ healthy temperature \d+ °C; ECC on, 0 uncorrected; throttle: none; no XID error seen/);
      await page.keyboard.press("1");
      await page.waitForSelector('h1:has-text("GPU 1")');
      const words = await page.textContent(".health");
      assert.match(words, /failing: XID 48/);
      // With its date once the simulated clock has passed midnight.
      assert.match(words, /last XID 48 .*at (\d\d-\d\d |\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d/);
      assert.match(words, /nvidia-smi --gpu-reset/);
    });
  });

  inTurn("needs no inline style or script", async () => {
    const policy = (await fetch(`${agent.url}/`)).headers.get("content-security-policy");
    assert.match(policy, /style-src 'self';/);
    assert.doesNotMatch(policy, /unsafe/);
    // Every other test fails when the policy stops something: Chromium says so on the console.
    const page = await browser.newPage();
    await page.goto(`${agent.url}/`);
    const told = page.waitForEvent("console", (m) => m.text().includes("Content Security Policy"));
    await page.evaluate(() => document.body.setAttribute("style", "color: red"));
    await told;
    await page.close();
  });

  inTurn("an acknowledged alert stays acknowledged, here and for others", async () => {
    await on(agent.url, async (page) => {
      await leak(page);
      await page.goto(`${agent.url}/#/alerts`);
      const id = await page.locator("li.alert").first().getAttribute("data-alert");
      const alert = `li[data-alert="${id}"]`;
      await page.click(`${alert} button.acknowledge`);
      await page.fill(`${alert} input`, "known <b>leak</b>");
      await page.click(`${alert} button[type=submit]`);
      await page.waitForSelector(`${alert} .acknowledged:has-text("known <b>leak</b>")`);
      await page.reload();
      await page.waitForSelector(`${alert} .acknowledged:has-text("known <b>leak</b>")`);
      assert.equal(await page.locator(`${alert} button.acknowledge`).count(), 0);
      await on(agent.url, async (other) => {
        await other.goto(`${agent.url}/#/alerts`);
        await other.waitForSelector(`${alert} .acknowledged`);
        await page.click(`${alert} .acknowledged button`);
        // Told to the other by the stream.
        await other.waitForSelector(`${alert} button.acknowledge`);
      });
    });
  });

  inTurn("foreign names are text", async () => {
    await on(agent.url, async (page) => {
      await leak(page);
      await page.waitForSelector("table.processes >> text=<img src=x");
      await page.waitForSelector("table.processes >> text=<script>");
      assert.equal(await page.locator("main img, main script, main b").count(), 0);
      assert.equal(await page.evaluate(() => window.injected), undefined);
    });
  });

  inTurn("can be used with the keyboard alone", async () => {
    await on(agent.url, async (page) => {
      await leak(page);
      const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
      const tabTo = async (matches, most = 60) => {
        for (let i = 0; i < most; ++i) {
          await page.keyboard.press("Tab");
          if (await page.evaluate(matches)) return;
        }
        assert.fail(`not reached in ${most} steps: ${matches}`);
      };
      await page.keyboard.press("Tab");
      assert.equal(await focused(), "Skip to the content");
      await tabTo(() => document.activeElement?.closest("li.gpu") !== null);
      assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none");
      await page.keyboard.press("Enter");
      await page.waitForSelector(kDrawn);
      await tabTo(() => document.activeElement?.classList.contains("chart") === true);
      const readout = page.locator("p.readout").first();
      assert.match(await readout.textContent(), /^Now/);
      await page.keyboard.press("ArrowLeft");
      await page.waitForFunction(() => /^\d/.test(document.querySelector("p.readout").textContent));
      await page.keyboard.press("+");
      await page.waitForSelector('button[aria-label="Back to now"]');
      await page.keyboard.press("Escape");
      await page.waitForSelector('button[aria-label="Back to now"]', { state: "detached" });
      await page.keyboard.press("A");
      await page.waitForSelector("li.alert button.acknowledge");
      await page.keyboard.press("a");
      await page.waitForFunction(() => document.activeElement?.getAttribute("name") === "note");
      await page.keyboard.type("seen at 3");
      await page.keyboard.press("Enter");
      await page.waitForSelector('.acknowledged:has-text("seen at 3")');
      // Undone again: the leak is one alert, and what comes after wants to acknowledge it, too.
      await page.click(".acknowledged button");
      await page.waitForSelector("button.acknowledge");
      await page.keyboard.press("?");
      await page.waitForSelector("dialog[open]");
      await page.keyboard.press("Escape");
      await page.waitForSelector("dialog[open]", { state: "detached" });
      await page.keyboard.press("1");
      await page.waitForSelector('h1:has-text("GPU 1")');
    });
  });

  inTurn("has the keys of top", async () => {
    await on(agent.url, async (page) => {
      await leak(page);
      await page.keyboard.press("d");
      await page.waitForSelector(kDrawn);
      assert.match(await page.textContent("h1"), /^GPU 0/, "the leak's card is the first");
      await page.keyboard.press("ArrowLeft");
      await page.waitForSelector('button[aria-label="Back to now"]');
      await page.keyboard.press("Escape");
      await page.waitForSelector('button[aria-label="Back to now"]', { state: "detached" });
      await page.keyboard.press("y");
      await page.waitForSelector('button[aria-pressed="true"]:has-text("Fit")');
      await page.keyboard.press("z");
      await page.waitForSelector('.ranges button[aria-pressed="true"]:has-text("1h")', { state: "detached" });
      await page.keyboard.press("Escape");
      await page.waitForSelector(kHeadline);
      await page.keyboard.press("/");
      await page.keyboard.type("serve vllm");
      await page.waitForFunction(() => document.querySelectorAll("table.processes tbody tr").length === 1);
      await page.keyboard.press("Enter");
      await page.keyboard.press("s");
      await page.waitForSelector('.sorting:has-text("by memory")');
      await page.keyboard.press("S");
      await page.waitForSelector('.sorting:has-text("by memory, reversed")');
      await page.keyboard.press("p");
      await page.waitForSelector('.strip:has-text("paused")');
      const shown = await page.textContent(".clock");
      const agentsTime = async () => (await (await fetch(`${agent.url}/api/v1/view`)).json()).time;
      for (let changes = 0, last = await agentsTime(); changes < 3;) {
        const now = await agentsTime();
        if (now !== last) ++changes;
        last = now;
      }
      assert.equal(await page.textContent(".clock"), shown);
      await page.keyboard.press("p");
      await page.waitForFunction((before) => document.querySelector(".clock").textContent !== before, shown);
      await page.keyboard.press("h");
      await page.waitForSelector("dialog[open]");
    });
  });

  it("shows the lines of a process under the probe, the leaking first, and keeps what it knows", async () => {
    const site = (line, leak, live, more = {}) => ({ leak, site: line, call: "cuMemAlloc", live_bytes: live, live_count: 5632,
      growth_bytes_per_s: leak ? 2202010 : 0, oldest_s: 60, share: leak ? 1 : 0, frames: [], ...more });
    const report = {
      schema: "vramtrack.trace_report.v1", program: "python train.py", duration_s: 3000, residual_bytes: null, sites_left_out: 3,
      verdict: { leak: true, can_tell: true, because: "1 site kept growing", next_step: "", growth_bytes_per_s: 2202010 },
      sites: [site("/srv/jobs/resnet/very/long/path/of/a/project/train.py:57 <img src=x onerror=window.injected=1>", true, 5284823040,
                   { frames: [{ function: "train_step", file: "train.py", line: 57, python: true }] }),
              site("load_model.py:12 load", false, 4096)],
    };
    let status = 503;
    await on(agent.url, async (page) => {
      // The processes of a simulation run under nothing.
      await page.route(/\/api\/v1\/sites$/, (route) => route.fulfill({ json: { processes: [{ pid: 4242, user: "ada" }] } }));
      await page.route(/\/api\/v1\/sites\?pid=4242$/, (route) => route.fulfill(status === 200 ? { json: report }
        : { status, json: { error: { code: "no_report", message: "not yet" } } }));
      await toGpu(page);
      await page.waitForSelector('section:has(h2:text("Lines that keep memory")):has-text("first report comes within a few seconds")');
      status = 200;
      await page.waitForSelector("table.lines");
      const rows = await page.locator("table.lines tbody tr").allTextContents();
      assert.equal(rows.length, 2);
      assert.match(rows[0], /leak .*train\.py:57 <img src=x.*2\.1 MiB\/s4\.9 GiB5632$/s);
      assert.match(rows[1], /^load_model\.py:12 load–4\.0 KiB5632$/);
      assert.match(await page.textContent("div.sites"), /4242 python train\.py.*1 line leaks, 2\.1 MiB\/s.*1 site kept growing.*and 3 more/s);
      await page.click("table.lines summary");
      await page.waitForSelector('ol.stack:has-text("train_step train.py:57")');
      status = 503;
      await page.waitForResponse((r) => r.url().includes("/sites?pid=") && r.status() === 503);
      await page.waitForResponse((r) => r.url().endsWith("/sites"));
      assert.equal(await page.locator("table.lines tbody tr").count(), 2);
      assert.equal(await page.locator("ol.stack:visible").count(), 1, "what was opened stays open");
      assert.equal(await page.evaluate(() => window.injected), undefined);
      if (process.env.VRAMTRACK_SCREENSHOTS) {
        await page.locator("section:has(table.lines)").screenshot({ path: join(process.env.VRAMTRACK_SCREENSHOTS, "lines.png") });
        await page.setViewportSize({ width: 375, height: 740 });
        await page.locator("section:has(table.lines)").screenshot({ path: join(process.env.VRAMTRACK_SCREENSHOTS, "lines-phone.png") });
      }
      await page.setViewportSize({ width: 320, height: 740 });
      await page.waitForFunction(() => document.documentElement.scrollWidth <= 320);  // once the charts have shrunk
      assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll(".sites *")]
        .filter((e) => e.getBoundingClientRect().right > 321).map((e) => e.outerHTML.slice(0, 80))), []);
      status = 200;
      await page.goto(`${agent.url}/#/`);
      const line = page.locator("li.gpu .leaking-line");
      await line.waitFor();
      assert.match(await line.textContent(), /^line .*train\.py:57 <img src=x.*>, \+126 MiB\/min$/);
      assert.ok((await line.evaluate((e) => e.getBoundingClientRect().right)) <= 321);
      assert.equal(await page.evaluate(() => window.injected), undefined);
    }, {}, /^error: Failed to load resource: .* 503 /);
  });

  inTurn("shows no lines where nothing runs under the probe", async () => {
    await on(agent.url, async (page) => {
      const asked = page.waitForResponse((r) => r.url().endsWith("/api/v1/sites"));
      await toGpu(page);
      assert.deepEqual(await (await asked).json(), { processes: [] });
      assert.equal(await page.locator('h2:text("Lines that keep memory")').count(), 0);
    });
  });

  inTurn("shows temperature, power and what is busy, and a dash for what is not known", async () => {
    await on(agent.url, async (page) => {
      await leak(page);
      await page.waitForSelector('li.gpu .gauges:has-text("°C")');
      assert.match(await page.textContent("li.gpu .gauges"), /busy \d+ %.*\d+ °C.*\d+\/700 W/);
      assert.equal(await page.locator(".uplot").count(), 2);
      assert.match(await page.textContent("table.processes"), /GPU %/);
      await toGpu(page);
      assert.match(await page.textContent(".gauges"), /SM clock [\d.]+ GHz.*fan –/, "this card has no fan");
    });
  });

  inTurn("draws how busy, hot and fast a GPU was beside its memory, with one cursor for all", async () => {
    await on(agent.url, async (page) => {
      await leak(page);
      await toGpu(page);
      await page.waitForFunction(() => [...document.querySelectorAll(".chart.gauge")].filter((c) => Number(c.dataset.points) > 1).length === 4);
      assert.deepEqual(await page.locator(".gauge > .readout").evaluateAll((all) => all.map((p) => p.textContent.replace(/[\d.]+/, "N"))),
        ["Busy N %", "Power N W", "Temperature N °C", "SM clock N GHz"]);
      const right = (selector) => page.locator(selector).first().evaluate((e) => { const r = e.getBoundingClientRect(); return [r.left, r.right]; });
      const memory = '.chart[aria-label^="Memory over time"] .u-over';
      assert.deepEqual(await right(".chart.gauge .u-over"), await right(memory), "one axis of time");
      await page.locator(memory).hover({ position: { x: 5, y: 40 } });
      await page.waitForFunction(() => !/^Now/.test(document.querySelector(".gauge-charts > .readout").textContent));
      assert.equal(await page.locator(".chart.gauge .u-cursor-x").count(), 4);
    });
  });

  inTurn("reads out each chart of the overview under one cursor, and leads on from there", async () => {
    await on(agent.url, async (page) => {
      await leak(page);
      const readouts = () => page.locator("li.gpu .readout").allTextContents();
      assert.ok((await readouts()).every((words) => /^Peak [\d.]+ GiB$/.test(words)), (await readouts()).join());
      const chart = page.locator('li.gpu .chart:not([data-points="0"]) .u-over').first();
      await chart.hover({ position: { x: 60, y: 40 } });
      await page.waitForFunction(() => [...document.querySelectorAll("li.gpu .readout")].every((p) => /^[\d: -]+: [\d.]+ [GM]iB/.test(p.textContent)));
      const times = (await readouts()).map((words) => Date.parse(`2026-01-05T${/(\d\d:\d\d:\d\d): /.exec(words)[1]}Z`) / 1000);
      assert.ok(Math.abs(times[0] - times[1]) < 120, `one time on both: ${await readouts()}`);
      await page.locator(kHeadline).hover();
      await page.waitForFunction(() => /^Peak/.test(document.querySelector("li.gpu .readout").textContent));
      await chart.click();
      await page.waitForSelector(kDrawn);
    });
  });

  for (const width of [320, 375])
    inTurn(`fits a phone ${width} pixels wide`, async () => {
      await on(agent.url, async (page) => {
        await leak(page);
        const wide = () => page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok((await wide()) <= width, `the overview is ${await wide()} wide`);
        await toGpu(page);
        await page.waitForSelector(".chart[data-layers]");
        assert.ok((await wide()) <= width, `a GPU is ${await wide()} wide`);
        await page.goto(`${agent.url}/#/alerts`);
        await page.click("li.alert button.acknowledge");
        await page.waitForSelector("li.alert input");
        assert.ok((await wide()) <= width, `the alerts are ${await wide()} wide`);
        // Nothing hides behind the edge either: overflow is clipped, so each box is asked.
        const beyond = await page.evaluate((most) => [...document.querySelectorAll("main *")]
          .filter((e) => e.getBoundingClientRect().right > most + 1 && !e.closest(".chart")).map((e) => e.outerHTML.slice(0, 80)), width);
        assert.deepEqual(beyond, []);
      }, { viewport: { width, height: 740 }, hasTouch: true, isMobile: true });
    });

  for (const colorScheme of ["light", "dark"])
    inTurn(`every text can be read: ${colorScheme}`, async () => {
      await on(agent.url, async (page) => {
        await toGpu(page);
        assert.equal(await page.getAttribute("html", "data-theme"), colorScheme);
        assert.deepEqual(await page.evaluate(weakTexts), []);
        await page.keyboard.press("t");
        const other = colorScheme === "light" ? "dark" : "light";
        await page.waitForSelector(`html[data-theme=${other}]`);
        await page.reload();
        await page.waitForSelector(`html[data-theme=${other}]`);
      }, { colorScheme });
    });

  it("says when the agent is gone, and goes on when it is back", async () => {
    const own = await startAgent(binary, { speed: 60 });
    const { page, context } = await openPage(browser, own.url);
    await page.waitForSelector(".link.live");
    await own.stop();
    await page.waitForSelector(".strip.trouble");
    const back = await startAgent(binary, { speed: 60, listen: new URL(own.url).host });
    await page.waitForSelector(".link.live");
    await page.waitForSelector(".strip.trouble", { state: "detached" });
    await context.close();
    await back.stop();
  });

  it("asks for the token, and shows nothing before", async () => {
    const token = "0123456789abcdef0123456789abcdef";
    const folder = agent.folder;
    const file = join(folder, "token");
    writeFileSync(file, `${token}\n`, { mode: 0o600 });
    const own = await startAgent(binary, { args: ["--set", `agent.token-file=${file}`] });
    const { page, context } = await openPage(browser, own.url);
    await page.fill("#token", "wrong wrong wrong");
    await page.click("form.token button");
    await page.waitForSelector(".link.locked");
    await page.fill("#token", token);
    await page.click("form.token button");
    await page.waitForSelector(kHeadline);
    await context.close();
    await own.stop();
  });

  it("shows what the policies do, and switches them off", async () => {
    const file = join(agent.folder, "policy.toml");
    writeFileSync(file, '[act]\nenabled = true\n[[policy]]\nname = "<i>training</i>"\nwhen.user = ["ada"]\nsteps = [{ do = "terminate" }]\n');
    const own = await startAgent(binary, { args: ["--config", file] });
    const { page, context, trouble } = await openPage(browser, own.url);
    const acts = 'section:has(> h2:text-is("Actions of policies"))';
    await page.waitForSelector(`${acts} .badge:has-text("dry run: recorded, not done")`);
    await page.waitForSelector(`${acts} li:has-text("would (dry run) terminate pid 4242"):has-text("policy <i>training</i>"):has-text("SIGTERM")`);
    await page.click(`${acts} button.acts-switch:has-text("Switch off")`);
    await page.waitForSelector(`${acts} .badge:has-text("switched off")`);
    await page.click(`${acts} button.acts-switch:has-text("Switch on")`);
    await page.waitForSelector(`${acts} .badge:has-text("dry run")`);
    assert.deepEqual(trouble, []);
    assert.equal(await page.evaluate("window.injected"), undefined);
    await context.close();
    await own.stop();
  });

  it("without a store the past begins with the page", async () => {
    const own = await startAgent(binary, { args: ["--no-record"] });
    const { page, context } = await openPage(browser, own.url);
    await page.waitForSelector('p.hint:has-text("Nothing is recorded")');
    await leak(page);
    await context.close();
    await own.stop();
  });

  inTurn("is small", async () => {
    await on(agent.url, async (page) => {
      await page.waitForSelector(kHeadline);
      const { bytes, paintMs } = await page.evaluate(() => {
        const files = performance.getEntriesByType("resource").filter((e) => e.name.includes("/assets/"));
        const own = performance.getEntriesByType("navigation");
        return {
          bytes: [...files, ...own].reduce((sum, e) => sum + e.transferSize, 0),
          paintMs: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
        };
      });
      console.log(`# loads ${bytes} bytes, first contentful paint after ${paintMs.toFixed(0)} ms`);
      assert.ok(bytes > 50_000 && bytes < 200_000, `${bytes} bytes`);
      assert.ok(paintMs > 0, "nothing was painted");
    });
  });
});

/** Texts whose contrast with what is behind them is below 4.5 (WCAG 2.1, 1.4.3). Runs in the page. */
function weakTexts() {
  const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  };
  const out = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.nodeValue.trim() !== "");
    if (!own || !element.checkVisibility() || element.closest("#skip, dialog, noscript")) continue;
    const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(behind(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) out.push(`${element.textContent.trim().slice(0, 30)}: ${contrast.toFixed(2)}`);
  }
  return out;
}
