// StackChart: which processes hold the memory, with one area per process and one for memory that no process holds.
import uPlot from "uplot";
import { axes, widthOf } from "./axes";
import { Chart } from "./chart";
import type { Layer } from "./history";
import { colour } from "./theme";

interface StackData {
  x: number[];
  layers: Layer[];
  fromS: number;
  toS: number;
  capacityBytes: number | null;
}

export class StackChart extends Chart<StackData> {
  private made = "";

  /** `colourOf` returns a layer's colour by its key; `hover` receives the index of the point under the cursor. */
  constructor(height: number, private readonly colourOf: (key: string) => string,
              private readonly hover: (index: number | null) => void) {
    super(height, "chart");
  }

  set(data: StackData): void {
    this.data = data;
    if (this.element.clientWidth === 0) return;
    const columns: uPlot.AlignedData = [data.x, ...data.layers.map((l) => l.top)];
    this.element.dataset.layers = String(data.layers.length);
    // Areas are fixed when a plot is created, so another set of processes needs another plot.
    const made = data.layers.map((l) => l.key).join("\n");
    if (this.plot && made === this.made) {
      this.plot.setData(columns);
      return;
    }
    this.plot?.destroy();
    this.made = made;
    this.plot = this.make(data.layers, columns);
  }

  private make(layers: Layer[], columns: uPlot.AlignedData): uPlot {
    return new uPlot({
      width: widthOf(this.element),
      height: this.height,
      padding: [8, 20, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: true, range: () => [this.data!.fromS, this.data!.toS] },
        y: { range: (_, __, most) => [0, Math.max(1, most * 1.06, (this.data!.capacityBytes ?? 0) * 1.06)] },
      },
      axes: axes(false),
      series: [{}, ...layers.map((l, i): uPlot.Series => ({
        stroke: () => colour("paper"),
        width: 1,
        points: { show: false },
        ...(i === 0 ? { fill: () => this.colourOf(l.key) } : {}),
      }))],
      bands: layers.slice(1).map((l, i): uPlot.Band => ({ series: [i + 2, i + 1], fill: () => this.colourOf(l.key) })),
      hooks: { setCursor: [(u) => this.hover(u.cursor.idx ?? null)] },
    }, columns, this.element);
  }
}
