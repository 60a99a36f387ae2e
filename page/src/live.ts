// The page's view of the agent, kept up to date by its event stream. Pages subscribe to it; while the stream runs, only
// data it does not carry is polled (sites.ts).
import { ApiError, getAlerts, getStatus, getView, readEvents } from "./api";
import { seconds } from "./format";
import type { Alert, Alerts, Series, Status, Tick, View } from "./types";
import type { ServerEvent } from "./sse";

type Link = "connecting" | "live" | "lost" | "locked";

const kRedrawMs = 200;
const kRetryMs = 2000;
const kRecent = 240;
/** While paused, at most this many are kept; older ones are missing in the charts until the store is read again. */
const kMostHeld = 3600;
/** The agent sends a comment at least every 15 s, so a longer silence means a dead connection. */
const kSilentMs = 40_000;

export class Live {
  view: View | null = null;
  alerts: Alerts | null = null;

  /** One per leak, even if the series of both the device and its process show it. */
  incidents(): Alert[] {
    return (this.alerts?.alerts ?? []).filter((a) => !a.told_with);
  }
  status: Status | null = null;
  /** The time of the last sample in seconds, by the agent's clock, which a simulation speeds up. */
  nowS = 0;
  /** The latest bytes by key; newer than the view. */
  used = new Map<string, number>();
  link: Link = "connecting";
  trouble = "";
  /** When the last sample arrived, by performance.now(). */
  sampledMs = 0;

  /** The latest samples: the store is some seconds behind, because it writes several at once. */
  readonly recent: [Tick, number][] = [];

  /** The display is paused; data that arrives meanwhile is kept and shown afterwards. */
  paused = false;
  private held: ServerEvent[] = [];

  private redraw: () => void = () => undefined;
  private samplers = new Set<(tick: Tick, atS: number) => void>();
  private waiting = false;
  private drawnMs = 0;
  private stop: AbortController | null = null;

  /** `redraw` is called at most five times per second, however fast samples arrive. */
  onChange(redraw: () => void): void {
    this.redraw = redraw;
  }

  /** Subscribes to every sample, immediately. Returns a function that ends it. */
  onSample(take: (tick: Tick, atS: number) => void): () => void {
    this.samplers.add(take);
    return () => this.samplers.delete(take);
  }

  changed(): void {
    if (this.waiting) return;
    this.waiting = true;
    const wait = Math.max(0, kRedrawMs - (performance.now() - this.drawnMs));
    setTimeout(() => requestAnimationFrame(() => {
      this.waiting = false;
      this.drawnMs = performance.now();
      this.redraw();
    }), wait);
  }

  /** Connects, and reconnects whenever the connection ends. Never returns. Call it again once there is a token. */
  async run(): Promise<void> {
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    while (!stop.signal.aborted) {
      await this.once(stop.signal);
      if (stop.signal.aborted || this.link === "locked") return;
      await new Promise((resolve) => setTimeout(resolve, kRetryMs));
    }
  }

  private async once(outer: AbortSignal): Promise<void> {
    const attempt = new AbortController();
    const abort = (): void => attempt.abort();
    outer.addEventListener("abort", abort);
    let lastEventMs = performance.now();
    const watchdog = setInterval(() => {
      if (performance.now() - lastEventMs > kSilentMs) abort();
    }, 5000);
    try {
      void getStatus().then((status) => {
        this.status = status;
        this.changed();
      }, () => undefined);  // the stream reports the problem
      await readEvents((event) => this.take(event), () => (lastEventMs = performance.now()), attempt.signal);
      this.set("lost", "the agent ended the connection; trying again");
    } catch (error) {
      if (outer.aborted) return;
      if (error instanceof ApiError && error.status === 401) this.set("locked", error.message);
      else if (error instanceof ApiError && error.status === 503) await this.poll(error.message);
      else this.set("lost", error instanceof ApiError ? error.message : "the agent does not answer; trying again");
    } finally {
      clearInterval(watchdog);
      outer.removeEventListener("abort", abort);
    }
  }

  /** All streams are taken: one request per retry is better than none. */
  private async poll(why: string): Promise<void> {
    try {
      this.takeView(await getView());
      this.alerts = await getAlerts();
      this.set("lost", `${why}. Until then this page asks every ${kRetryMs / 1000} s`);
    } catch {
      this.set("lost", why);
    }
  }

  private set(link: Link, trouble: string): void {
    this.link = link;
    this.trouble = trouble;
    this.changed();
  }

  pause(on: boolean): void {
    this.paused = on;
    if (!on) for (const event of this.held.splice(0)) this.take(event);
    this.changed();
  }

  private take(event: ServerEvent): void {
    if (this.paused) {
      this.held.push(event);
      if (this.held.length > kMostHeld) this.held.shift();
      return;
    }
    if (event.event === "view") {
      this.takeView(JSON.parse(event.data) as View);
    } else if (event.event === "tick") {
      this.sample(JSON.parse(event.data) as Tick);
    } else if (event.event === "alerts") {
      this.alerts = JSON.parse(event.data) as Alerts;
    }
    this.set("live", "");
  }

  private takeView(view: View): void {
    this.view = view;
    const used_bytes: Record<string, number> = {};
    for (const s of view.series) if (!s.ended && !s.paused) used_bytes[s.key] = s.used_bytes;
    this.used.clear();
    this.sample({ time: view.time, used_bytes });
  }

  private sample(tick: Tick): void {
    const atS = seconds(tick.time);
    for (const [key, value] of Object.entries(tick.used_bytes)) this.used.set(key, value);
    if (atS > this.nowS) this.sampledMs = performance.now();
    this.nowS = atS;
    this.recent.push([tick, atS]);
    if (this.recent.length > kRecent) this.recent.shift();
    for (const take of this.samplers) take(tick, atS);
  }

  // Queries for pages.

  devices(): Series[] {
    return this.view?.series.filter((s) => s.metric === "device_used" && !s.ended) ?? [];
  }

  /** The living processes of a device, or of all. */
  processes(deviceId?: string): Series[] {
    return this.view?.series.filter((s) => s.metric === "process_used" && !s.ended &&
                                           (deviceId === undefined || s.device.id === deviceId)) ?? [];
  }

  bytesOf(s: Series): number {
    return this.used.get(s.key) ?? s.used_bytes;
  }
}
