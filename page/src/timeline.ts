// A timeline page: live bytes of a recording, stacked by line of code or by category, and the allocator's segments. One
// file without network access, with its data inside (src/trace/render/page.hpp). For mouse, touch and keyboard.
import uPlot from "uplot";
import { duration, size } from "./format";
import { choose, expand, finest, gapsOf, joined, lastUpTo, rest, stack } from "./levels";
import type { Steps } from "./levels";

interface LayerData {
  site: string;
  category: string;
  stacks: number; // of this line
  stack: string[]; // the one with the highest peak
  steps: Steps;
}

interface MarkData {
  words: string;
  failure: boolean;
  event?: number;
  us?: number;
}

/** address, bytes, is large, [offset, bytes, state, layer, ...] */
type SegmentData = [number, number, boolean, number[]];

interface PointsData {
  event: number[];
  us?: number[];
  live: number[];
  least: number[];
  reserved: number[];
}

/** A part of a finer level; `data` is the JSON of a PieceText, parsed on first use. */
interface PieceData {
  event: number;
  us?: number;
  data: string;
}

interface PieceText {
  points: PointsData;
  layers: Steps[];
  categories: Steps[];
}

interface PartData {
  name: string;
  events: number;
  has_trace: boolean;
  has_times: boolean;
  begin_us: number;
  first_event: number;
  last_event: number;
  last_us?: number;
  points: PointsData;
  layers: LayerData[];
  others: number;
  categories: { name: string; steps: Steps }[];
  levels: PieceData[][];
  levels_left_out: boolean;
  marks: MarkData[];
  marks_left_out: number;
  segments: SegmentData[];
  segments_left_out: number;
}

interface Layer {
  name: string;
  detail: string;
  stack: string[];
  bytes: Float64Array;
  colour: string;
}

type Axis = "time" | "events";

/** Consecutive points: of the whole trace, or of some pieces of a finer level. */
class Stretch {
  readonly x: Record<Axis, number[]>;

  constructor(readonly key: string, readonly level: number, readonly points: PointsData, readonly sites: Steps[], readonly categories: Steps[]) {
    this.x = { events: points.event, time: (points.us ?? []).map((us) => us / 1e6) };
  }

  static ofPieces(key: string, level: number, pieces: PieceText[]): Stretch {
    const column = (of: (points: PointsData) => number[]): number[] => pieces.flatMap((piece) => of(piece.points));
    const points: PointsData = { event: column((p) => p.event), live: column((p) => p.live), least: column((p) => p.least), reserved: column((p) => p.reserved) };
    if (pieces[0]!.points.us) points.us = column((p) => p.us!);
    const steps = (of: (piece: PieceText) => Steps[]): Steps[] => of(pieces[0]!).map((_, i) => joined(pieces.map((piece) => ({ steps: of(piece)[i]!, points: piece.points.event.length }))));
    return new Stretch(key, level, points, steps((piece) => piece.layers), steps((piece) => piece.categories));
  }

  has(value: number, axis: Axis): boolean {
    const x = this.x[axis];
    return x.length > 0 && value >= x[0]! && value <= x[x.length - 1]!;
  }
}

const kHeight = 380;
const kPalette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7a6fd0", "#8c6d5a"];
const kRest = "#8d98a4";
const kMostWords = 40; // marks with drawn labels
const kRow = 15; // for the labels of marks, above the chart

/** Further rounds of the palette are lighter, then darker. */
function colourOf(index: number): string {
  const base = kPalette[index % kPalette.length]!;
  const round = Math.floor(index / kPalette.length);
  if (round === 0) return base;
  const to = round === 1 ? 255 : 0;
  const parts = [1, 3, 5].map((at) => Math.round(parseInt(base.slice(at, at + 2), 16) * 0.6 + to * 0.4));
  return `rgb(${parts.join(",")})`;
}

function element<K extends keyof HTMLElementTagNameMap>(name: K, attributes: Record<string, string> = {}, ...inside: (Node | string)[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

/** A path that may wrap after each slash. */
const breakable = (path: string): (Node | string)[] => path.split(/(?<=\/)/).flatMap((part) => [part, element("wbr")]);

const count = (n: number, what: string): string => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

class Timeline {
  private readonly whole: Stretch;
  private shown: Stretch; // the points drawn: `whole`, or more points of a part
  private readonly pieces = new Map<string, PieceText>(); // those parsed so far
  private hasRest = false;
  private axis: Axis;
  private by: "site" | "category" = "site";
  private layers: Layer[] = [];
  private chosen: number[] = [];
  private from = 0;
  private to = 1;
  private plot: uPlot | null = null;
  private point: number | null = null; // under the cursor
  private picked: number | null = null; // the layer that is described

  private readonly chart = element("div", { class: "chart", tabindex: "0", role: "img", "aria-describedby": "keys" });
  private readonly overview = element("canvas", { class: "overview", "aria-hidden": "true" });
  private readonly readout = element("p", { class: "say", "aria-live": "polite" });
  private readonly stackList = element("ol", { class: "stack" });
  private readonly legend = element("ul", { class: "legend" });
  readonly element: HTMLElement;

  constructor(private readonly data: PartData) {
    this.whole = new Stretch("whole", 0, data.points, data.layers.map((one) => one.steps), data.categories.map((one) => one.steps));
    this.shown = this.whole;
    this.axis = data.has_times ? "time" : "events";
    const reserved = data.points.reserved.some((bytes) => bytes > 0) ? [element("p", { class: "hint" }, element("span", { class: "dashed" }), "reserved by the allocator")] : [];
    this.element = element("section", {}, this.bar(), this.chart, ...reserved, this.overview, element("p", { class: "hint", id: "keys" },
      "Drag over the chart to zoom, or use the keys: ← → move, ↑ ↓ choose a layer, + − zoom, Home End, Esc shows all."), this.readout, this.stackList, this.legend);
    this.choose("site");
    new ResizeObserver(() => this.draw()).observe(this.chart);
    this.chart.addEventListener("keydown", (event) => this.key(event));
    this.chart.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return; // otherwise the page scrolls
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7);
    }, { passive: false });
    this.overview.addEventListener("pointerdown", (event) => {
      this.overview.setPointerCapture(event.pointerId);
      this.panTo(event);
    });
    this.overview.addEventListener("pointermove", (event) => {
      if (event.buttons > 0) this.panTo(event);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.all();
    if (this.failure) this.describe(this.pointOf(this.failure));
  }

  private get failure(): MarkData | undefined {
    return this.data.marks.find((mark) => mark.failure && this.placeOf(mark) !== null);
  }

  /** The last point shown, up to the mark. */
  private pointOf(mark: MarkData): number {
    return lastUpTo(this.xs, this.placeOf(mark)!);
  }

  private bar(): HTMLElement {
    const button = (words: string, use: () => void): HTMLButtonElement => {
      const made = element("button", { type: "button" }, words);
      made.addEventListener("click", use);
      return made;
    };
    const choice = (label: string, values: [string, string][], use: (value: string) => void): HTMLElement => {
      const select = element("select", { "aria-label": label }, ...values.map(([value, words]) => element("option", { value }, words)));
      select.addEventListener("change", () => use(select.value));
      return select;
    };
    const bar = element("div", { class: "bar" }, choice("stacked by", [["site", "by line of code"], ["category", "by what it is"]], (value) => this.choose(value as "site" | "category")));
    if (this.data.has_times)
      bar.append(choice("across", [["time", "over time"], ["events", "over allocations"]], (value) => {
        this.axis = value as Axis;
        this.all();
      }));
    bar.append(button("zoom in", () => this.zoom(0.5)), button("zoom out", () => this.zoom(2)), button("show all", () => this.all()));
    const failure = this.failure;
    if (failure) bar.append(button("to the failure", () => this.showFailure(failure)));
    bar.append(button("to the peak", () => this.showPeak()));
    return bar;
  }

  private get xs(): number[] {
    return this.shown.x[this.axis];
  }

  private get live(): number[] {
    return this.shown.points.live;
  }

  private choose(by: "site" | "category"): void {
    this.by = by;
    this.hasRest = by === "site" && this.data.others > 0;
    this.layers = this.layersOf(this.shown);
    this.picked = null;
    this.plot?.destroy();
    this.plot = null;
    this.draw();
  }

  private layersOf(stretch: Stretch): Layer[] {
    const points = stretch.points.live.length;
    const layers: Layer[] = this.by === "site"
      ? this.data.layers.map((one, i) => ({ name: one.site, detail: one.stacks > 1 ? `${one.category}, ${one.stacks} stacks` : one.category, stack: one.stack, bytes: expand(stretch.sites[i]!, points), colour: colourOf(i) }))
      : this.data.categories.map((one, i) => ({ name: one.name, detail: "", stack: [], bytes: expand(stretch.categories[i]!, points), colour: colourOf(i) }));
    const left = rest(stretch.points.live, layers.map((one) => one.bytes));
    this.hasRest ||= left.some((bytes) => bytes > 0);
    if (this.hasRest) layers.push({ name: count(this.data.others, "smaller site"), detail: "", stack: [], bytes: left, colour: kRest });
    return layers;
  }

  /** The finest points that a few pieces have for the view. */
  private refine(): void {
    const begins = this.data.levels.map((pieces) => pieces.map((piece) => (this.axis === "events" ? piece.event : (piece.us ?? 0) / 1e6)));
    const [first, last] = this.ends();
    const found = this.to - this.from > (last - first) / 2 ? null : finest(begins, this.from, this.to); // the whole has points enough for that
    const key = found ? `${found.level}:${found.first}-${found.last}` : this.whole.key;
    if (key === this.shown.key) return;
    const event = this.point === null ? null : this.shown.points.event[this.point]!;
    this.shown = found ? Stretch.ofPieces(key, found.level + 1, this.data.levels[found.level]!.slice(found.first, found.last + 1).map((piece, i) => this.read(`${found.level}:${found.first + i}`, piece))) : this.whole;
    const before = this.layers.length;
    this.layers = this.layersOf(this.shown);
    if (this.layers.length !== before) {
      this.plot?.destroy();
      this.plot = null;
    }
    this.point = event === null ? null : lastUpTo(this.shown.x.events, event);
  }

  private read(name: string, piece: PieceData): PieceText {
    let text = this.pieces.get(name);
    if (!text) this.pieces.set(name, (text = JSON.parse(piece.data) as PieceText));
    return text;
  }

  private showPeak(): void {
    const { live, event } = this.whole.points;
    const at = live.indexOf(Math.max(...live));
    const place = this.whole.x[this.axis][at]!;
    if (place < this.from || place > this.to) this.all();
    this.describe(lastUpTo(this.shown.x.events, event[at]!));
  }

  // The interval shown.

  private get first(): number {
    return this.axis === "events" ? this.data.first_event : 0;
  }

  /** From the first point to the last, or to a failure after it. */
  private ends(): [number, number] {
    const first = this.first;
    const end = this.axis === "events" ? this.data.last_event : (this.data.last_us ?? 0) / 1e6;
    const last = Math.max(end, ...this.data.marks.filter((mark) => mark.failure).map((mark) => this.placeOf(mark) ?? 0));
    return [first, last > first ? last : first + 1];
  }

  private show(from: number, to: number): void {
    const [first, last] = this.ends();
    const width = Math.min(Math.max(to - from, (last - first) / 1e6), last - first);
    this.from = Math.min(Math.max(from, first), last - width);
    this.to = this.from + width;
    this.refine();
    this.draw();
  }

  private all(): void {
    this.show(...this.ends());
  }

  private zoom(by: number): void {
    const at = this.point !== null && this.xs[this.point]! >= this.from && this.xs[this.point]! <= this.to ? this.xs[this.point]! : (this.from + this.to) / 2;
    this.show(at - (at - this.from) * by, at + (this.to - at) * by);
  }

  private panTo(event: PointerEvent): void {
    const [first, last] = this.ends();
    const at = first + (last - first) * (event.offsetX / this.overview.clientWidth);
    const half = (this.to - this.from) / 2;
    this.show(at - half, at + half);
  }

  /** The position on the axis; events before the first point are at the first. */
  private placeOf(mark: MarkData): number | null {
    const place = this.rawPlaceOf(mark);
    return place === null ? null : Math.max(place, this.first);
  }

  private rawPlaceOf(mark: MarkData): number | null {
    const other = (value: number, axis: Axis): number | null => {
      const x = (this.shown.has(value, axis) ? this.shown : this.whole).x;
      return x[this.axis][lastUpTo(x[axis], value)] ?? null;
    };
    if (this.axis === "time") return mark.us === undefined ? (mark.event === undefined ? null : other(mark.event, "events")) : mark.us / 1e6;
    if (mark.event !== undefined) return mark.event;
    return mark.us === undefined ? null : other(mark.us / 1e6, "time");
  }

  private showFailure(mark: MarkData): void {
    const at = this.placeOf(mark)!;
    const [first, last] = this.ends();
    this.show(at - (last - first) / 40, at + (last - first) / 40);
    this.describe(this.pointOf(mark));
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.point === null ? this.chosen.findIndex((point) => this.xs[point]! >= this.from) : this.chosen.findIndex((point) => point >= this.point!);
    const move = (to: number): void => {
      const point = this.chosen[Math.min(this.chosen.length - 1, Math.max(0, to))];
      if (point !== undefined) this.describe(point);
    };
    const step = event.shiftKey ? 10 : 1;
    const used: Record<string, () => void> = {
      ArrowLeft: () => move(at - step), ArrowRight: () => move(at + step), Home: () => move(0), End: () => move(this.chosen.length - 1),
      ArrowUp: () => this.pick(1), ArrowDown: () => this.pick(-1), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), Escape: () => this.all(),
    };
    const use = used[event.key];
    if (!use) return;
    event.preventDefault();
    use();
  }

  /** The next layer that holds memory at the point. */
  private pick(by: number): void {
    if (this.point === null) this.describe(this.chosen[0] ?? 0);
    const count = this.layers.length;
    let at = this.picked ?? (by > 0 ? -1 : count);
    do at += by; while (at >= 0 && at < count && this.layers[at]!.bytes[this.point!]! <= 0);
    if (at >= 0 && at < count) this.describe(this.point!, at);
  }

  // Drawing.

  private words(value: number): string {
    return this.axis === "events" ? value.toLocaleString("en") : `+${value < 60 ? `${+value.toFixed(this.to - this.from < 1 ? 6 : 3)} s` : duration(value)}`;
  }

  private draw(): void {
    const width = Math.floor(this.chart.clientWidth);
    if (width < 50 || this.live.length === 0) return;
    this.chosen = choose(this.xs, this.live, this.from, this.to, Math.max(64, width));
    const chosenXs = this.chosen.map((point) => this.xs[point]!);
    const end = this.ends()[1];
    if (this.chosen[this.chosen.length - 1] === this.live.length - 1 && end > chosenXs[chosenXs.length - 1]!) {
      this.chosen.push(this.live.length - 1); // the last value holds until the end
      chosenXs.push(end);
    }
    const tops = stack(this.layers.map((one) => one.bytes), this.chosen);
    const columns: uPlot.AlignedData = [chosenXs, ...tops, this.chosen.map((point) => this.shown.points.reserved[point] || null)];
    if (!this.plot) this.plot = this.make(width, columns);
    else {
      if (this.plot.width !== width) this.plot.setSize({ width, height: kHeight });
      this.plot.setData(columns);
    }
    this.chart.dataset.points = String(this.chosen.length);
    this.chart.dataset.level = String(this.shown.level);
    this.chart.dataset.layers = String(this.layers.length);
    this.chart.setAttribute("aria-label", `Live bytes of ${this.data.name}, up to ${size(Math.max(...this.whole.points.live))}, stacked ${this.by === "site" ? "by line of code" : "by what it is"}`);
    this.drawOverview();
    this.drawLegend();
  }

  private make(width: number, columns: uPlot.AlignedData): uPlot {
    const stepped = uPlot.paths.stepped!({ align: 1 });
    const text = { font: "12px system-ui, sans-serif", stroke: () => css("faint"), grid: { stroke: () => css("rule"), width: 1 }, ticks: { show: false } };
    return new uPlot({
      width,
      height: kHeight,
      padding: [8 + kRow * this.rows, 12, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      scales: { x: { time: false, range: () => [this.from, this.to] }, y: { range: (_, __, most) => [0, Math.max(1, (most ?? 1) * 1.08)] } },
      axes: [
        { ...text, space: 90, size: 34, values: (_, splits) => splits.map((value) => this.words(value)) },
        { ...text, size: 72, incrs: Array.from({ length: 40 }, (_, i) => 2 ** i), values: (_, splits) => splits.map((value) => value === 0 ? "0" : size(value)) },
      ],
      series: [{}, ...this.layers.map((one, i): uPlot.Series => ({ stroke: css("paper"), width: 0.5, paths: stepped, points: { show: false }, ...(i === 0 ? { fill: one.colour } : {}) })),
               { stroke: () => css("ink"), width: 1.5, dash: [6, 4], paths: stepped, points: { show: false } }],
      bands: this.layers.slice(1).map((one, i): uPlot.Band => ({ series: [i + 2, i + 1], fill: one.colour })),
      hooks: {
        draw: [(u) => this.drawMarks(u)],
        setCursor: [(u) => this.hover(u)],
        setSelect: [(u) => {
          const { left, width: wide } = u.select;
          if (wide > 6) this.show(u.posToVal(left, "x"), u.posToVal(left + wide, "x"));
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
      },
    }, columns, this.chart);
  }

  /** The labels above the chart: those of failures, and that of the other marks. */
  private get rows(): number {
    return new Set(this.data.marks.map((mark) => mark.failure)).size;
  }

  private drawMarks(u: uPlot): void {
    const { ctx, bbox } = u;
    const ratio = uPlot.pxRatio;
    const shown = this.data.marks.map((mark) => ({ mark, at: this.placeOf(mark)! })).filter(({ at }) => at !== null && at >= this.from && at <= this.to);
    // From left to right, because labels without room are left out; failures last, above all others.
    shown.sort((a, b) => Number(a.mark.failure) - Number(b.mark.failure) || a.at - b.at);
    this.chart.dataset.marks = String(shown.length);
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    let right = -Infinity;
    for (const { mark, at } of shown) {
      const x = u.valToPos(at, "x", true);
      ctx.strokeStyle = css(mark.failure ? "failure" : "faint");
      ctx.lineWidth = (mark.failure ? 2 : 1) * ratio;
      ctx.setLineDash(mark.failure ? [] : [3 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top - (mark.failure ? this.rows * kRow * ratio : 0));
      ctx.lineTo(x, bbox.top + (mark.failure || shown.length <= kMostWords ? bbox.height : 10 * ratio));
      ctx.stroke();
      const wide = ctx.measureText(mark.words).width;
      const left = x + wide + 8 * ratio > bbox.left + bbox.width ? x - wide - 4 * ratio : x + 4 * ratio;
      if (!mark.failure && (shown.length > kMostWords || left < right)) continue;
      ctx.fillStyle = css(mark.failure ? "failure" : "ink");
      ctx.textBaseline = "bottom";
      ctx.fillText(mark.words, left, bbox.top - (mark.failure ? (this.rows - 1) * kRow : 0) * ratio);
      if (!mark.failure) right = left + wide + 8 * ratio;
    }
    ctx.restore();
  }

  private drawOverview(): void {
    const ratio = devicePixelRatio || 1;
    const width = this.overview.clientWidth;
    const height = this.overview.clientHeight;
    if (width === 0) return;
    this.overview.width = width * ratio;
    this.overview.height = height * ratio;
    const ctx = this.overview.getContext("2d")!;
    ctx.scale(ratio, ratio);
    const [first, last] = this.ends();
    const { live } = this.whole.points;
    const xs = this.whole.x[this.axis];
    const most = Math.max(1, ...live);
    const place = (value: number): number => ((value - first) / (last - first)) * width;
    ctx.fillStyle = css("faint");
    ctx.beginPath();
    ctx.moveTo(0, height);
    let before = 0;
    for (const point of choose(xs, live, first, last, width)) {
      const x = place(xs[point]!);
      ctx.lineTo(x, height - before * (height - 2));
      before = live[point]! / most;
      ctx.lineTo(x, height - before * (height - 2));
    }
    ctx.lineTo(width, height - before * (height - 2));
    ctx.lineTo(width, height);
    ctx.fill();
    ctx.strokeStyle = css("link");
    ctx.lineWidth = 2;
    ctx.strokeRect(place(this.from) + 1, 1, Math.max(4, place(this.to) - place(this.from) - 2), height - 2);
  }

  private drawLegend(): void {
    const point = this.point ?? this.live.indexOf(Math.max(...this.live));
    const order = this.layers.map((_, i) => i).sort((a, b) => this.layers[b]!.bytes[point]! - this.layers[a]!.bytes[point]!);
    this.legend.replaceChildren(...order.map((i) => {
      const layer = this.layers[i]!;
      const bytes = layer.bytes[point]!;
      const button = element("button", { type: "button", "aria-pressed": String(this.picked === i) },
        element("span", { class: "swatch", style: `background:${layer.colour}` }), element("span", { class: "bytes" }, bytes > 0 ? size(bytes) : "–"),
        element("span", { class: "name" }, ...breakable(layer.name)), element("span", { class: "detail" }, layer.detail));
      button.addEventListener("click", () => this.describe(point, i));
      return element("li", {}, button);
    }));
  }

  // The description of a moment.

  private hover(u: uPlot): void {
    const at = u.cursor.idx;
    if (at === null || at === undefined || (u.cursor.left ?? -1) < 0) return;
    const value = u.posToVal(u.cursor.left!, "x");
    let index = at;
    while (index > 0 && this.xs[this.chosen[index]!]! > value) --index; // a value holds until the next
    const point = this.chosen[index];
    if (point === undefined || !this.chart.matches(":hover")) return;
    const height = u.posToVal(u.cursor.top!, "y");
    let top = 0;
    const layer = this.layers.findIndex((one) => (top += Math.max(0, one.bytes[point]!)) >= height);
    this.describe(point, layer < 0 ? null : layer);
  }

  private describe(point: number, layer: number | null = this.picked): void {
    if (point < 0) return;
    const isSame = this.point === point && this.picked === layer;
    this.point = point;
    this.picked = layer;
    if (isSame) return;
    const { event, us, live, least, reserved } = this.shown.points;
    const when = us ? `+${(us[point]! / 1e6).toFixed(3)} s, allocation ${(event[point]! + 1).toLocaleString("en")}` : `allocation ${(event[point]! + 1).toLocaleString("en")}`;
    const parts = [`${when}: ${size(live[point]!)} live`];
    if (reserved[point]! > 0) parts.push(`${size(reserved[point]!)} reserved`);
    if (least[point]! < live[point]!) parts.push(`as little as ${size(least[point]!)} before the next point`);
    parts.push(...this.data.marks.filter((mark) => mark.failure && this.placeOf(mark) !== null && this.pointOf(mark) === point).map((mark) => mark.words));
    const one = layer === null ? undefined : this.layers[layer];
    if (one) parts.push(`${size(one.bytes[point]!)} of it: ${one.name}${one.detail ? ` (${one.detail})` : ""}`);
    this.readout.textContent = parts.join("; ");
    this.stackList.replaceChildren(...(one?.stack ?? []).map((words) => element("li", {}, words)));
    this.drawLegend();
    const u = this.plot;
    if (u && !this.chart.matches(":hover")) u.setCursor({ left: u.valToPos(this.xs[point]!, "x"), top: u.over.clientHeight / 2 }, false);
  }
}

/** The allocator's segments: one row each, with the blocks it holds and the gaps between them. */
function segmentsOf(data: PartData): HTMLElement | null {
  if (data.segments.length === 0) return null;
  const all = data.segments.map((one) => ({ one, gaps: gapsOf(one[3]) }));
  const reserved = all.reduce((sum, { one }) => sum + one[1], 0);
  const free = all.reduce((sum, { gaps }) => sum + gaps.bytes, 0);
  const pieces = all.reduce((sum, { gaps }) => sum + gaps.count, 0);
  const largest = Math.max(...all.map(({ gaps }) => gaps.largest));
  const rows = element("div", { class: "segments" });
  const readout = element("p", { class: "say", "aria-live": "polite" });
  const most = Math.max(...data.segments.map((one) => one[1]));
  for (const { one, gaps } of all) {
    const [address, bytes, , blocks] = one;
    const used = bytes - gaps.bytes;
    const words = `segment at 0x${address.toString(16)}: ${size(bytes)}, ${size(used)} in use, ${gaps.count} free, the largest ${size(gaps.largest)}`;
    const canvas = element("canvas", { style: `width:${Math.max(0.5, (100 * bytes) / most)}%`, tabindex: "0", role: "img", "aria-label": words });
    canvas.addEventListener("focus", () => (readout.textContent = words));
    canvas.addEventListener("pointermove", (event) => {
      const at = (event.offsetX / canvas.clientWidth) * bytes;
      for (let i = 0; i < blocks.length; i += 4) {
        if (at < blocks[i]! || at >= blocks[i]! + blocks[i + 1]!) continue;
        const layer = data.layers[blocks[i + 3]!];
        const state = ["free", "in use", "freed, but a stream may still use it"][blocks[i + 2]!]!;
        readout.textContent = `${size(blocks[i + 1]!)} ${state}${layer ? `: ${layer.site}` : ""} — ${words}`;
      }
    });
    rows.append(canvas);
    const draw = (): void => {
      const ratio = devicePixelRatio || 1;
      canvas.width = Math.max(1, canvas.clientWidth * ratio);
      canvas.height = canvas.clientHeight * ratio;
      const ctx = canvas.getContext("2d")!;
      ctx.fillStyle = css("gap");
      ctx.fillRect(0, 0, canvas.width, canvas.height);
      for (let i = 0; i < blocks.length; i += 4) {
        if (blocks[i + 2] === 0) continue;
        const left = (blocks[i]! / bytes) * canvas.width;
        ctx.fillStyle = blocks[i + 2] === 2 ? css("pending") : blocks[i + 3]! < 0 ? kRest : colourOf(blocks[i + 3]!);
        ctx.fillRect(left, 0, Math.max(1, (blocks[i + 1]! / bytes) * canvas.width - (blocks.length > 400 ? 0 : 1)), canvas.height);
      }
    };
    new ResizeObserver(draw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }
  const summary = free > 0
    ? `${size(reserved)} reserved in ${count(data.segments.length, "segment")}, ${size(free)} of it free in ${count(pieces, "piece")}; the largest is ${size(largest)}: a larger request needs a new segment`
    : `${size(reserved)} reserved in ${count(data.segments.length, "segment")}, all of it in use`;
  const section = element("section", {}, element("h2", {}, "Segments of the allocator at the end"), element("p", {}, summary), rows, readout);
  if (data.segments_left_out > 0) section.append(element("p", { class: "hint" }, `${count(data.segments_left_out, "segment")} with too many blocks to draw are left out`));
  return section;
}

function start(): void {
  const page = document.getElementById("page")!;
  const data = JSON.parse(document.getElementById("data")!.textContent!) as { title: string; parts: PartData[] };
  const place = element("div");
  const show = (part: PartData): void => {
    const summary = `${part.events.toLocaleString("en")} allocations and frees${part.marks_left_out > 0 ? `; ${part.marks_left_out.toLocaleString("en")} marks are left out` : ""}${part.levels_left_out ? "; the finest details are left out: the page would be too large" : ""}`;
    place.replaceChildren(...(part.has_trace ? [element("p", { class: "hint" }, summary)] : []));
    if (part.has_trace) place.append(new Timeline(part).element);
    else place.append(element("p", {}, "There is no trace of events: only the end is known."));
    const segments = segmentsOf(part);
    if (segments) place.append(segments);
  };
  page.replaceChildren(element("h1", {}, data.title));
  if (data.parts.length > 1) {
    const select = element("select", { "aria-label": "device" }, ...data.parts.map((part, i) => element("option", { value: String(i) }, part.name)));
    select.addEventListener("change", () => show(data.parts[Number(select.value)]!));
    page.append(select);
  } else page.append(element("p", {}, data.parts[0]!.name));
  page.append(place);
  show(data.parts[0]!);
}

start();
