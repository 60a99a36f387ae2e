// Parts that several pages show: a verdict's badge, the bar, a table of processes, an alert.
import { bytes, bytesOf, inLocalTime, moment, percent, printable, seconds } from "./format";
import type { Alert, ConclusionWords, Fact, Series, Tone } from "./types";
import { h, type Node_ } from "./vdom";
import { commandOf, conditionTone, deviceShort, gauges, healthWords, toneMark } from "./words";

export const gpuLink = (id: string): string => `#/gpu/${encodeURIComponent(id)}`;

export function badge(tone: Tone, words: string): Node_ {
  return h("span", { class: `badge ${tone}` }, h("span", { "aria-hidden": "true" }, toneMark[tone]), ` ${words}`);
}

export const verdictBadge = (told: ConclusionWords): Node_ => badge(told.tone, printable(told.headline));

/** Splits a sentence into its reasons. */
const reasons = (because: string): string[] => printable(because).split("; ").map(inLocalTime);

/** The lines below a verdict: lines with the same label under one term; each reason has its own line. */
export function factRows(facts: Fact[] | undefined): [string, string[]][] {
  const rows: [string, string[]][] = [];
  for (const { label, text } of facts ?? []) {
    const last = rows[rows.length - 1];
    const texts = label === "because" ? reasons(text) : [inLocalTime(text)];
    if (last?.[0] === label) last[1].push(...texts);
    else rows.push([label, texts]);
  }
  return rows;
}

/** A GPU's health in one line, and its problems with the remedies; only the latter if `brief`. */
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

/** Processes that hold memory and make no progress, each with its reasons; empty if there are none. Idle processes rest
    by design, so they are not listed. */
export function stallList(processes: Series[]): Node_ | null {
  const shown = new Map<string, Series>();  // a process on several devices is listed once
  for (const s of processes)
    if (s.stall && s.stall.judgement !== "idle" && !s.ended) shown.set(`${s.pid} ${s.first ?? ""}`, s);
  if (shown.size === 0) return null;
  const rows = [...shown.values()].sort((a, b) => b.told.concern - a.told.concern || b.stall!.held_bytes - a.stall!.held_bytes);
  return h("section", { key: "stalls" }, h("h2", {}, "Processes without progress"),
    h("ul", { class: "stalls" }, rows.map((s) => {
      const stall = s.stall!;
      return h("li", { key: s.key, "data-stall": String(s.pid) },
        h("p", {}, badge(s.told.stall_tone ?? "plain", printable(s.told.stall ?? "")), " ",
          h("span", {}, `pid ${s.pid} ${printable(commandOf(s))}`), " ",
          h("span", { class: "faint" }, `holds ${bytes(stall.held_bytes)}`)),
        h("p", { class: "because" }, printable(stall.evidence.join("; "))),
        stall.next ? h("p", { class: "next" }, printable(stall.next)) : null);
    })));
}

/** "CRITICAL" next to the words of a leak; empty if healthy, and for a leak without urgency: its words suffice. */
export function severityWord(told: ConclusionWords): Node_ | null {
  return told.severity && told.tone !== "watch" ? h("span", { class: `severity ${told.tone}` }, told.severity) : null;
}

export function usedBar(used: number, capacity: number | null, tone: Tone): Node_ {
  if (capacity === null || capacity <= 0) return h("p", { class: "used" }, `${bytes(used)} used; capacity unknown`);
  const share = Math.min(1, Math.max(0, used / capacity));
  return h("div", { class: "used" },
    h("div", { class: "bar", "aria-hidden": "true" },
      h("div", { class: `fill ${tone}`, css: { width: `${(share * 100).toFixed(1)}%` } })),
    h("span", { class: "figures" }, `${bytesOf(used, capacity)} `, h("span", { class: "faint" }, percent(share))));
}

/** Temperature, power, fan and utilisation. Empty if the driver reports none of them. */
export function gaugeList(s: Series, brief: boolean): Node_ | null {
  const all = gauges(s);
  if (all.length === 0) return null;
  // On a card, unknown values are left out, and so are labels of figures that are clear without them.
  const shown = brief ? all.filter(([, words]) => words !== "–").slice(0, 4) : all;
  return h("ul", { key: "gauges", class: "gauges", "aria-label": "Gauges" }, shown.map(([name, words]) =>
    h("li", { key: name }, h("span", { class: brief && (name === "temperature" || name === "power") ? "quiet" : "faint" }, name),
      " ", h("span", { class: "figures" }, words))));
}

export function rangeButtons(chosenS: number | null, choose: (lastS: number) => void): Node_ {
  const all: [string, string, number][] = [
    ["15m", "15 minutes", 900], ["1h", "1 hour", 3600], ["6h", "6 hours", 21600], ["24h", "24 hours", 86400],
    ["7d", "7 days", 604800],
  ];
  return h("div", { class: "ranges", role: "group", "aria-label": "Time shown" }, all.map(([text, name, lastS]) =>
    h("button", {
      key: text, type: "button", "aria-label": `${text}: the last ${name}`, "aria-pressed": String(chosenS === lastS),
      onclick: () => choose(lastS),
    }, text)));
}

// Alerts.

/** What an alert's row needs from the page: the function that acknowledges, and the state of that. */
export interface AlertDesk {
  /** The alert whose note is being written, if any. */
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
  const told = a.told;
  const acked = a.acknowledged;
  const noteId = `note-${a.id}`;
  return h("li", { key: a.id, class: `alert ${standing ? "stands" : "over"}`, "data-alert": a.id },
    h("div", { class: "line" },
      badge(told.tone, told.severity), " ",
      h("a", { href: gpuLink(a.device.id) }, deviceShort(a.device)), h("span", {}, who, ": "),
      h("strong", {}, told.what),
      h("span", { class: "faint" },
        ` raised ${moment(seconds(a.raised), nowS)}${told.figures ? `, ${told.figures}` : ""}; `,
        a.cleared ? `ended ${moment(seconds(a.cleared), nowS)}: ` : "", inLocalTime(told.ended ?? ""))),
    f.because ? h("ul", { class: "because" }, reasons(f.because).map((reason) => h("li", {}, reason))) : null,
    a.silenced
      ? h("p", { class: "silenced" }, a.silenced.ends ? `silenced until ${moment(seconds(a.silenced.ends), Date.now() / 1000)}` : "silenced",
          a.silenced.by ? ` by ${printable(a.silenced.by)}` : "", a.silenced.comment ? `: ${printable(a.silenced.comment)}` : "")
      : null,
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
