// Polls data that the stream does not carry, while the page is visible.
import type { Live } from "./live";

const kEveryMs = 5000;

export class Poll {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly ended = new AbortController();

  /** `ask` fetches new data; the page is drawn after it. */
  constructor(private readonly live: Live, private readonly ask: (signal: AbortSignal) => Promise<void>) {
    void this.now();
  }

  close(): void {
    this.ended.abort();
    clearTimeout(this.timer);
  }

  /** Polls at once, and then every five seconds. */
  async now(): Promise<void> {
    const { signal } = this.ended;
    clearTimeout(this.timer);
    try {
      if (!this.live.paused && this.live.link !== "locked") {
        await this.ask(signal);
        this.live.changed();
      }
    } catch {
      // An older agent, or none at the moment: the stream reports that.
    }
    clearTimeout(this.timer);
    if (!signal.aborted) this.timer = setTimeout(() => void this.now(), kEveryMs);
  }
}
