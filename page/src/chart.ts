// Chart: an element with a uPlot chart that follows the element's width and the theme until it is closed.
import type uPlot from "uplot";
import { widthOf } from "./axes";
import { onTheme } from "./theme";

export abstract class Chart<Data> {
  readonly element = document.createElement("div");
  protected plot: uPlot | null = null;
  protected data: Data | null = null;
  private readonly observer: ResizeObserver;
  private readonly endTheme: () => void;

  protected constructor(protected readonly height: number, className: string) {
    this.element.className = className;
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.element);
    this.endTheme = onTheme(() => this.plot?.redraw(false, true));
  }

  /** Draws `data`, or keeps it until the element has a width. */
  abstract set(data: Data): void;

  close(): void {
    this.observer.disconnect();
    this.endTheme();
    this.plot?.destroy();
  }

  /** Moves the cursor by points: -1, 1, or to an end with Infinity. */
  step(by: number): void {
    const u = this.plot;
    if (!u || u.data[0].length === 0) return;
    const last = u.data[0].length - 1;
    const at = u.cursor.idx ?? (by > 0 ? -1 : last + 1);
    const next = Math.min(last, Math.max(0, at + by));
    u.setCursor({ left: u.valToPos(u.data[0][next]!, "x"), top: u.over.clientHeight / 2 });
  }

  private fit(): void {
    if (this.plot) this.plot.setSize({ width: widthOf(this.element), height: this.height });
    else if (this.data) this.set(this.data);
  }
}
