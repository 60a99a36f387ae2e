// Sites: which lines of the processes under `vramtrack run` keep memory. Polled, because the stream lacks them.
import { getProbedPids, getSites } from "./api";
import { printable, rate as rateOf, size } from "./format";
import type { Live } from "./live";
import { badge } from "./parts";
import { Poll } from "./poll";
import type { MemorySite, Series, SitesReport } from "./types";
import { h, type Node_ } from "./vdom";
import { commandOf } from "./words";

const kFewSites = 12;

const lineOf = (s: MemorySite): string => printable(s.site || s.call);
const rate = (bytesPerS: number): string => (Math.trunc(bytesPerS) === 0 ? "–" : `${size(bytesPerS)}/s`);

function conclusion(report: SitesReport): Node_ {
  const { verdict } = report;
  const leaking = report.sites.filter((s) => s.leak).length;
  const words = leaking > 0 ? `${leaking} line${leaking === 1 ? " leaks" : "s leak"}, ${rate(verdict.growth_bytes_per_s)}`
    : verdict.suspected ? "a line may leak" : verdict.can_tell ? "no line leaks" : "too early to tell";
  return h("p", { key: "conclusion" }, badge(leaking > 0 ? "critical" : verdict.suspected ? "warning" : verdict.can_tell ? "ok" : "faint", words), " ",
    h("span", { class: "faint" }, printable(verdict.because)));
}

function stack(s: MemorySite): Node_ {
  return h("details", {}, h("summary", {}, "Stack"),
    h("ol", { class: "stack" }, s.frames.map((f) =>
      h("li", {}, `${printable(f.function)} ${printable(f.file)}${f.line > 0 ? `:${f.line}` : ""}`))));
}

function table(report: SitesReport): Node_ {
  const head = (text: string, cls = ""): Node_ => h("th", { scope: "col", class: cls, key: text }, text);
  const number = (label: string, text: string): Node_ =>
    h("td", { key: label, class: "number", "data-label": label }, text);
  return h("table", { key: "table", class: "lines" },
    h("thead", {}, h("tr", {}, head("Line"), head("Growth", "number"), head("Live", "number"), head("Blocks", "number"))),
    h("tbody", {}, report.sites.slice(0, kFewSites).map((s) => h("tr", { key: lineOf(s) },
      h("td", { key: "line", class: "site" }, s.leak ? badge("critical", "leak") : null, s.leak ? " " : null, lineOf(s),
        s.leak && s.frames.length > 0 ? stack(s) : null),
      number("Growth", rate(s.growth_bytes_per_s)), number("Live", size(s.live_bytes)),
      number("Blocks", String(s.live_count))))));
}

export class Sites {
  /** For processes that run under the probe; null: there is no report yet. */
  private reports = new Map<number, SitesReport | null>();
  private readonly poll: Poll;

  constructor(live: Live, private readonly processes: () => Series[]) {
    this.poll = new Poll(live, (signal) => this.ask(signal));
  }

  close(): void {
    this.poll.close();
  }

  private async ask(signal: AbortSignal): Promise<void> {
    const probed = new Set(await getProbedPids(signal));
    const mine = [...new Set(this.processes().map((s) => s.pid))].filter((pid) => probed.has(pid));
    const answers = new Map<number, SitesReport | null>();
    // Known lines stay if a run fails to answer once.
    for (const pid of mine) answers.set(pid, (await getSites(pid, signal)) ?? this.reports.get(pid) ?? null);
    this.reports = answers;
  }

  /** The leaking line of a process, and its growth; null: none is known. */
  leakingLine(pid: number): string | null {
    const site = this.reports.get(pid)?.sites[0];
    return site?.leak ? `${lineOf(site)}, ${rateOf(site.growth_bytes_per_s)}` : null;
  }

  /** Empty if no process of this GPU runs under the probe. */
  node(): Node_ | null {
    const shown = this.processes().filter((s, i, all) => this.reports.has(s.pid) && all.findIndex((o) => o.pid === s.pid) === i);
    if (shown.length === 0) return null;
    return h("section", { key: "lines", class: "panel" }, h("h2", {}, "Lines that keep memory"), shown.map((s) => {
      const report = this.reports.get(s.pid);
      const more = report ? report.sites.length - Math.min(kFewSites, report.sites.length) + report.sites_left_out : 0;
      return h("div", { key: `lines of ${s.pid}`, class: "sites" },
        h("h3", {}, h("span", { class: "pid" }, String(s.pid)), ` ${commandOf(s)}`),
        report ? [
          conclusion(report),
          report.sites.length > 0 ? table(report) : null,
          more > 0 ? h("p", { key: "more", class: "faint" }, `and ${more} more: 'vramtrack trace report' on the run's trace shows all`) : null,
        ] : h("p", { class: "faint" }, "It runs under 'vramtrack run'; its first report comes within a few seconds."));
    }));
  }
}
