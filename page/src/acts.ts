// Acts: current and past acts of the policies, and the switch. The stream does not carry them, so they are polled.
import { ApiError, getActs, switchActs } from "./api";
import { moment, printable, seconds } from "./format";
import type { Live } from "./live";
import { badge } from "./parts";
import { Poll } from "./poll";
import type { Act, Acts, Tone } from "./types";
import { h, type Node_ } from "./vdom";

const kFewActs = 20;
/** The entries of the record that people read: the result of each step, and how each ladder ended. */
const kShown = new Set(["done", "failed", "refused", "skipped", "waits", "would", "undone", "released", "left", "would_undo", "undo_failed", "end"]);

const toneOf = (a: Act): Tone => (["failed", "refused", "undo_failed", "left"].includes(a.event) ? "critical" : a.event === "done" ? "warning" : "faint");
const subjectWords = (pid: number, command: string): string => (pid ? `pid ${pid}${command ? ` ${printable(command)}` : ""}` : "the GPU");

export class ActsList {
  private acts: Acts | null = null;
  private trouble = "";
  private readonly poll: Poll;

  constructor(private readonly live: Live) {
    this.poll = new Poll(live, async (signal) => {
      this.acts = await getActs(signal);
    });
  }

  close(): void {
    this.poll.close();
  }

  private async turn(off: boolean): Promise<void> {
    try {
      await switchActs(off);
      this.trouble = "";
    } catch (error) {
      this.trouble = error instanceof ApiError ? error.message : "the agent did not answer";
    }
    await this.poll.now();
  }

  private state(acts: Acts): Node_ {
    const words = acts.off ? `switched off${acts.off_because ? `: ${printable(acts.off_because)}` : ""}`
      : !acts.enabled ? "act.enabled is false: nothing is done"
        : acts.dry_run ? "dry run: recorded, not done" : "acting";
    return h("div", { class: "toolbar" },
      h("p", {}, badge(acts.off || !acts.enabled || acts.dry_run ? "faint" : "warning", words)),
      acts.enabled ? h("button", { type: "button", class: "acts-switch", onclick: () => void this.turn(!acts.off) },
        acts.off ? "Switch on" : "Switch off") : null);
  }

  /** Empty if there are no policies and no acts. */
  node(): Node_ | null {
    const acts = this.acts;
    if (!acts || (acts.policies.length === 0 && acts.acts.length === 0)) return null;
    const shown = acts.acts.filter((a) => kShown.has(a.event)).slice(-kFewActs).reverse();
    return h("section", { key: "acts", class: "panel", "data-acts": String(shown.length) }, h("h2", {}, "Actions of policies"),
      this.state(acts),
      this.trouble ? h("p", { key: "trouble", class: "hint" }, this.trouble) : null,
      acts.climbs.length > 0 ? h("ul", { key: "climbs" }, acts.climbs.map((c) => h("li", { key: c.id },
        `${printable(c.policy)}: ${subjectWords(c.pid, c.command)}: step ${c.step} of ${c.steps}${c.next ? `, next ${c.next}` : ""}`,
        h("p", { class: "because" }, printable(c.because))))) : null,
      shown.length === 0 ? h("p", { key: "none", class: "faint" }, "Nothing has been done yet.")
        : h("ul", { key: "record" }, shown.map((a) => h("li", { key: `${a.climb} ${a.step ?? ""} ${a.event} ${a.time}` },
          badge(toneOf(a), `${a.event}${a.dry_run ? " (dry run)" : ""}`), " ",
          h("strong", {}, printable(a.action ?? a.policy)), ` ${subjectWords(a.process.pid, a.process.command ?? "")} `,
          h("span", { class: "faint" }, `${moment(seconds(a.time), this.live.nowS)}, policy ${printable(a.policy)}`),
          a.text ? h("p", {}, printable(a.text)) : null,
          a.evidence.because ? h("p", { class: "because" }, printable(a.evidence.because)) : null))));
  }
}
