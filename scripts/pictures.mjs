// Makes the pictures of docs/images: node scripts/pictures.mjs VRAMTRACK FOLDER [NAME...]
// `top` runs in tmux; xterm.js draws in Chromium what it wrote. The page is the agent's own.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { here, launch, openPage, startAgent } from "../tests/browser/machine.mjs";
import { pictureOfScreen } from "../tests/browser/paint.mjs";

const [binary, folder, ...chosen] = [resolve(process.argv[2]), resolve(process.argv[3]), ...process.argv.slice(4)];
const machine = join(here, "../../scripts/pictures.toml");
const ended = join(here, "../../scripts/pictures_ended.toml");
mkdirSync(folder, { recursive: true });

/** Played until the clock in the first line is `at`, then `keys` are typed, and `then` has to be there. */
const kScreens = {
  "top-80x24": { size: [80, 24], scenario: machine, at: / 08:5\d:\d\d UTC/ },
  "top-200x50": { size: [200, 50], scenario: machine, at: / 08:5\d:/ },
  "top-predict": { size: [120, 36], scenario: "leaking_training", at: / 09:0\d:/, keys: ["P"], then: /because/ },
  "top-ended": { size: [120, 36], scenario: ended, at: / 09:2\d:/ },
  "top-growing-again": { size: [120, 36], scenario: ended, at: / 09:5\d:/ },
};
/** Taken once `shows` is on the page that opens. */
const kPages = {
  "dashboard-light": { theme: "light", hash: "#/", scenario: machine, shows: 'h1.headline:has-text("GPU 0 leaks")' },
  "dashboard-gpu-dark": { theme: "dark", hash: "gpu", scenario: machine, shows: 'h1.headline:has-text("GPU 0 leaks")' },
  "dashboard-ended": { theme: "light", hash: "gpu", scenario: ended, shows: 'h1.headline:has-text("ran out")' },
  "dashboard-growing-again": { theme: "light", hash: "gpu", scenario: ended, shows: 'body:has-text("5242"):has(h1.headline:has-text("GPU 0 leaks"))' },
};

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function screenOf({ size: [columns, rows], scenario, at, keys = [], then }) {
  const home = mkdtempSync(join(tmpdir(), "vramtrack-pictures-"));
  const tmux = (...args) => execFileSync("tmux", ["-S", join(home, "tmux"), ...args], { encoding: "utf8" });
  const shows = async (text) => {
    for (let tries = 0; tries < 1200; ++tries, await sleep(50)) if (text.test(tmux("capture-pane", "-p"))) return;
    throw new Error(`${text} never came:\n${tmux("capture-pane", "-p")}`);
  };
  try {
    writeFileSync(join(home, "conf"), "set -g status off\nset -g default-terminal tmux-256color\nset -g escape-time 0\n");
    tmux("-f", join(home, "conf"), "new-session", "-d", "-x", String(columns), "-y", String(rows),
      `env HOME=${home} XDG_RUNTIME_DIR=${home} XDG_STATE_HOME=${home} LC_ALL=C.UTF-8 TZ=UTC ${binary} top --scenario ${scenario} --speed 300`);
    await shows(at);
    tmux("send-keys", "Space");
    for (const key of keys) tmux("send-keys", key);
    if (then) await shows(then);
    await sleep(300);
    return tmux("capture-pane", "-e", "-p").split("\n").slice(0, rows);
  } finally {
    try {
      tmux("kill-server");
    } catch {
      // It has ended by itself.
    }
    rmSync(home, { recursive: true, force: true });
  }
}

const browser = await launch();
const wanted = (name) => chosen.length === 0 || chosen.includes(name);
try {
  for (const [name, screen] of Object.entries(kScreens).filter(([n]) => wanted(n))) {
    const [columns, rows] = screen.size;
    writeFileSync(join(folder, `${name}.png`), await pictureOfScreen(browser, { text: (await screenOf(screen)).join("\r\n"), columns, rows }));
  }
  for (const [name, { theme, hash, scenario, shows }] of Object.entries(kPages).filter(([n]) => wanted(n))) {
    const agent = await startAgent(binary, { scenario, speed: 120 });
    try {
      const { page, context } = await openPage(browser, agent.url, { colorScheme: theme });
      await page.waitForSelector(shows, { timeout: 120_000 });
      if (hash === "gpu") await page.click('li.gpu h3 a');
      else await page.goto(`${agent.url}/${hash}`);
      await sleep(1500);
      await page.screenshot({ path: join(folder, `${name}.png`) });
      await context.close();
    } finally {
      await agent.stop();
    }
  }
} finally {
  await browser.close();
}
