// Desk: acknowledges alerts and keeps unfinished notes. There is one for the whole page.
import { acknowledge, takeBack } from "./api";
import type { Live } from "./live";
import type { AlertDesk } from "./parts";
import type { Acknowledgement } from "./types";

export class Desk implements AlertDesk {
  open: string | null = null;
  busy: string | null = null;
  failed: { id: string; text: string } | null = null;

  constructor(private readonly live: Live) {}

  ask(id: string | null): void {
    const before = this.open;
    this.open = id;
    this.failed = null;
    this.live.changed();
    // Move the focus to where the reader continues: into the note, or back to the button.
    const find = id ? `#note-${id}` : `[data-alert="${before ?? ""}"] button.acknowledge`;
    const focus = (): boolean => {
      const element = document.querySelector<HTMLElement>(find);
      element?.focus();
      return element !== null;
    };
    const until = performance.now() + 1000;
    const wait = (): void => {
      if (!focus() && performance.now() < until) requestAnimationFrame(wait);
    };
    requestAnimationFrame(wait);
  }

  acknowledge(id: string, note: string): void {
    void this.change(id, () => acknowledge(id, note));
  }

  takeBack(id: string): void {
    void this.change(id, async () => {
      await takeBack(id);
      return null;
    });
  }

  private async change(id: string, act: () => Promise<Acknowledgement | null>): Promise<void> {
    this.busy = id;
    this.failed = null;
    this.live.changed();
    try {
      const now = await act();
      // The stream will report the same within a sample; the reader need not wait for it.
      for (const alert of this.live.alerts?.alerts ?? []) if (alert.id === id) alert.acknowledged = now;
      this.open = null;
    } catch (error) {
      this.failed = { id, text: error instanceof Error ? error.message : String(error) };
    }
    this.busy = null;
    this.live.changed();
  }
}
