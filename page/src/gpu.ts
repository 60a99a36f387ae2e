// One GPU: its verdict with every figure, its history and forecast, the processes that hold its memory, its alerts.
import { Book, isLive, type Range } from "./book";
import { getSeries } from "./api";
import { bandOf, trendOf } from "./forecast";
import { bytes, bytesOf, inLocalTime, moment, percent, printable, rateInterval, seconds } from "./format";
import { GaugeCharts, kSync } from "./gauge_charts";
import { stack, withGaps, type Layer } from "./history";
import type { Live } from "./live";
import { MemoryChart, pointWords, type MemoryData, type Point } from "./memory_chart";
import { StackChart } from "./stack_chart";
import { alertList, factRows, gaugeList, healthLines, rangeButtons, severityWord, usedBar, verdictBadge } from "./parts";
import type { AlertDesk } from "./parts";
import type { Page } from "./page";
import { ProcessList } from "./processes";
import { Sites } from "./sites";
import { colour } from "./theme";
import type { Series } from "./types";
import { h, mount, render, type Child, type Node_ } from "./vdom";
import { commandOf, deviceShort } from "./words";

const kLayers = 8;
const kFewProcesses = 20;

/** The pid in METRIC/DEVICE/PID/START_TICKS. */
const pidOf = (key: string): string => key.split("/").slice(-2)[0] ?? "";

export class GpuPage implements Page {
  private readonly book: Book;
  private readonly memory: MemoryChart;
  private readonly gauges: GaugeCharts;
  private readonly processChart: StackChart;
  private readonly slots = new Map<string, number>();
  private layers: Layer[] = [];
  private x: number[] = [];
  private past: string[] = [];  // processes in the range that are no longer in the view
  private names = new Map<string, string>();
  private asked = "";
  private point: Point | null = null;
  private at: number | null = null;
  private readonly list: ProcessList;
  private readonly sites: Sites;
  private fit = false;

  constructor(private readonly root: HTMLElement, private readonly live: Live, private readonly desk: AlertDesk,
              private readonly id: string, private range: Range, private readonly remember: (r: Range) => void) {
    this.book = new Book(live, range);
    this.list = new ProcessList(live);
    this.sites = new Sites(live, () => live.processes(id));
    this.memory = new MemoryChart({
      height: 320,
      compact: false,
      sync: kSync,
      hover: (point) => { this.point = point; live.changed(); },
      select: (fromS, toS) => this.choose({ fromS, toS: Math.min(toS, this.book.toS()) }),
    });
    this.processChart = new StackChart(260, (key) => this.colourOf(key), (index) => { this.at = index; live.changed(); });
    this.gauges = new GaugeCharts(live, id, (element, step, name) => this.prepare(element, step, name));
    this.prepare(this.memory.element, (by) => this.memory.step(by),
      "Memory over time. Arrow keys read values, plus and minus zoom, Escape returns to now");
    this.prepare(this.processChart.element, (by) => this.processChart.step(by),
      "Memory by process over time. Arrow keys read values");
  }

  get title(): string {
    const d = this.device();
    return d ? deviceShort(d.device) : "GPU";
  }

  close(): void {
    this.book.close();
    this.memory.close();
    this.gauges.close();
    this.processChart.close();
    this.sites.close();
  }

  draw(): void {
    const d = this.device();
    if (!d) {
      render(this.root, [h("h1", {}, "GPU"), h("p", { class: "faint" },
        this.live.view ? `There is no GPU ${printable(this.id)} on this machine now.` : "Waiting for the first sample…"),
        h("p", {}, h("a", { href: "#/" }, "Go to the overview"))]);
      return;
    }
    this.load(d);
    this.gauges.load(this.range);
    this.compute(d);
    const told = d.told;
    const used = this.live.bytesOf(d);
    const alerts = this.live.incidents().filter((a) => a.device.id === this.id);
    render(this.root, [
      h("div", { class: "toolbar" },
        h("h1", {}, deviceShort(d.device), " ", h("span", { class: "faint name" }, printable(d.device.name))),
        h("span", {}, severityWord(told), " ", verdictBadge(told))),
      d.paused ? h("p", { key: "paused", class: "failed" }, "The device does not answer.") : null,
      usedBar(used, d.device.capacity_bytes, told.tone),
      told.forecast ? h("p", { key: "eta", class: `eta big ${told.tone}` }, told.forecast) : null,
      told.end ? h("p", { key: "ended", class: "ended" }, inLocalTime(told.end)) : null,
      gaugeList(d, false),
      healthLines(d, this.live.nowS, false),
      h("section", { key: "memory", class: "panel" },
        h("div", { class: "toolbar" }, h("h2", {}, "Memory"), this.ranges()),
        this.book.trouble ? h("p", { key: "hint", class: "hint" }, this.book.trouble) : null,
        mount(this.memory.element, "memory"),
        h("p", { key: "readout", class: "readout", "aria-live": this.point ? "polite" : "off" }, this.readout(d)),
        this.legend(d),
        this.gauges.node(d)),
      h("section", { key: "verdict", class: "panel" }, h("h2", {}, "Verdict"), this.verdict(d)),
      h("section", { key: "who", class: "panel" },
        h("h2", {}, "Who holds it"),
        mount(this.processChart.element, "process-chart"),
        this.layerLegend(d),
        this.list.node(this.live.processes(this.id), {
          withDevice: false,
          few: kFewProcesses,
          swatch: (key) => this.colourOf(this.layers.some((l) => l.key === key) ? key : "others"),
        })),
      this.sites.node(),
      alerts.length > 0 ? h("section", { key: "alerts", class: "panel" }, h("h2", {}, "Alerts"),
        alertList(alerts, this.desk, this.live.nowS)) : null,
    ]);
    this.feed(d);
  }

  key(event: KeyboardEvent): boolean {
    if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "z") this.choose({ lastS: this.wholeS() });
    else if (event.key === "y") this.scale(!this.fit);
    else if (event.key === "ArrowLeft") this.move(-0.25);
    else if (event.key === "ArrowRight") this.move(0.25);
    else if (event.key === "Escape" && !isLive(this.range)) this.choose({ lastS: 3600 });
    else return this.list.key(event);
    return true;
  }

  private device(): Series | undefined {
    return this.live.view?.series.find((s) => s.metric === "device_used" && s.device.id === this.id);
  }

  /** Makes a chart accessible by keyboard and to screen readers. */
  private prepare(element: HTMLElement, step: (by: number) => void, name: string): void {
    element.tabIndex = 0;
    element.setAttribute("role", "group");
    element.setAttribute("aria-label", name);
    element.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -1e9, End: 1e9 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      step(by);
    });
  }

  // The past.

  private choose(range: Range): void {
    this.range = range;
    this.asked = "";
    this.remember(range);
    this.live.changed();
  }

  /** Zooms by `factor` around the cursor, if there is one, within 30 seconds and 180 days. */
  private zoom(factor: number): void {
    const from = this.book.fromS();
    const to = this.book.toS();
    const width = Math.min(180 * 86400, Math.max(30, (to - from) * factor));
    const centre = this.memory.cursorS();
    if (centre === null && isLive(this.range)) {
      this.choose({ lastS: Math.round(width) });
      return;
    }
    const middle = centre ?? (from + to) / 2;
    const end = Math.min(this.live.nowS, middle + width / 2);
    this.choose({ fromS: end - width, toS: end });
  }

  /** Everything that this agent has seen, but at least the shortest of the ranges. */
  private wholeS(): number {
    const first = this.device()?.first;
    return Math.max(900, first ? Math.ceil(this.live.nowS - seconds(first)) : 0);
  }

  private scale(fit: boolean): void {
    this.fit = fit;
    this.live.changed();
  }

  private move(by: number): void {
    const width = this.book.toS() - this.book.fromS();
    const to = Math.min(this.live.nowS, this.book.toS() + by * width);
    this.choose({ fromS: to - width, toS: to });
  }

  private load(d: Series): void {
    const r = this.range;
    const wanted = isLive(r) ? `last ${r.lastS}` : `${r.fromS} ${r.toS}`;
    if (wanted === this.asked) return;
    this.asked = wanted;
    void this.read(d, wanted);
  }

  private async read(d: Series, wanted: string): Promise<void> {
    const range = this.range;
    const [from, to] = isLive(range) ? [this.live.nowS - range.lastS, this.live.nowS] : [range.fromS, range.toS];
    let keys = this.live.processes(this.id).map((s) => s.key);
    try {
      const known = await getSeries();
      keys = known.filter((s) => s.metric === "process_used" && s.device === this.id &&
                                 seconds(s.last) >= from && seconds(s.first) <= to).map((s) => s.key);
    } catch {
      // Without a store, ended processes have no history; the book shows the reason.
    }
    if (wanted !== this.asked) return;
    // The latest are the most likely to be of interest; the agent reads this many at once.
    this.past = keys.slice(-127);
    await this.book.load([d.key, ...this.past], range);
  }

  private compute(d: Series): void {
    const stepS = Math.max(this.book.stepS, d.interval_s);
    const { x, mean } = withGaps(this.book.get(d.key), stepS);
    const living = this.live.processes(this.id);
    for (const s of living) this.names.set(s.key, `${s.pid} ${commandOf(s)}`);
    const keys = new Set([...this.past, ...living.map((s) => s.key)]);
    this.x = x;
    this.layers = stack(x, mean, [...keys].map((key) => ({ key, columns: this.book.get(key) })), stepS, kLayers);
  }

  private feed(d: Series): void {
    const f = d.verdict.finding;
    const columns = this.book.get(d.key);
    const live = isLive(this.range);
    const trend = trendOf(d);
    const marks: MemoryData["marks"] = (this.live.alerts?.alerts ?? []).filter((a) => a.key === d.key)
      .map((a) => ({ atS: seconds(a.raised), text: "alert raised", colour: "alert" }));
    if (f.onset && trend) {
      const pattern = d.told.pattern ?? "growth";
      const atS = seconds(f.onset);
      marks.unshift({ atS, text: `onset: ${pattern}`, early: `← onset ${moment(atS, this.live.nowS)}: ${pattern}`, colour: "onset" });
    }
    const range = { fromS: this.book.fromS(), toS: this.book.toS(), capacityBytes: d.device.capacity_bytes };
    this.memory.set({
      ...range,
      columns,
      fit: this.fit,
      stepS: Math.max(this.book.stepS, d.interval_s),
      trend,
      band: live ? bandOf(d, trend) : null,
      marks,
    });
    const [fromS, endS] = this.memory.xRange();
    this.gauges.feed(d, this.range, fromS, endS);
    this.processChart.set({ ...range, x: this.x, layers: this.layers });
  }

  // Words.

  private ranges(): Node_ {
    const button = (text: string, name: string, act: () => void): Node_ =>
      h("button", { key: name, type: "button", "aria-label": name, title: name, onclick: act }, text);
    return h("div", { class: "controls" },
      rangeButtons(isLive(this.range) ? this.range.lastS : null, (lastS) => this.choose({ lastS })),
      h("div", { class: "ranges", role: "group", "aria-label": "Move and zoom" },
        button("◀", "Earlier", () => this.move(-0.5)),
        button("▶", "Later", () => this.move(0.5)),
        button("+", "Zoom in", () => this.zoom(0.5)),
        button("−", "Zoom out", () => this.zoom(2)),
        h("button", { key: "scale", type: "button", "aria-pressed": String(this.fit), title: "Scale to the curve (y)",
                      onclick: () => this.scale(!this.fit) }, "Fit"),
        isLive(this.range) ? null : button("Now", "Back to now", () => this.choose({ lastS: 3600 }))));
  }

  private readout(d: Series): string {
    if (this.point) return pointWords(this.point, this.live.nowS);
    const used = this.live.bytesOf(d);
    const capacity = d.device.capacity_bytes;
    return `Now: ${capacity ? bytesOf(used, capacity) : bytes(used)}; peak ${bytes(Math.max(d.peak_bytes, used))}`;
  }

  private legend(d: Series): Node_ {
    const item = (cls: string, text: string): Node_ =>
      h("li", { key: cls }, h("span", { class: `key ${cls}`, "aria-hidden": "true" }), text);
    const f = d.verdict.finding;
    const band = isLive(this.range) && f.leak && f.oom_in_s && d.limit_bytes !== null;
    return h("ul", { class: "legend" },
      item("used", "used"), item("spread", "minimum to maximum"), item("capacity", "capacity"),
      f.onset && item("trend", "trend"),
      band && item("band", "predicted range: 10th to 90th percentile of the time to out-of-memory"));
  }

  private verdict(d: Series): Child[] {
    const told = d.told;
    const f = d.verdict.finding;
    const rows: [string, string[]][] = [["verdict", [printable(told.headline)]]];
    if (told.forecast) rows.push(["forecast", [told.forecast]]);
    if (f.state !== "too_short")
      rows.push(["growth", [rateInterval(f.growth_bytes_per_s)]], ["fit", [`R² ${f.r_squared.toFixed(3)}`]],
        ["probability of a leak", [percent(f.confidence)]]);
    if (told.pattern) rows.push(["pattern", [told.pattern]]);
    rows.push(...factRows(told.facts));
    if (told.next) rows.push(["next", [printable(told.next)]]);
    const list = (all: [string, string[]][]): Node_ => h("dl", { class: "verdict" }, all.map(([term, texts]) =>
      h("div", { key: term }, h("dt", {}, term.charAt(0).toUpperCase() + term.slice(1)), texts.map((text) => h("dd", {}, text)))));
    const more = (name: string, all: [string, string[]][], open: boolean): Child =>
      all.length > 0 && h("details", { key: name, open }, h("summary", {}, name), list(all));
    return [
      list(rows),
      f.leak || f.state === "growing" ? more("Usual causes, and what to try", factRows(told.advice), true) : null,
      more("What other detectors say", factRows(told.dissent), false),
    ];
  }

  /** A process keeps its colour for as long as the page is open; the suspect has a colour of its own. */
  private colourOf(key: string): string {
    if (key === "") return colour("rest");
    if (key === "others") return colour("others");
    const suspect = this.device()?.verdict.suspect;
    if (suspect && suspect.pid !== 0 && this.device()?.verdict.finding.leak && pidOf(key) === String(suspect.pid))
      return colour("suspect");
    let slot = this.slots.get(key);
    if (slot === undefined) this.slots.set(key, (slot = this.slots.size));
    return colour(`area-${slot % 8}`);
  }

  private layerLegend(d: Series): Node_ {
    const n = this.x.length;
    const at = this.at !== null && this.at < n ? this.at : null;
    const processes = this.live.processes(this.id);
    const held = processes.reduce((sum, s) => sum + this.live.bytesOf(s), 0);
    const when = at === null ? "Now" : moment(this.x[at]!, this.live.nowS);
    const value = (l: Layer): string => {
      const bytesAt = at === null ? l.own[n - 1] : l.own[at];
      return bytesAt === null || bytesAt === undefined ? "?" : bytes(bytesAt);
    };
    return h("div", {},
      h("p", { class: "readout", "aria-live": at === null ? "off" : "polite" },
        `${when}: ${processes.length} process${processes.length === 1 ? "" : "es"} ${at === null ? `${processes.length === 1 ? "holds" : "hold"} ${bytes(held)}, ${d.told.unattributed ?? "all of it"}` : "now; the figures below are from that time"}`),
      h("ul", { class: "legend layers" }, [...this.layers].reverse().map((l) => h("li", { key: `layer ${l.key}` },
        h("span", { class: "swatch", css: { background: this.colourOf(l.key) }, "aria-hidden": "true" }),
        h("span", { class: "text" }, l.key === "" ? "unattributed" : l.key === "others" ? "other processes"
          : this.names.get(l.key) ?? `${pidOf(l.key)} (ended)`),
        h("span", { class: "figures" }, ` ${value(l)}`)))));
  }
}
