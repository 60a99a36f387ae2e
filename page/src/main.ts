// The frame around the pages: the page for the current address, the header, keys, the token.
import { setToken } from "./api";
import { AlertsPage } from "./alerts";
import type { Range } from "./book";
import { Desk } from "./desk";
import { moment, printable, zone } from "./format";
import { GpuPage } from "./gpu";
import { Live } from "./live";
import { Overview } from "./overview";
import type { Page } from "./page";
import { apply, onTheme, theme, toggle } from "./theme";
import { h, render, type Node_ } from "./vdom";

const live = new Live();
const desk = new Desk(live);
const header = document.getElementById("header")!;
const main = document.getElementById("main")!;
const help = document.getElementById("help") as HTMLDialogElement;

let page: Page | null = null;
let address = "";
/** Chosen on one GPU and kept for the next. */
let range: Range = { lastS: 3600 };

function open(): void {
  const hash = location.hash.replace(/^#/, "") || "/";
  if (hash === address && page) return;
  const first = page === null;
  address = hash;
  page?.close();
  const root = document.createElement("div");
  main.replaceChildren(root);
  const gpu = /^\/gpu\/(.+)$/.exec(hash);
  if (gpu) {
    let id = gpu[1]!;
    try {
      id = decodeURIComponent(id);
    } catch {
      // An address typed by hand: it names no GPU either way, and the page shows that.
    }
    page = new GpuPage(root, live, desk, id, range, (r) => (range = r));
  } else if (hash === "/alerts") {
    page = new AlertsPage(root, live, desk);
  } else {
    page = new Overview(root, live, desk, "lastS" in range ? range.lastS : 3600, (lastS) => (range = { lastS }));
  }
  draw();
  if (!first) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function link(): Node_ {
  const silentS = (performance.now() - live.sampledMs) / 1000;
  const late = !live.paused && live.link === "live" && silentS > Math.max(10, 5 * (live.status?.interval_s ?? 1));
  const words = live.paused ? "paused" : late ? `no sample for ${silentS.toFixed(0)} s`
    : { connecting: "connecting", live: "live", lost: "not connected", locked: "locked" }[live.link];
  return h("span", { class: `link ${late ? "lost" : live.link}` }, h("span", { class: "dot", "aria-hidden": "true" }),
    h("span", { class: "words" }, words),
    live.nowS > 0 ? h("span", { class: "clock" }, ` ${moment(live.nowS, Date.now() / 1000)} ${zone(live.nowS)}`) : null);
}

function nav(href: string, text: string, extra: Node_ | null = null): Node_ {
  const here = (location.hash || "#/") === href;
  return h("a", { key: href, href, "aria-current": here ? "page" : undefined }, text, extra);
}

function draw(): void {
  const open = live.incidents().filter((a) => a.ended === "standing" && !a.acknowledged).length;
  document.title = `${open > 0 ? `(${open}) ` : ""}${page?.title ?? ""} · ${live.status?.host ?? "vramtrack"}`;
  render(header, [
    h("a", { class: "brand", href: "#/" }, "vramtrack"),
    live.status ? h("span", { class: "host" }, printable(live.status.host)) : null,
    h("nav", { "aria-label": "Pages" }, nav("#/", "Overview"),
      nav("#/alerts", "Alerts", open > 0 ? h("span", { class: "count", title: "active, not acknowledged" }, open) : null)),
    link(),
    h("button", { type: "button", onclick: toggle, "aria-label": theme() === "dark" ? "Light colours" : "Dark colours",
                  title: theme() === "dark" ? "Light colours (t)" : "Dark colours (t)" }, theme() === "dark" ? "☀" : "☾"),
    h("button", { type: "button", onclick: () => help.showModal(), "aria-label": "Help", title: "Help (?)" }, "?"),
    live.status?.simulated
      ? h("p", { class: "strip", key: "simulated" }, `Simulated: ${printable(live.status.simulated)}. No GPU of this machine is shown, and time runs fast.`)
      : null,
    live.paused ? h("p", { class: "strip", key: "paused" }, "The display is paused; watching continues. Press p to resume.") : null,
    live.link === "lost" ? h("p", { class: "strip trouble", key: "trouble", role: "alert" }, live.trouble) : null,
  ]);
  if (live.link === "locked") askToken();
  else page?.draw();
}

/** The page is served without a token, so that it can ask for one. */
function askToken(): void {
  render(main.firstElementChild!, [
    h("form", {
      class: "token",
      onsubmit: (event: SubmitEvent) => {
        event.preventDefault();
        const input = (event.currentTarget as HTMLFormElement).elements.namedItem("token") as HTMLInputElement;
        setToken(input.value);
        live.link = "connecting";
        address = "";
        void live.run();
        open();
      },
    },
      h("h1", {}, "This agent requires its token"),
      h("p", {}, "It is in the file that the setting agent.token-file names. It is kept for this tab only."),
      h("label", { for: "token" }, "Token"),
      h("input", { id: "token", name: "token", type: "password", autocomplete: "off", required: true }),
      h("button", { type: "submit", class: "primary" }, "Open")),
  ]);
}

/** Opens the GPU with the focused card or alert, or the first of the page. */
function openGpu(): void {
  const near = document.activeElement?.closest(".gpu, .alert")?.querySelector<HTMLAnchorElement>('a[href^="#/gpu/"]');
  const chosen = page?.chosen?.();
  if (near) location.hash = near.hash;
  else if (chosen) location.hash = `#/gpu/${encodeURIComponent(chosen)}`;
}

/** Opens the note of the focused alert, or of the first open one. */
function acknowledge(): void {
  const near = document.activeElement?.closest(".alert") ?? main;
  near.querySelector<HTMLButtonElement>("button.acknowledge")?.click();
}

/** The keys of `vramtrack top` that have a meaning here (docs/top.md). */
const kKeys: Record<string, () => void> = {
  o: () => { location.hash = "#/"; },
  A: () => { location.hash = "#/alerts"; },
  P: openGpu,
  d: openGpu,
  a: acknowledge,
  p: () => live.pause(!live.paused),
  t: toggle,
  "?": () => help.showModal(),
  h: () => help.showModal(),
  Escape: () => { location.hash = "#/"; },
};

function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.closest("input, dialog[open]")) return;
  if (page?.key?.(event)) {
    event.preventDefault();
    return;
  }
  const gpu = /^[0-9]$/.test(event.key)
    ? live.devices().find((d) => String(d.device.index) === event.key) : undefined;
  const act = kKeys[event.key];
  if (gpu) location.hash = `#/gpu/${encodeURIComponent(gpu.device.id)}`;
  else if (act) act();
  else return;
  event.preventDefault();
}

apply();
live.onChange(draw);
onTheme(() => live.changed());
addEventListener("hashchange", open);
addEventListener("keydown", onKey);
document.getElementById("help-close")!.addEventListener("click", () => help.close());
document.getElementById("skip")!.addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
// The header must show when samples stop arriving, although nothing else redraws it then.
setInterval(() => live.changed(), 5000);
open();
void live.run();
