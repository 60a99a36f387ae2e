// Book: the past of some series over one range, read from the store once and continued from the stream.
import { ApiError, getHistory } from "./api";
import { append, gapAfter, noColumns, trim } from "./history";
import type { Live } from "./live";
import type { Columns, Tick } from "./types";

/** The last this many seconds until now, or a fixed interval. */
export type Range = { lastS: number } | { fromS: number; toS: number };

export const isLive = (r: Range): r is { lastS: number } => "lastS" in r;

const kPoints = 600;
const kMostKeys = 128;
/** store.flush-seconds, plus a margin. */
const kStoreLagS = 12;

export class Book {
  /** The interval between two points. */
  stepS = 1;
  loaded = false;
  /** Why there is less history than requested; empty if there is no reason. */
  trouble = "";
  private pages = new Map<string, { columns: Columns; count: number }>();
  private again: { keys: string[]; atS: number } | null = null;
  private loading: AbortController | null = null;
  private readonly end: () => void;

  constructor(private readonly live: Live, public range: Range, private readonly points = kPoints) {
    this.end = live.onSample((tick, atS) => this.take(tick, atS));
  }

  close(): void {
    this.end();
    this.loading?.abort();
  }

  get(key: string): Columns {
    return this.pages.get(key)?.columns ?? noColumns();
  }

  fromS(): number {
    return isLive(this.range) ? this.live.nowS - this.range.lastS : this.range.fromS;
  }

  toS(): number {
    return isLive(this.range) ? this.live.nowS : this.range.toS;
  }

  /** Reads `keys` over `range`. Samples that arrive meanwhile are kept and added; a second call replaces the first. */
  async load(keys: string[], range: Range = this.range): Promise<void> {
    this.loading?.abort();
    const mine = (this.loading = new AbortController());
    this.range = range;
    const to = isLive(range) ? this.live.nowS + 0.001 : range.toS;
    try {
      const history = await getHistory(keys.slice(0, kMostKeys), this.fromS(), to, this.points, mine.signal);
      if (mine.signal.aborted) return;
      this.stepS = history.step_s;
      this.pages = new Map(history.series.map(({ key, t, min, mean, max }) =>
        [key, { columns: { t, min, mean, max }, count: 1 }]));
      this.trouble = "";
    } catch (error) {
      if (mine.signal.aborted) return;
      this.stepS = Math.max(1, (to - this.fromS()) / this.points);
      this.trouble = error instanceof ApiError && error.code === "no_store"
        ? "Nothing is recorded, so the history begins when this page was opened."
        : `The history cannot be shown: ${error instanceof Error ? error.message : String(error)}.`;
    }
    this.loading = null;
    this.loaded = true;
    this.carryOn(keys, to);
    this.live.changed();
  }

  /**
   * Samples that came after the store was written, or while it was read, are among the live ones. If even those begin
   * too late (the page has just been opened), the store is read once more when it has caught up.
   */
  private carryOn(keys: string[], toS: number): void {
    this.again = null;
    const last = Math.max(-Infinity, ...keys.map((key) => this.get(key).t.slice(-1)[0] ?? -Infinity));
    const first = this.live.recent.find(([, atS]) => atS > last);
    if (!this.trouble && isLive(this.range) && first && Number.isFinite(last) && first[1] - last > gapAfter(this.stepS))
      this.again = { keys, atS: toS + kStoreLagS };
    for (const [tick, atS] of this.live.recent) this.add(tick, atS);
  }

  private take(tick: Tick, atS: number): void {
    if (this.loading) return;
    if (this.again && atS > this.again.atS) {
      void this.load(this.again.keys);
      return;
    }
    if (isLive(this.range)) this.add(tick, atS);
  }

  private add(tick: Tick, atS: number): void {
    if (!isLive(this.range)) return;
    for (const [key, bytes] of Object.entries(tick.used_bytes)) {
      let page = this.pages.get(key);
      if (!page) this.pages.set(key, (page = { columns: noColumns(), count: 1 }));
      page.count = append(page.columns, atS, bytes, this.stepS, page.count);
    }
    const from = atS - this.range.lastS;
    for (const [key, page] of this.pages) {
      trim(page.columns, from);
      if (page.columns.t.length === 0 && !(key in tick.used_bytes)) this.pages.delete(key);
    }
  }
}
