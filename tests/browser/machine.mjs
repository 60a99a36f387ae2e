// A real agent on a free port of loopback, and a headless Chromium to look at it.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const here = dirname(fileURLToPath(import.meta.url));
export const root = join(here, "../..");
export const kSkipped = 77; // what CTest takes for "skipped"

/** Ends the program as skipped. */
export function skip(reason) {
  console.log(`skipped: ${reason}`);
  process.exit(kSkipped);
}

/** The deadline, in ms, for what an idle machine does within `ms`: one factor for all tests (tests/cli/patience.py). */
export const patience = (ms) => ms * Number(process.env.VRAMTRACK_TEST_PATIENCE ?? 5);

const require = createRequire(join(root, "page/package.json"));

/** Playwright's chromium launcher, or the end of the program with the reason. */
export function playwright() {
  try {
    return require("playwright-core").chromium;
  } catch {
    return skip("page/node_modules has no playwright-core: 'npm ci' in page/ fetches it");
  }
}

/** axe-core as a script for the page, or the end of the program with the reason. */
export function axeSource() {
  try {
    return readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  } catch {
    return skip("page/node_modules has no axe-core: 'npm ci' in page/ fetches it");
  }
}

export function chromiumPath() {
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const named = process.env.VRAMTRACK_CHROMIUM;
  if (named) return named;
  for (const folder of (process.env.PATH ?? "").split(delimiter))
    for (const name of names) if (folder && existsSync(join(folder, name))) return join(folder, name);
  return skip("no Chromium: 'scripts/setup.sh browser' installs it on Debian, or VRAMTRACK_CHROMIUM names one");
}

/** Root has no user namespaces to make a sandbox with in most containers; the pages are our own. */
export function launch() {
  return playwright().launch({ executablePath: chromiumPath(), args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** The clock that `make test-anywhere` sets, if it does. */
function clockOf(env) {
  const { CLOCK_AHEAD_S, LD_PRELOAD } = env;
  return CLOCK_AHEAD_S ? { CLOCK_AHEAD_S, LD_PRELOAD } : {};
}

/** An agent that simulates `scenario` `speed` times as fast as it was. */
export async function startAgent(binary, { scenario = join(here, "leak.toml"), speed = 150, listen = "127.0.0.1:0", args = [] } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "vramtrack-browser-"));
  const child = spawn(binary, ["agent", "--scenario", scenario, "--speed", String(speed), "--listen", listen, ...args], {
    cwd: folder,
    env: { ...clockOf(process.env), PATH: process.env.PATH, HOME: folder, XDG_RUNTIME_DIR: folder, XDG_STATE_HOME: folder, TMPDIR: folder, TZ: "UTC",
           VRAMTRACK_ALERT_LEAD_TIME_MINUTES: "0" },  // the page of an alert, not the wait for it
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const url = await new Promise((resolve, reject) => {
    child.stderr.on("data", (data) => {
      log += data;
      const match = /answers on (http:\/\/[^ ;]+)/.exec(log);
      if (match) resolve(match[1]);
    });
    child.once("error", reject);
    void ended.then(() => reject(new Error(`the agent ended: ${log}`)));
  });
  return {
    url,
    folder,
    log: () => log,
    async stop() {
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A page that must say nothing on the console and ask nobody but the agent; `trouble` is what it did all the same. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, timezoneId: "UTC", ...options });
  const page = await context.newPage();
  const trouble = [];
  page.on("console", (m) => {
    if (m.type() === "error" || m.type() === "warning") trouble.push(`${m.type()}: ${m.text()}`);
  });
  page.on("pageerror", (error) => trouble.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) trouble.push(`asked ${request.url()}`);
  });
  page.setDefaultTimeout(patience(20_000));
  await page.goto(`${url}/`);
  return { page, context, trouble };
}
