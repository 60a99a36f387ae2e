// What people look at, compared with the pictures in tests/pictures that a person has looked at:
//
//   node pictures.mjs VRAMTRACK DASHBOARD SCREENS [--show FOLDER] [NAME...]    the old, the new and the difference of each that has changed
//   node pictures.mjs VRAMTRACK DASHBOARD SCREENS --update [NAME...]           takes the new ones: look at them before they are committed
//   node pictures.mjs VRAMTRACK DASHBOARD SCREENS --record [machine] [fleet]   fetches again what the pages are given, from a simulated machine and fleet
//
// Everything is given: `top` draws the models of its unit tests (SCREENS, the program that has them), the page reads recorded answers
// at a fixed time, and the reports and traces are made from fixed data. Letters differ between versions of Chromium: the pictures are
// compared only where its major version is the one they were made with.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { startFleet } from "./fleet_machine.mjs";
import { here, launch, openPage, patience, root, skip, startAgent } from "./machine.mjs";
import { pictureOfScreen } from "./paint.mjs";

// The most pixels that may differ in each stripe of kStripe rows, whatever its width: a changed word of three letters is more.
const kMostDifferent = 30;
const kStripe = 32;
const [binary, dashboard, screens] = process.argv.slice(2, 5).map((one) => resolve(one));
const options = process.argv.slice(5);
const flag = (name) => options.includes(name) && options.splice(options.indexOf(name), 1).length === 1;
const [update, record] = [flag("--update"), flag("--record")];
const show = options.includes("--show") ? resolve(options.splice(options.indexOf("--show"), 2)[1]) : undefined;
const wanted = (name) => options.length === 0 || options.includes(name);
const pictures = join(here, "../pictures");
const require = createRequire(join(root, "page/package.json"));

const kDesktop = { width: 1280, height: 900 };
const kPhone = { width: 390, height: 844 };
const kScreens = ["overview_young_80x24", "overview_young_120x40", "overview_young_200x50", "overview_one_60x16", "overview_one_80x24", "overview_one_120x40",
  "overview_one_200x50", "overview_lines_80x24", "overview_lines_120x40", "detail_process_lines_120x40", "overview_eight_120x40", "overview_eight_200x50", "overview_ended_80x24", "overview_ended_120x40", "overview_ended_200x50", "predict_one_120x40", "detail_gpu_120x40",
  "alerts_120x40"];
/** What an agent answers where the leaking process runs under `vramtrack run`: those of a simulation do not. */
const kLines = {
  "/api/v1/sites": { processes: [{ pid: 4242, user: "ada" }] },
  "/api/v1/sites?pid=4242": {
    schema: "vramtrack.trace_report.v1", program: "python train.py --config resnet50.yaml", duration_s: 3124, residual_bytes: null, sites_left_out: 3,
    verdict: { leak: true, can_tell: true, because: "1 site kept growing to the end of 45,210 events", next_step: "", growth_bytes_per_s: 10521000 },
    sites: [
      { leak: true, site: "train.py:57 train_step", call: "cuMemAlloc", live_bytes: 27_917_287_424, live_count: 13312, growth_bytes_per_s: 10_521_000,
        frames: [{ function: "train_step", file: "train.py", line: 57, python: true }, { function: "main", file: "train.py", line: 112, python: true }] },
      { leak: false, site: "resnet.py:12 load_model", call: "cuMemAlloc", live_bytes: 26_843_545_600, live_count: 291, growth_bytes_per_s: 0, frames: [] },
      { leak: false, site: "optim/adam.py:88 step", call: "cuMemAlloc", live_bytes: 4_294_967_296, live_count: 582, growth_bytes_per_s: 0, frames: [] },
    ],
  },
};
/** Each view on a desktop and on a phone, light and dark: "NAME", "NAME-dark", "NAME-phone", "NAME-phone-dark". */
function everyWay(views) {
  return Object.fromEntries(Object.entries(views).flatMap(([name, what]) => [["", kDesktop], ["-phone", kPhone]].flatMap(([narrow, size]) =>
    [["", "light"], ["-dark", "dark"]].map(([dim, theme]) => [`${name}${narrow}${dim}`, { ...what, size, theme }]))));
}
/** Of the page: what it is given, where it is opened, and how. */
const kPages = {
  ...everyWay({
    "page-overview": { given: "machine", at: "#/" },
    "page-gpu-leaks": { given: "machine", gpu: 0 },
    "page-gpu-steady": { given: "machine", gpu: 1 },
    "page-alerts": { given: "machine", at: "#/alerts" },
    "page-fleet": { given: "fleet", at: "fleet.html", use: (page) => page.click("tr[data-job] summary") },
  }),
  "page-overview-line": { given: "machine", at: "#/", size: kDesktop, theme: "light", more: kLines, shown: ".leaking-line" },
  "page-gpu-leaks-line": { given: "machine", gpu: 0, size: kDesktop, theme: "light", more: kLines, shown: "table.lines", use: (page) => page.click("table.lines summary") },
};
/** The moment itself, and who held the most then. */
const toTheFailure = async (page) => {
  await page.click("text=to the failure");
  await page.locator(".legend button").first().click();
};
/** Files that commands write, from a simulated leak and from the snapshots of timeline.mjs. */
const kFiles = {
  ...everyWay({
    "report": { command: ["report", "--format", "html", "--output", "report.html", "gpu.csv", "apps.csv"], file: "report.html" },
    "timeline-leak": { command: ["snapshot", "page", "--output", "leak.html", "leak.pickle"], file: "leak.html" },
    "flamegraph": { command: ["snapshot", "flamegraph", "--output", "flame.html", "leak.pickle"], file: "flame.html" },
  }),
  "timeline-fragmentation": { command: ["snapshot", "page", "--output", "gaps.html", "gaps.pickle"], file: "gaps.html", size: kDesktop, theme: "light" },
  "timeline-out-of-memory": { command: ["snapshot", "page", "--output", "full.html", "full.pickle"], file: "full.html", size: kDesktop, theme: "light" },
  "timeline-out-of-memory-close": { command: ["snapshot", "page", "--output", "full.html", "full.pickle"], file: "full.html", size: kDesktop, theme: "light", use: toTheFailure },
};

/** A picture of the whole page once its letters are there and two in a row are equal: each takes frames, in which elements follow their new sizes. */
async function pictureOf(page) {
  await page.evaluate(() => document.fonts.ready);
  let last;
  for (let tries = 0; tries < 20; ++tries) {
    const now = await page.screenshot({ fullPage: true });
    if (last?.equals(now)) break;
    last = now;
  }
  return last;
}

/** What is asked, whatever the time: "/api/v1/history?points=400&series=...". */
function question(path) {
  const url = new URL(path, "http://here");
  for (const time of ["from", "to"]) url.searchParams.delete(time);
  return url.pathname + url.search;
}

/** Serves the dashboard, and what was recorded of an agent's answers; its events never end. */
async function replay(given, more) {
  const { answers: recorded } = JSON.parse(readFileSync(join(pictures, `${given}.json`), "utf8"));
  const answers = { ...recorded, ...more };
  const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://here");
    if (url.pathname === "/api/v1/events") return response.writeHead(200, { "Content-Type": "text/event-stream" })
      .write(["view", "alerts"].map((what) => `event: ${what}\ndata: ${JSON.stringify(answers[`/api/v1/${what}`])}\n\n`).join(""));
    const answer = answers[question(request.url)];
    if (answer !== undefined) return response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(answer));
    const file = join(dashboard, url.pathname === "/" ? "index.html" : url.pathname);
    if (!existsSync(file)) return response.writeHead(404, { "Content-Type": "application/json" }).end(JSON.stringify({ error: "not recorded" }));
    response.writeHead(200, { "Content-Type": types[extname(file)] ?? "application/octet-stream" }).end(readFileSync(file));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => (server.closeAllConnections(), new Promise((done) => server.close(done))) };
}

/** Lets the timers of the page run until `shown` is there, all that it has asked for is answered and drawn, and it asks for no more. */
async function drawnWithAnswers(page, answers, shown) {
  const end = performance.now() + patience(20_000);
  for (let known = -1; known < answers.length || (await page.locator(shown).count()) === 0;) {
    if (performance.now() > end) throw new Error(`${page.url()}: no ${shown}`);
    known = answers.length;
    await Promise.all(answers);
    await page.clock.runFor(250); // it draws five times a second at most
  }
}

async function pictureOfPage(browser, { given, at, gpu, size, theme, use, more, shown }) {
  const agent = await replay(given, more);
  const context = await browser.newContext({ viewport: size, timezoneId: "UTC", colorScheme: theme, reducedMotion: "reduce" });
  try {
    const page = await context.newPage();
    const answers = [];
    page.on("request", (request) => { if (!request.url().endsWith("/events")) answers.push(request.response().then((response) => response?.finished())); });
    // Its timers run when they are let, and its date stands still.
    const now = Date.parse(JSON.parse(readFileSync(join(pictures, `${given}.json`), "utf8")).now);
    await page.clock.install({ time: now - 1000 });
    await page.clock.pauseAt(now);
    await page.clock.setFixedTime(now);
    await page.goto(`${agent.url}/${at ?? "#/"}`);
    await drawnWithAnswers(page, answers, given === "fleet" ? "tr[data-job]" : "li.gpu, .alert");
    if (gpu !== undefined) {
      await page.locator("li.gpu h3 a").nth(gpu).click();
      await drawnWithAnswers(page, answers, ".chart:not([data-points='0'])");
    }
    if (shown) await drawnWithAnswers(page, answers, shown);
    if (use) await use(page);
    return await pictureOf(page);
  } finally {
    await context.close();
    await agent.stop();
  }
}

async function pictureOfFile(browser, folder, { command, file, size, theme, use }) {
  const made = spawnSync(binary, command, { cwd: folder, env: { ...process.env, TZ: "UTC" }, encoding: "utf8" });
  if (made.status > 1) throw new Error(made.stderr); // 1: there is a leak
  const context = await browser.newContext({ viewport: size, offline: true, timezoneId: "UTC", colorScheme: theme, reducedMotion: "reduce" });
  try {
    const page = await context.newPage();
    await page.goto(pathToFileURL(join(folder, file)).href);
    if (use) await use(page);
    return await pictureOf(page);
  } finally {
    await context.close();
  }
}

/** Keeps what `page` is answered from now on. */
function answersTo(page) {
  const answers = {};
  page.on("response", async (response) => {
    const path = new URL(response.url()).pathname + new URL(response.url()).search;
    if (!path.startsWith("/api/") || path.startsWith("/api/v1/events")) return;
    const answer = await response.json().catch(() => undefined); // the page may have gone on
    if (answer !== undefined) answers[question(path)] = answer;
  });
  return answers;
}

/** Until `answers` has each of these questions, which begin so. */
async function answered(page, answers, questions) {
  while (!questions.every((begin) => Object.keys(answers).some((one) => one.startsWith(`/api/v1/${begin}`)))) await page.waitForEvent("requestfinished");
}

function keep(given, now, answers) {
  writeFileSync(join(pictures, `${given}.json`), `${JSON.stringify({ now: new Date(now).toISOString(), answers })}\n`);
}

/** For a machine with a leak among healthy jobs: each answer that the pages of kPages ask for. */
async function recordMachine(browser) {
  const agent = await startAgent(binary, { scenario: join(root, "scripts/pictures.toml"), speed: 60 });
  try {
    const { page, context } = await openPage(browser, agent.url, { viewport: kDesktop });
    const answers = answersTo(page);
    await page.waitForSelector('h1.headline:has-text("GPU 0 leaks")', { timeout: 240_000 });
    for (const gpu of [1, 0]) {
      const link = page.locator("li.gpu h3 a").nth(gpu);
      const device = `device=${decodeURIComponent((await link.getAttribute("href")).split("/").pop())}`;
      await link.click();
      await answered(page, answers, ["sites", "series", `gauges?${device}`, `history?points=600&series=device_used%2F${device.slice(7)}`]);
      await page.goto(`${agent.url}/#/`);
    }
    await page.reload();
    await answered(page, answers, ["acts", "status", "history?points=400"]);
    const view = await page.evaluate(() => fetch("/api/v1/view").then((r) => r.json()));
    answers["/api/v1/view"] = view;
    for (const path of ["/api/v1/status", "/api/v1/alerts"]) answers[path] = await page.evaluate((at) => fetch(at).then((r) => r.json()), path);
    await context.close();
    keep("machine", view.time, answers);
  } finally {
    await agent.stop();
  }
}

/** Of a fleet in which two GPUs of one job leak. */
async function recordFleet(browser) {
  const fleet = await startFleet(binary);
  try {
    const { page, context } = await openPage(browser, fleet.url, { viewport: kDesktop });
    const answers = answersTo(page);
    await page.waitForSelector('h1.headline:has-text("2 GPUs of 12 leak")', { timeout: 60_000 });
    await answered(page, answers, ["fleet"]);
    await context.close();
    keep("fleet", Date.now(), answers);
  } finally {
    fleet.stop();
  }
}

/** The stripe with the most pixels that differ, which pixelmatch paints red. */
function mostInStripe({ width, height, data }) {
  let worst = { from: 0, count: 0 };
  for (let from = 0; from < height; from += kStripe) {
    let count = 0;
    for (let at = from * width * 4; at < Math.min(height, from + kStripe) * width * 4; at += 4) count += data[at] === 255 && data[at + 1] === 0;
    if (count > worst.count) worst = { from, count };
  }
  return worst;
}

/** Whether `name` is as its picture is. */
function compare(name, now) {
  const { PNG } = require("pngjs");
  const match = require("pixelmatch").default ?? require("pixelmatch");
  const path = join(pictures, `${name}.png`);
  if (update) {
    writeFileSync(path, now);
    return true;
  }
  if (!existsSync(path)) return console.log(`${name}: there is no picture of it yet; --update takes one`), false;
  const [old, fresh] = [PNG.sync.read(readFileSync(path)), PNG.sync.read(now)];
  const [width, height] = [Math.max(old.width, fresh.width), Math.max(old.height, fresh.height)];
  const whole = (picture) => {
    const out = new PNG({ width, height });
    PNG.bitblt(picture, out, 0, 0, picture.width, picture.height, 0, 0);
    return out;
  };
  const difference = new PNG({ width, height });
  const count = match(whole(old).data, whole(fresh).data, difference.data, width, height, { threshold: 0.2 });
  const worst = mostInStripe(difference);
  const alike = old.width === fresh.width && Math.abs(old.height - fresh.height) <= 2 && worst.count <= kMostDifferent;
  if (!alike) {
    console.log(`${name}: ${count} of ${width * height} pixels differ, ${worst.count} of them in the ${kStripe} rows from ${worst.from} on${old.width === fresh.width && old.height === fresh.height ? "" : `, ${old.width}x${old.height} was ${fresh.width}x${fresh.height}`}`);
    if (show) for (const [what, data] of [["old", PNG.sync.write(old)], ["new", now], ["difference", PNG.sync.write(difference)]]) writeFileSync(join(show, `${name}.${what}.png`), data);
  }
  return alike;
}

const browser = await launch();
const folder = mkdtempSync(join(tmpdir(), "vramtrack-pictures-"));
let failed = 0;
try {
  const major = browser.version().split(".")[0];
  const made = join(pictures, "chromium");
  for (const [given, recordIt] of [["machine", recordMachine], ["fleet", recordFleet]]) if (record && wanted(given)) await recordIt(browser);
  if (update) writeFileSync(made, `${major}\n`);
  else if (readFileSync(made, "utf8").trim() !== major) skip(`the pictures were made with Chromium ${readFileSync(made, "utf8").trim()}, and this is ${major}`);
  if (show) mkdirSync(show, { recursive: true });
  execFileSync(screens, ["--gtest_filter=Screens/Golden.Screen/*"], { env: { ...process.env, VRAMTRACK_SCREENS: folder }, stdio: ["ignore", "ignore", "inherit"] });
  execFileSync(binary, ["simulate", "leaking_training", "--csv", "gpu.csv", "--process-csv", "apps.csv"], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  execFileSync("python3", [join(here, "snapshots.py"), folder]);
  const all = [
    ...kScreens.map((name) => [`top-${name}`, () => pictureOfScreen(browser, JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8")))]),
    ...Object.entries(kPages).map(([name, what]) => [name, () => pictureOfPage(browser, what)]),
    ...Object.entries(kFiles).map(([name, what]) => [name, () => pictureOfFile(browser, folder, what)]),
  ].filter(([name]) => wanted(name));
  for (const [name, take] of all) if (!compare(name, await take())) ++failed;
  const stray = readdirSync(pictures).filter((file) => file.endsWith(".png") && options.length === 0 && !all.some(([name]) => `${name}.png` === file));
  for (const file of stray) console.log(`tests/pictures/${file}: nothing makes it any more; delete it`);
  console.log(`${all.length} pictures, ${failed} differ`);
  if (failed && !show) console.log("the same command with --show FOLDER writes the old, the new and the difference of each");
  process.exitCode = failed || stray.length ? 1 : 0;
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
