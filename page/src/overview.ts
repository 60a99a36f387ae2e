// The machine at a glance: whether anything leaks, which process, and when memory runs out.
import { ActsList } from "./acts";
import { Book } from "./book";
import { bytes, rate, seconds } from "./format";
import { bandOf, trendOf } from "./forecast";
import type { Live } from "./live";
import { MemoryChart, pointWords, type Point } from "./memory_chart";
import { alertList, gaugeList, gpuLink, healthLines, rangeButtons, severityWord, stallList, usedBar, verdictBadge } from "./parts";
import type { AlertDesk } from "./parts";
import type { Page } from "./page";
import { ProcessList } from "./processes";
import { Sites } from "./sites";
import type { Series } from "./types";
import { h, mount, render, type Child, type Node_ } from "./vdom";
import { deviceShort } from "./words";
import { inLocalTime, printable } from "./format";

const kFewProcesses = 12;

/** Worst first: on a phone, only the first card is visible. */
function order(devices: Series[]): Series[] {
  return [...devices].sort((a, b) => b.told.concern - a.told.concern);
}

export class Overview implements Page {
  readonly title = "Overview";
  private readonly book: Book;
  private charts = new Map<string, MemoryChart>();
  /** The point under the cursor, by GPU. */
  private points = new Map<string, Point | null>();
  private asked = "";
  private readonly list: ProcessList;
  private readonly acts: ActsList;
  private readonly sites: Sites;

  constructor(private readonly root: HTMLElement, private readonly live: Live, private readonly desk: AlertDesk,
              private lastS: number, private readonly remember: (lastS: number) => void) {
    this.book = new Book(live, { lastS }, 400);
    this.list = new ProcessList(live);
    this.acts = new ActsList(live);
    this.sites = new Sites(live, () => {
      const suspects = new Set(live.devices().filter((d) => d.verdict.finding.leak).map((d) => d.verdict.suspect?.pid));
      return live.processes().filter((s) => suspects.has(s.pid));
    });
  }

  close(): void {
    this.book.close();
    this.acts.close();
    this.sites.close();
    for (const chart of this.charts.values()) chart.close();
  }

  key(event: KeyboardEvent): boolean {
    return this.list.key(event);
  }

  /** That of the first card. */
  chosen(): string | undefined {
    return order(this.live.devices())[0]?.device.id;
  }

  draw(): void {
    const { live } = this;
    const devices = live.devices();
    if (!live.view) {
      render(this.root, [h("h1", {}, "Overview"), h("p", { class: "faint" }, "Waiting for the first sample…")]);
      return;
    }
    this.load(devices);
    const { tone, text } = live.view.headline;
    const standing = live.incidents().filter((a) => a.ended === "standing");
    render(this.root, [
      h("h1", { class: `headline ${tone}` }, h("span", { role: "status" }, printable(text))),
      h("div", { class: "toolbar" }, h("h2", {}, "GPUs"), rangeButtons(this.lastS, (lastS) => this.choose(lastS))),
      this.book.trouble ? h("p", { key: "hint", class: "hint" }, this.book.trouble) : null,
      h("ul", { class: "gpus" }, order(devices).map((d) => this.card(d))),
      standing.length > 0 ? h("section", { key: "alerts" }, h("h2", {}, "Active alerts"),
        alertList(standing, this.desk, live.nowS)) : null,
      stallList(live.processes()),
      h("section", { key: "processes", class: "panel" }, h("h2", {}, "Processes"),
        this.list.node(live.processes(), { withDevice: devices.length > 1, few: kFewProcesses })),
      this.acts.node(),
      ...this.notes(),
    ]);
    for (const d of devices) this.feed(d);
  }

  private choose(lastS: number): void {
    this.lastS = lastS;
    this.asked = "";
    this.remember(lastS);
    this.live.changed();
  }

  private load(devices: Series[]): void {
    const wanted = `${this.lastS} ${devices.map((d) => d.key).join(" ")}`;
    if (wanted === this.asked || devices.length === 0) return;
    this.asked = wanted;
    void this.book.load(devices.map((d) => d.key), { lastS: this.lastS });
  }

  private card(d: Series): Node_ {
    const f = d.verdict.finding;
    const told = d.told;
    const line = f.leak && d.verdict.suspect ? this.sites.leakingLine(d.verdict.suspect.pid) : null;
    const chart = this.chartOf(d);
    const name = deviceShort(d.device);
    return h("li", { key: d.key, class: `gpu ${told.tone}${f.leak ? " leaks" : ""}`, "data-gpu": d.device.id },
      h("div", { class: "line" },
        h("h3", {}, h("a", { href: gpuLink(d.device.id) }, name)),
        h("span", { class: "faint name" }, printable(d.device.name)),
        h("span", { class: "end" }, severityWord(told), " ", verdictBadge(told))),
      d.paused ? h("p", { key: "paused", class: "failed" }, "The device does not answer.") : null,
      usedBar(this.live.bytesOf(d), d.device.capacity_bytes, told.tone),
      h("div", { class: "body" },
        h("div", { class: "history" }, mount(chart.element, "chart"), h("p", { key: "readout", class: "readout" }, this.readout(d))),
        h("div", { class: "words" },
          told.forecast ? h("p", { key: "eta", class: "eta" }, told.forecast) : null,
          told.end ? h("p", { key: "ended", class: "ended" }, inLocalTime(told.end)) : null,
          f.state !== "too_short" ? h("p", { key: "growth", class: "growth" }, `growth ${rate(f.growth_bytes_per_s.mid)}`) : null,
          gaugeList(d, true),
          healthLines(d, this.live.nowS, true),
          f.leak && told.suspect ? h("p", { key: "suspect", class: "suspect" }, printable(told.suspect)) : null,
          line ? h("p", { key: "line", class: "leaking-line" }, "line ", h("strong", {}, line)) : null,
          d.paging ? h("p", { key: "paging", class: "faint" }, `No alert yet: ${printable(d.paging)}`) : null,
          f.leak && told.next ? h("p", { key: "next", class: "next" }, printable(told.next)) : null)));
  }

  private chartOf({ key, device }: Series): MemoryChart {
    let chart = this.charts.get(key);
    if (!chart) {
      const hover = (point: Point | null): void => { this.points.set(key, point); this.live.changed(); };
      this.charts.set(key, (chart = new MemoryChart({ height: 110, compact: true, sync: "overview", hover })));
      chart.element.setAttribute("aria-hidden", "true");  // the figures next to it have the same content
      // It lies above the link that covers the card, so that the cursor reaches it.
      chart.element.addEventListener("click", () => { location.hash = gpuLink(device.id).slice(1); });
    }
    return chart;
  }

  private readout(d: Series): string {
    const point = this.points.get(d.key);
    return point ? pointWords(point, this.live.nowS) : `Peak ${bytes(Math.max(d.peak_bytes, this.live.bytesOf(d)))}`;
  }

  private feed(d: Series): void {
    const columns = this.book.get(d.key);
    const trend = d.verdict.finding.leak ? trendOf(d) : null;
    const onset = d.verdict.finding.onset;
    this.chartOf(d).set({
      columns,
      stepS: Math.max(this.book.stepS, d.interval_s),
      fromS: this.book.fromS(),
      toS: this.book.toS(),
      capacityBytes: d.device.capacity_bytes,
      trend,
      band: bandOf(d, trend),
      marks: onset && d.verdict.finding.leak ? [{ atS: seconds(onset), text: "onset", colour: "onset" }] : [],
    });
  }

  private notes(): Child[] {
    const view = this.live.view;
    const texts = [...(view?.warnings ?? []), ...(view?.notices ?? []).slice(-5).map((n) => n.text)];
    return texts.length === 0 ? [] : [h("section", { key: "notes" }, h("h2", {}, "Notes"),
      h("ul", {}, texts.map((t) => h("li", {}, printable(t)))))];
  }
}
