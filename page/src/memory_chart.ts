// MemoryChart: used memory over time with its range, the capacity, the trend, the forecast band, onset and alerts.
import uPlot from "uplot";
import { axes, widthOf } from "./axes";
import { Chart } from "./chart";
import type { Band, Trend } from "./forecast";
import { futureSeconds } from "./forecast";
import { bytes, moment } from "./format";
import { withGaps } from "./history";
import { colour } from "./theme";
import type { Columns } from "./types";

export interface MemoryData {
  columns: Columns;
  /** Two points further apart than this have missing samples between them. */
  stepS: number;
  fromS: number;
  toS: number;
  capacityBytes: number | null;
  /** The scale fits the curve instead of reaching from 0 to the capacity. */
  fit?: boolean;
  trend: Trend | null;
  band: Band | null;
  /** Times to mark: the onset, alerts. `early` is shown at the edge if the time is before the range. */
  marks: { atS: number; text: string; colour: string; early?: string }[];
}

export interface Point {
  atS: number;
  min: number;
  mean: number;
  max: number;
}

/** "08:12:03: 15.1 GiB (14.9 GiB to 15.2 GiB)": the text for the point under the cursor. */
export function pointWords(p: Point, nowS: number): string {
  const spread = p.max - p.min > 1024 * 1024 ? ` (${bytes(p.min)} to ${bytes(p.max)})` : "";
  return `${moment(p.atS, nowS)}: ${bytes(p.mean)}${spread}`;
}

interface MemoryChartOptions {
  height: number;
  compact: boolean;
  /** Called with the point under the cursor. */
  hover?: (point: Point | null) => void;
  /** Charts with the same key move their cursors together. */
  sync?: string;
  /** Called with the interval that was selected by dragging. */
  select?: (fromS: number, toS: number) => void;
}

export class MemoryChart extends Chart<MemoryData> {
  constructor(private readonly options: MemoryChartOptions) {
    super(options.height, options.compact ? "chart compact" : "chart");
  }

  set(data: MemoryData): void {
    this.data = data;
    const { x, min, mean, max } = withGaps(data.columns, data.stepS);
    const columns: uPlot.AlignedData = [x, min, max, mean];
    // For programs that inspect the page: the parts of the forecast that are drawn.
    const b = data.band;
    if (b) this.element.dataset.band = [b.lowS, b.midS, b.highS].map((s) => s.toFixed(0)).join(" ");
    else delete this.element.dataset.band;
    this.element.dataset.points = String(data.columns.t.length);
    this.element.dataset.marks = data.marks.map((m) => m.text).join("; ");
    if (this.plot) this.plot.setData(columns);
    else if (this.element.clientWidth > 0) this.plot = this.make(columns);
  }

  /** The time at the cursor. */
  cursorS(): number | null {
    const i = this.plot?.cursor.idx;
    return i === null || i === undefined ? null : (this.plot?.data[0][i] ?? null);
  }

  /** The first and last time of the axis. */
  xRange(): [number, number] {
    const d = this.data!;
    return [d.fromS, d.toS + futureSeconds(d.band, d.toS - d.fromS)];
  }

  private yMax(u: uPlot): number {
    let most = this.data!.capacityBytes ?? 0;
    for (const v of u.data[2]!) if (v !== null && v !== undefined && v > most) most = v;
    return most > 0 ? most * 1.06 : 1;
  }

  private yRange(u: uPlot): [number, number] {
    if (!this.data!.fit) return [0, this.yMax(u)];
    const known = (values: (number | null | undefined)[]): number[] => values.filter((v): v is number => typeof v === "number");
    const low = Math.min(...known(u.data[1]! as (number | null)[]));
    const high = Math.max(...known(u.data[2]! as (number | null)[]));
    if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, this.yMax(u)];
    const margin = Math.max(0.08 * (high - low), 1024 * 1024);
    return [Math.max(0, low - margin), high + margin];
  }

  private make(columns: uPlot.AlignedData): uPlot {
    const { compact, hover, select, sync } = this.options;
    const line = (name: string, width: number): uPlot.Series =>
      ({ stroke: () => colour(name), width, points: { show: false }, spanGaps: false });
    return new uPlot({
      width: widthOf(this.element),
      height: this.height,
      padding: compact ? [8, 16, 0, 0] : [8, 20, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: select !== undefined, y: false, setScale: false }, ...(sync ? { sync: { key: sync } } : {}) },
      scales: {
        x: { time: true, range: () => this.xRange() },
        y: { range: (u) => this.yRange(u) },
      },
      axes: axes(compact),
      series: [{}, { ...line("spread", 0), stroke: "transparent" }, { ...line("spread", 0), stroke: "transparent" },
               line("used", compact ? 1.5 : 2)],
      bands: [{ series: [2, 1], fill: () => colour("spread") }],
      hooks: {
        drawAxes: [(u) => this.drawFuture(u)],
        draw: [(u) => this.drawMarks(u)],
        setCursor: hover ? [(u) => hover(this.pointAt(u))] : [],
        setSelect: select ? [(u) => {
          const from = u.posToVal(u.select.left, "x");
          const to = u.posToVal(u.select.left + u.select.width, "x");
          if (u.select.width > 4) select(from, to);
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }] : [],
      },
    }, columns, this.element);
  }

  private pointAt(u: uPlot): Point | null {
    const at = u.cursor.idx;
    if (at === null || at === undefined) return null;
    // If the cursor is in a gap, use the nearest point.
    const i = [at, at - 1, at + 1].find((k) => typeof u.data[3]![k] === "number");
    if (i === undefined) return null;
    const mean = u.data[3]![i]!;
    return { atS: u.data[0][i]!, min: u.data[1]![i]!, mean, max: u.data[2]![i]! };
  }

  /** Runs `draw` clipped to the plot, in canvas pixels. */
  private clipped(u: uPlot, draw: (ctx: CanvasRenderingContext2D, ratio: number) => void): void {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    draw(ctx, uPlot.pxRatio);
    ctx.restore();
  }

  /** Below the line: the band from the current level to the capacity, between its earliest and latest end. */
  private drawFuture(u: uPlot): void {
    const b = this.data?.band;
    if (!b) return;
    const x = (v: number): number => u.valToPos(v, "x", true);
    const y = (v: number): number => u.valToPos(v, "y", true);
    this.clipped(u, (ctx, ratio) => {
      ctx.beginPath();
      ctx.moveTo(x(b.atS), y(b.bytes));
      ctx.lineTo(x(b.lowS), y(b.limitBytes));
      ctx.lineTo(x(b.highS), y(b.limitBytes));
      ctx.closePath();
      ctx.fillStyle = colour("band");
      ctx.fill();
      ctx.beginPath();
      ctx.moveTo(x(b.atS), y(b.bytes));
      ctx.lineTo(x(b.midS), y(b.limitBytes));
      ctx.lineWidth = 2 * ratio;
      ctx.setLineDash([6 * ratio, 4 * ratio]);
      ctx.strokeStyle = colour("trend");
      ctx.stroke();
    });
  }

  /** Above the line: capacity, trend, now, and marks with their labels. */
  private drawMarks(u: uPlot): void {
    const d = this.data;
    if (!d) return;
    const x = (v: number): number => u.valToPos(v, "x", true);
    const y = (v: number): number => u.valToPos(v, "y", true);
    const small = this.options.compact;
    this.clipped(u, (ctx, ratio) => {
      const stroke = (name: string, width: number, dash: number[], path: () => void): void => {
        ctx.beginPath();
        path();
        ctx.lineWidth = width * ratio;
        ctx.setLineDash(dash.map((v) => v * ratio));
        ctx.strokeStyle = colour(name);
        ctx.stroke();
      };
      ctx.font = `${12 * ratio}px system-ui, sans-serif`;
      ctx.textBaseline = "top";
      ctx.textAlign = "left";
      if (d.capacityBytes !== null) {
        const at = y(d.capacityBytes);
        stroke("capacity", 1, [2, 3], () => {
          ctx.moveTo(u.bbox.left, at);
          ctx.lineTo(u.bbox.left + u.bbox.width, at);
        });
      }
      if (d.trend) {
        const t = d.trend;
        stroke("trend", 1.5, [5, 7], () => {
          ctx.moveTo(x(t.fromS), y(t.fromBytes));
          ctx.lineTo(x(t.toS), y(t.toBytes));
        });
      }
      if (d.band) {
        stroke("faint", 1, [], () => {
          ctx.moveTo(x(d.toS), u.bbox.top);
          ctx.lineTo(x(d.toS), u.bbox.top + u.bbox.height);
        });
      }
      const right = u.bbox.left + u.bbox.width;
      const shown = d.marks.map((mark) => ({ ...mark, before: mark.atS < d.fromS, at: mark.atS < d.fromS ? u.bbox.left : x(mark.atS) }))
        .filter((mark) => mark.at <= right && (!mark.before || mark.early));
      for (const { before, at, colour: name } of shown)
        if (!before)
          stroke(name, 1.5, [3, 3], () => {
            ctx.moveTo(at, u.bbox.top);
            ctx.lineTo(at, u.bbox.top + u.bbox.height);
          });
      if (small) return;
      // Above the lines of all marks.
      for (const [row, mark] of shown.entries()) {
        const text = mark.before ? mark.early! : mark.text;
        const wide = ctx.measureText(text).width;
        const left = mark.at + wide + 8 * ratio > right && mark.at - wide - 6 * ratio > u.bbox.left;
        const top = u.bbox.top + u.bbox.height - (20 + 18 * row) * ratio;
        const from = left ? mark.at - wide - 6 * ratio : mark.at + 6 * ratio;
        ctx.fillStyle = colour("paper");
        ctx.globalAlpha = 0.8;
        ctx.fillRect(from - 2 * ratio, top - ratio, wide + 4 * ratio, 15 * ratio);
        ctx.globalAlpha = 1;
        ctx.fillStyle = colour(mark.colour);
        ctx.fillText(text, from, top);
      }
    });
  }
}
