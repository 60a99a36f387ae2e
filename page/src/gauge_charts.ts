// GaugeCharts: utilisation, temperature, power and clocks of a GPU, on the time axis of its memory.
import uPlot from "uplot";
import { getGauges } from "./api";
import { axes, widthOf } from "./axes";
import { isLive, type Range } from "./book";
import { Chart } from "./chart";
import { moment } from "./format";
import { gapAfter } from "./history";
import type { Live } from "./live";
import { colour } from "./theme";
import type { GaugeHistory, Series } from "./types";
import { h, mount, type Child, type Node_ } from "./vdom";

type Column = "busy_ratio" | "temperature_celsius" | "power_watts" | "sm_clock_hertz";
type Y = (number | null)[];

interface Gauge {
  column: Column;
  name: string;
  /** The divisor for recorded figures. */
  unit: number;
  text: (value: number) => string;
  /** The minimum height of the scale, so that a GPU that stays at 3 % is not drawn as a mountain. */
  least: number;
  now: (s: Series) => number | null | undefined;
}

const kGauges: Gauge[] = [
  { column: "busy_ratio", name: "Busy", unit: 0.01, text: (v) => `${v.toFixed(0)} %`, least: 100, now: (s) => s.utilisation_ratio },
  { column: "power_watts", name: "Power", unit: 1, text: (v) => `${v.toFixed(0)} W`, least: 50, now: (s) => s.gauges?.power_watts },
  { column: "temperature_celsius", name: "Temperature", unit: 1, text: (v) => `${v.toFixed(0)} °C`, least: 100,
    now: (s) => s.gauges?.temperature_celsius },
  { column: "sm_clock_hertz", name: "SM clock", unit: 1e9, text: (v) => `${+v.toFixed(2)} GHz`, least: 0.5,
    now: (s) => s.gauges?.sm_clock_hertz },
];

const kLast = kGauges[kGauges.length - 1];

/** The charts of one page, whose cursors move together. */
export const kSync = "gpu";
const kPoints = 600;
const kHeight = 72;
/** For the last chart, which shows the times. */
const kHeightWithTimes = 92;
/** A minute is in the store only after it has passed and been written. */
const kReadAgainS = 60;

interface GaugeData {
  x: number[];
  y: Y;
  fromS: number;
  endS: number;
}

class GaugeChart extends Chart<GaugeData> {
  constructor(private readonly gauge: Gauge, private readonly hover: (index: number | null) => void) {
    super(gauge === kLast ? kHeightWithTimes : kHeight, "chart gauge");
  }

  set(data: GaugeData): void {
    this.data = data;
    this.element.dataset.points = String(data.x.length);
    if (this.plot) this.plot.setData([data.x, data.y]);
    else if (this.element.clientWidth > 0) this.plot = this.make([data.x, data.y]);
  }

  private make(columns: uPlot.AlignedData): uPlot {
    const { text, least } = this.gauge;
    return new uPlot({
      width: widthOf(this.element),
      height: this.height,
      padding: [8, 20, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, sync: { key: kSync } },
      scales: {
        x: { time: true, range: () => [this.data!.fromS, this.data!.endS] },
        y: { range: (_, __, most) => [0, Math.max(least, most) * 1.06] },
      },
      axes: axes(true, (v) => (v === 0 ? "0" : text(v)), this.gauge === kLast),
      series: [{}, { stroke: () => colour("used"), width: 1.5, points: { show: false }, spanGaps: false }],
      hooks: { setCursor: [(u) => this.hover(u.cursor.idx ?? null)] },
    }, columns, this.element);
  }
}

export class GaugeCharts {
  private readonly charts = new Map<Column, GaugeChart>();
  private history: GaugeHistory | null = null;
  private asked = "";
  private loading: AbortController | null = null;
  /** The points of all charts, and the values of each gauge. */
  private x: number[] = [];
  private readonly shown = new Map<Column, Y>();
  private at: number | null = null;

  /** `prepare` makes a chart reachable by keyboard. */
  constructor(private readonly live: Live, private readonly id: string,
              prepare: (element: HTMLElement, step: (by: number) => void, name: string) => void) {
    for (const gauge of kGauges) {
      const chart = new GaugeChart(gauge, (index) => { this.at = index; live.changed(); });
      prepare(chart.element, (by) => chart.step(by), `${gauge.name} over time. Arrow keys read values`);
      this.charts.set(gauge.column, chart);
    }
  }

  close(): void {
    this.loading?.abort();
    for (const chart of this.charts.values()) chart.close();
  }

  /** Reads the recorded values, unless that has been done already. */
  load(range: Range): void {
    const wanted = isLive(range) ? `last ${range.lastS} ${Math.floor(this.live.nowS / kReadAgainS)}` : `${range.fromS} ${range.toS}`;
    if (wanted === this.asked) return;
    this.asked = wanted;
    this.loading?.abort();
    const mine = (this.loading = new AbortController());
    const [from, to] = isLive(range) ? [this.live.nowS - range.lastS, this.live.nowS] : [range.fromS, range.toS];
    getGauges(this.id, from, to, kPoints, mine.signal).then((history) => {
      if (mine.signal.aborted) return;
      this.history = history;
      this.live.changed();
    }, () => undefined);  // the memory chart shows why there is no past
  }

  /** Draws the known values over the memory chart's time range. */
  feed(s: Series, range: Range, fromS: number, endS: number): void {
    const stepS = this.history?.step_s ?? kReadAgainS;
    for (const gauge of kGauges) {
      const x: number[] = [];
      const y: Y = [];
      const add = (t: number, v: number | null | undefined): void => {
        const before = x[x.length - 1];
        if (before !== undefined && t - before > gapAfter(stepS)) {
          x.push((before + t) / 2);
          y.push(null);
        }
        x.push(t);
        y.push(v === null || v === undefined ? null : v / gauge.unit);
      };
      this.history?.t.forEach((t, i) => add(t, this.history![gauge.column][i]));
      if (isLive(range) && this.live.nowS > (x[x.length - 1] ?? -Infinity)) add(this.live.nowS, gauge.now(s));
      this.x = x;
      this.shown.set(gauge.column, y);
      this.charts.get(gauge.column)!.set({ x, y, fromS, endS });
    }
  }

  /** Only for gauges that this GPU has. */
  node(s: Series): Child {
    const i = this.at !== null && this.at < this.x.length ? this.at : null;
    const figures = kGauges.filter((g) => this.known(g, s)).map((gauge): Node_ => {
      const chart = this.charts.get(gauge.column)!;
      return h("div", { key: gauge.column, class: "gauge" },
        h("p", { class: "readout" }, gauge.name, " ", h("span", { class: "figures" }, this.value(gauge, s, i))),
        mount(chart.element, gauge.column));
    });
    if (figures.length === 0) return null;
    return h("div", { key: "gauge-charts", class: "gauge-charts" },
      h("p", { class: "readout" }, i === null ? "Now" : moment(this.x[i]!, this.live.nowS), h("span", { class: "faint" }, "; the charts show the maximum of each minute")),
      figures);
  }

  private known(gauge: Gauge, s: Series): boolean {
    const now = gauge.now(s);
    return (now !== null && now !== undefined) || (this.history?.[gauge.column].some((v) => v !== null) ?? false);
  }

  private value(gauge: Gauge, s: Series, i: number | null): string {
    const now = gauge.now(s);
    const figure = i !== null ? this.shown.get(gauge.column)?.[i] : now === null || now === undefined ? null : now / gauge.unit;
    return figure === null || figure === undefined ? "–" : gauge.text(figure);
  }
}
