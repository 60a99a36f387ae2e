// The page of `vramtrack fleet watch`: which jobs leak, when they run out of memory, the cost, and what the leaks have
// in common.
import { ApiError, getFleet, setToken } from "./api";
import type { Fleet, FleetFinding, FleetJob, FleetLeak } from "./fleet_types";
import { bytesOf, bytes, duration, eta, moment, percent, printable, rate, seconds, zone } from "./format";
import { badge } from "./parts";
import { apply, onTheme, theme, toggle } from "./theme";
import { h, render, type Node_ } from "./vdom";
import type { Tone } from "./types";

const kAskEveryMs = 5000;
/** Rows shown until all are requested: a fleet of a hundred thousand GPUs may have as many. */
const kFewJobs = 100;
/** A leak on one node of a job may be chance: this many such findings are shown; of the others, only the number. */
const kFewUnsure = 3;
const kSure = 0.05;

const header = document.getElementById("header")!;
const main = document.getElementById("main")!;

let fleet: Fleet | null = null;
let link: "connecting" | "live" | "lost" | "locked" = "connecting";
let trouble = "";
let filter = "";
let all = false;
const root = document.createElement("div");

const nowS = (): number => Date.now() / 1000;
const number = (n: number): string => n.toLocaleString("en-US");
const count = (n: number, noun: string): string => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
const gpuName = (l: FleetLeak): string => printable(`${l.host} ${l.index === null ? l.device : `GPU ${l.index}`}`.trim());
const dollars = (usd: number): string => `$${number(Math.round(usd))}`;

function toneOf(job: FleetJob): Tone {
  if (job.state === "ended") return "faint";
  if (job.state === "suspected") return "notice";
  if (job.oom_in_s && job.oom_in_s.mid < 3600) return "critical";
  return job.oom_in_s && job.oom_in_s.mid < 86400 ? "warning" : "watch";
}

function passes(job: FleetJob): boolean {
  const text = [job.job, job.program, ...job.nodes, ...job.leaks.flatMap((l) => [l.image, l.pod, l.user, l.device])].join("\n").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function leakRow(leak: FleetLeak): Node_ {
  const who = [leak.pod ? `pod ${leak.pod}` : "", leak.image ? `image ${leak.image}` : "", leak.driver ? `driver ${leak.driver}` : "",
    leak.user ? `user ${leak.user}` : ""].filter(Boolean).map(printable).join(", ");
  return h("li", {}, h("strong", {}, gpuName(leak)),
    ` ${rate(leak.growth_bytes_per_s)} since ${moment(seconds(leak.onset ?? leak.raised), nowS())}`,
    leak.ended ? `, ended: ${leak.told.state}` : "",
    who ? h("span", { class: "faint" }, `; ${who}`) : null);
}

function jobRow(job: FleetJob): Node_ {
  const first = job.leaks[0]!;
  const name = job.job ? printable(job.job) : "(no job known)";
  return h("tr", { key: `${job.job ?? ""} ${first.host} ${first.device}`, "data-job": job.job ?? "" },
    h("td", {}, badge(toneOf(job), job.state === "ended" ? "ended" : `${job.state === "suspected" ? "suspected: " : ""}${job.oom_in_s ? eta(job.oom_in_s) : "end not known"}`)),
    h("td", { class: "command" }, h("details", {}, h("summary", {}, name),
      job.program && job.program !== job.job ? h("p", { class: "faint" }, printable(job.program)) : null,
      job.cache_ratio === null ? null
        : h("p", { class: "faint" }, `The key-value cache of its inference server is ${percent(job.cache_ratio)} full.`),
      h("ul", {}, job.leaks.slice(0, 50).map(leakRow)),
      job.leaks.length > 50 ? h("p", { class: "faint" }, `and ${number(job.leaks.length - 50)} more GPUs`) : null)),
    h("td", {}, gpuName(first)),
    h("td", { class: "number", "data-label": "GPUs" }, `${number(job.leaks.length)} of ${number(job.gpus)}`),
    h("td", { class: "number wide" }, first.capacity_bytes ? bytesOf(first.used_bytes, first.capacity_bytes) : bytes(first.used_bytes)),
    h("td", { class: "number", "data-label": "growth" }, rate(job.growth_bytes_per_s)),
    h("td", { class: "number wide" }, percent(first.confidence)),
    h("td", { class: "number wide" }, job.cost_usd === null ? `${number(Math.round(job.gpu_hours))} GPU h` : dollars(job.cost_usd)));
}

function jobsPanel(f: Fleet): Node_ | null {
  if (f.jobs.length === 0) return null;
  const passing = f.jobs.filter(passes);
  const shown = all ? passing : passing.slice(0, kFewJobs);
  return h("section", { class: "panel", key: "jobs", "data-jobs": String(passing.length) },
    h("div", { class: "toolbar" }, h("h2", {}, "Jobs that leak"),
      h("input", { type: "search", "aria-label": "Filter the jobs", placeholder: "filter: job, node, image", value: filter,
                   oninput: (event: Event) => { filter = (event.target as HTMLInputElement).value; draw(); } })),
    h("table", { class: "lines" },
      h("thead", {}, h("tr", {}, h("th", {}, "Out of memory in"), h("th", {}, "Job"), h("th", {}, "First to leak"),
        h("th", { class: "number" }, "GPUs"), h("th", { class: "number wide" }, "Used"), h("th", { class: "number" }, "Growth"),
        h("th", { class: "number wide" }, "Probability"), h("th", { class: "number wide" }, "At risk"))),
      h("tbody", {}, shown.map(jobRow))),
    shown.length === 0 ? h("p", { class: "faint" }, "No job matches the filter.") : null,
    passing.length > shown.length
      ? h("button", { type: "button", class: "plain more", onclick: () => { all = true; draw(); } }, `Show all ${number(passing.length)}`) : null);
}

const isUnsure = (f: FleetFinding): boolean => f.kind === "node" && (f.p_value ?? 1) > kSure;

function findingsPanel(f: Fleet): Node_ | null {
  if (f.findings.length === 0) return null;
  const unsure = f.findings.filter(isUnsure).length;
  const shown = f.findings.filter((finding) => !isUnsure(finding) || unsure <= kFewUnsure).slice(0, 50);
  return h("section", { class: "panel", key: "findings" }, h("h2", {}, "What leaks have in common"),
    h("ul", {}, shown.map((finding) => h("li", { key: finding.text, "data-finding": finding.kind },
      badge("notice", { signature: "one leak", node: "a node", version: "a version" }[finding.kind]), " ", printable(finding.text)))),
    unsure > kFewUnsure
      ? h("p", { class: "faint" }, `${number(unsure)} jobs leak on one of their nodes and are healthy on the others: this is too little to tell whether the node or the work of that rank is the cause.`)
      : null);
}

function headline(f: Fleet): Node_ {
  const leaking = f.jobs.filter((job) => job.state === "leaks");
  if (f.gpus === 0) return h("h1", { class: "headline" }, "No GPU has been read.");
  if (leaking.length === 0) return h("h1", { class: "headline ok" }, `No leak on ${count(f.gpus, "GPU")}${f.suspected_gpus > 0 ? `; ${number(f.suspected_gpus)} suspected` : ""}.`);
  const soonest = leaking[0]!;
  const cost = f.cost_usd === null ? count(Math.round(f.gpu_hours_at_risk), "GPU hour") : dollars(f.cost_usd);
  return h("h1", { class: `headline ${toneOf(soonest)}` },
    `${count(f.leaking_gpus, "GPU")} of ${number(f.gpus)} ${f.leaking_gpus === 1 ? "leaks" : "leak"}`
    + (soonest.oom_in_s ? `; the first runs out of memory in ${eta(soonest.oom_in_s)}` : "")
    + (f.suspected_gpus > 0 ? `; ${number(f.suspected_gpus)} more suspected` : "") + `. At risk: ${cost} of work.`);
}

function askToken(): Node_ {
  return h("form", {
    class: "token",
    onsubmit: (event: SubmitEvent) => {
      event.preventDefault();
      setToken(((event.currentTarget as HTMLFormElement).elements.namedItem("token") as HTMLInputElement).value);
      void ask();
    },
  },
    h("h1", {}, "This page requires a token"),
    h("p", {}, "It is in the file that --token-file names. It is kept for this tab only."),
    h("label", { for: "token" }, "Token"),
    h("input", { id: "token", name: "token", type: "password", autocomplete: "off", required: true }),
    h("button", { type: "submit", class: "primary" }, "Open"));
}

function draw(): void {
  const f = fleet;
  document.title = `${f && f.leaking_gpus > 0 ? `(${f.leaking_gpus}) ` : ""}The fleet · vramtrack`;
  const words = { connecting: "connecting", live: "live", lost: "not connected", locked: "locked" }[link];
  render(header, [
    h("a", { class: "brand", href: "/" }, "vramtrack"),
    h("span", { class: "host" }, "the fleet"),
    h("nav", { "aria-label": "Pages" }),
    h("span", { class: `link ${link}` }, h("span", { class: "dot", "aria-hidden": "true" }), h("span", { class: "words" }, words),
      f ? h("span", { class: "clock" }, ` ${moment(seconds(f.time), nowS())} ${zone(seconds(f.time))}`) : null),
    h("button", { type: "button", onclick: toggle, "aria-label": theme() === "dark" ? "Light colours" : "Dark colours" },
      theme() === "dark" ? "☀" : "☾"),
    trouble ? h("p", { class: "strip trouble", key: "trouble", role: "alert" }, trouble) : null,
    f?.trouble ? h("p", { class: "strip trouble", key: "pass", role: "alert" }, printable(f.trouble)) : null,
  ]);
  if (link === "locked") return render(root, [askToken()]);
  if (!f) return render(root, [h("p", {}, "The first pass over the fleet has not finished.")]);
  render(root, [
    headline(f),
    h("p", { class: "faint", key: "about" },
      `${count(f.gpus, "GPU")} on ${count(f.machines, "machine")}, from ${f.exporters.map(printable).join(", ")} at ${printable(f.server)} `
      + `(${f.read_by}), every ${duration(f.every_s)}; the last pass took ${f.took_s.toFixed(1)} s.`),
    jobsPanel(f),
    findingsPanel(f),
    f.unread.length > 0 ? h("section", { class: "panel", key: "unread" }, h("h2", {}, "Not read"),
      h("ul", {}, f.unread.slice(0, 20).map((u) => h("li", {}, `${count(u.hosts.length, "machine")}: ${printable(u.why)}`)))) : null,
  ]);
}

let timer: ReturnType<typeof setTimeout> | undefined;

async function ask(): Promise<void> {
  clearTimeout(timer);
  try {
    fleet = await getFleet();
    link = "live";
    trouble = "";
  } catch (error) {
    const status = error instanceof ApiError ? error.status : 0;
    link = status === 401 ? "locked" : status === 503 ? "connecting" : "lost";
    trouble = status === 401 || status === 503 ? "" : error instanceof ApiError ? error.message : "vramtrack fleet watch does not answer";
  }
  draw();
  if (link !== "locked") timer = setTimeout(() => void ask(), kAskEveryMs);
}

apply();
onTheme(draw);
main.replaceChildren(root);
document.getElementById("skip")!.addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
void ask();
