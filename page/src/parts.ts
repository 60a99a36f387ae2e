// Pieces that several pages show: a verdict's badge, the bar, a table of processes, an alert.
import { bytes, bytesOf, eta, moment, percent, printable, rate, seconds } from "./format";
import type { Live } from "./live";
import type { Alert, Series, Verdict } from "./types";
import { h, type Node_ } from "./vdom";
import {
  alertEnd, commandOf, conditionTone, deviceShort, healthWords, patternWords, toneMark, toneOf, verdictWords,
} from "./words";
import type { Tone } from "./words";

export const gpuLink = (id: string): string => `#/gpu/${encodeURIComponent(id)}`;

function badge(tone: Tone, words: string): Node_ {
  return h("span", { class: `badge ${tone}` }, h("span", { "aria-hidden": "true" }, toneMark[tone]), ` ${words}`);
}

export const verdictBadge = (v: Verdict): Node_ => badge(toneOf(v), verdictWords(v.finding));

/** A GPU's health in one line, and what is wrong with what to do; only the latter when `brief`. */
export function healthLines(s: Series, nowS: number, brief: boolean): Node_ | null {
  const c = s.condition;
  if (!c || (brief && c.problems.length === 0)) return null;
  return h("div", { key: "health", class: "health" },
    brief ? null : h("p", {}, "Health: ", badge(conditionTone(c.level), c.level === "unknown" ? "not known" : c.level), " ",
      h("span", { class: "faint" }, healthWords(s, nowS))),
    c.problems.slice(0, brief ? 1 : undefined).map((p) =>
      h("p", { key: p.text }, badge(conditionTone(p.level), `${p.level}: ${printable(p.text)}`),
        brief ? null : h("span", { class: "next" }, printable(p.next)))));
}

/** "critical" beside the words of a leak; nothing for what is well. */
export function severityWord(v: Verdict): Node_ | null {
  return v.severity === "ok" ? null : h("span", { class: `severity ${v.severity}` }, v.severity);
}

export function usedBar(used: number, capacity: number | null, tone: Tone): Node_ {
  if (capacity === null || capacity <= 0) return h("p", { class: "used" }, `${bytes(used)} used; capacity unknown`);
  const share = Math.min(1, Math.max(0, used / capacity));
  return h("div", { class: "used" },
    h("div", { class: "bar", "aria-hidden": "true" },
      h("div", { class: `fill ${tone}`, css: { width: `${(share * 100).toFixed(1)}%` } })),
    h("span", { class: "figures" }, `${bytesOf(used, capacity)} `, h("span", { class: "faint" }, percent(share))));
}

export function rangeButtons(chosenS: number | null, choose: (lastS: number) => void): Node_ {
  const all: [string, string, number][] = [
    ["15m", "15 minutes", 900], ["1h", "1 hour", 3600], ["6h", "6 hours", 21600], ["24h", "24 hours", 86400],
    ["7d", "7 days", 604800],
  ];
  return h("div", { class: "ranges", role: "group", "aria-label": "Time shown" }, all.map(([text, name, lastS]) =>
    h("button", {
      key: text, type: "button", "aria-label": `Last ${name}`, "aria-pressed": String(chosenS === lastS),
      onclick: () => choose(lastS),
    }, text)));
}

// Processes.

const place = (s: Series): string =>
  [s.process?.pod, s.process?.container, s.process?.slurm_job ? `job ${s.process.slurm_job}` : ""]
    .filter((t): t is string => Boolean(t)).map(printable).join(", ");

/** Those that grow first, then the largest. */
function processOrder(live: Live): (a: Series, b: Series) => number {
  const growth = (s: Series): number =>
    s.verdict.finding.leak ? 2 : ["growing", "leaking", "slow_growth"].includes(s.verdict.finding.state) ? 1 : 0;
  return (a, b) => growth(b) - growth(a) || live.bytesOf(b) - live.bytesOf(a) || (a.key < b.key ? -1 : 1);
}

export function processTable(live: Live, rows: Series[], options: {
  withDevice: boolean; most: number; all: () => void; swatch?: (key: string) => string;
}): Node_ {
  if (rows.length === 0) return h("p", { class: "faint" }, "No process is visible here.");
  const shown = [...rows].sort(processOrder(live)).slice(0, options.most);
  const where = shown.some((s) => place(s) !== "");
  const head = (text: string, cls = ""): Node_ => h("th", { scope: "col", class: cls, key: text }, text);
  const cell = (label: string, cls: string, ...content: (Node_ | string | null)[]): Node_ =>
    h("td", { key: label, class: cls, "data-label": label }, content);
  return h("div", {},
    h("table", { class: "processes" },
      h("thead", {}, h("tr", {},
        head("Process"), options.withDevice && head("GPU"), head("User", "wide"), head("Framework", "wide"),
        head("Memory", "number"), head("Growth", "number"), head("Verdict"), head("Since", "wide"),
        where && head("Container, job", "wide"))),
      h("tbody", {}, shown.map((s) => {
        const f = s.verdict.finding;
        const told = f.state !== "too_short";
        const command = commandOf(s);
        return h("tr", { key: s.key },
          cell("Process", "command",
            options.swatch ? h("span", { class: "swatch", css: { background: options.swatch(s.key) }, "aria-hidden": "true" }) : null,
            h("span", { class: "pid" }, String(s.pid)), " ",
            h("span", { class: "text", title: command }, command),
            s.process?.command_hidden ? h("span", { class: "faint", title: "The command line is for its owner and root" }, " (hidden)") : null),
          options.withDevice ? cell("GPU", "", h("a", { href: gpuLink(s.device.id) }, deviceShort(s.device))) : null,
          cell("User", "wide", printable(s.process?.user ?? "") || "?"),
          cell("Framework", "wide", printable(s.process?.framework || s.verdict.framework || "") || "–"),
          cell("Memory", "number", bytes(live.bytesOf(s))),
          cell("Growth", "number", told ? rate(f.growth_bytes_per_s.mid) : "–"),
          cell("Verdict", "", verdictBadge(s.verdict)),
          cell("Since", "wide", s.first ? moment(seconds(s.first), live.nowS) : "?"),
          where ? cell("Container, job", "wide", place(s)) : null);
      }))),
    rows.length > shown.length
      ? h("button", { type: "button", class: "more", onclick: options.all }, `Show all ${rows.length} processes`) : null);
}

// Alerts.

/** What an alert's row needs of the page: who acknowledges, and how far that is. */
export interface AlertDesk {
  /** The alert whose note is being written, or none. */
  open: string | null;
  busy: string | null;
  failed: { id: string; text: string } | null;
  ask(id: string | null): void;
  acknowledge(id: string, note: string): void;
  takeBack(id: string): void;
}

function alertItem(a: Alert, desk: AlertDesk, nowS: number): Node_ {
  const f = a.finding;
  const standing = a.ended === "standing";
  const who = a.pid ? `, pid ${a.pid}${a.process ? ` ${printable(a.process)}` : ""}` : "";
  const oom = f.oom_in_s ? `, then out of memory in ${eta(f.oom_in_s)}` : "";
  const acked = a.acknowledged;
  const noteId = `note-${a.id}`;
  return h("li", { key: a.id, class: `alert ${standing ? "stands" : "over"}`, "data-alert": a.id },
    h("div", { class: "line" },
      badge(a.severity === "ok" ? "watch" : a.severity, a.severity), " ",
      h("a", { href: gpuLink(a.device.id) }, deviceShort(a.device)), h("span", {}, who, ": "),
      h("strong", {}, patternWords(f.pattern)),
      h("span", { class: "faint" },
        ` raised ${moment(seconds(a.raised), nowS)}, probability of a leak ${percent(f.confidence)}${oom}; ${alertEnd(a)}`,
        a.cleared ? ` ${moment(seconds(a.cleared), nowS)}` : "",
        a.end_reason && a.ended !== "process_ended" ? `: ${printable(a.end_reason)}` : "")),
    f.because ? h("p", { class: "because" }, printable(f.because)) : null,
    acked
      ? h("p", { class: "acknowledged" }, "✓ acknowledged",
          acked.by ? ` by ${printable(acked.by)}` : "", ` ${moment(seconds(acked.time), Date.now() / 1000)}`,
          acked.note ? `: ${printable(acked.note)}` : "", " ",
          h("button", { type: "button", class: "plain", disabled: desk.busy === a.id, onclick: () => desk.takeBack(a.id) },
            "take back"))
      : desk.open === a.id
        ? h("form", {
            class: "note",
            onsubmit: (event: SubmitEvent) => {
              event.preventDefault();
              const input = (event.currentTarget as HTMLFormElement).elements.namedItem("note") as HTMLInputElement;
              desk.acknowledge(a.id, input.value.trim());
            },
            onkeydown: (event: KeyboardEvent) => {
              if (event.key === "Escape") desk.ask(null);
            },
          },
            h("label", { for: noteId }, "Note (optional)"),
            h("input", { id: noteId, name: "note", maxlength: "512", autocomplete: "off" }),
            h("button", { type: "submit", class: "primary", disabled: desk.busy === a.id }, "Acknowledge"),
            h("button", { type: "button", onclick: () => desk.ask(null) }, "Cancel"))
        : h("button", { type: "button", class: "acknowledge", onclick: () => desk.ask(a.id) }, "Acknowledge"),
    desk.failed?.id === a.id ? h("p", { class: "failed", role: "alert" }, desk.failed.text) : null);
}

export function alertList(alerts: Alert[], desk: AlertDesk, nowS: number): Node_ {
  return h("ul", { class: "alerts" }, alerts.map((a) => alertItem(a, desk, nowS)));
}
