// All alerts, latest first.
import type { Live } from "./live";
import { alertList } from "./parts";
import type { AlertDesk } from "./parts";
import type { Page } from "./page";
import type { View } from "./types";
import { h, render } from "./vdom";

/** Why nobody is notified yet of a leak that is shown; the GPU comes first and shows it for its processes, too. */
export const noAlert = (view: View | null): string => {
  const waiting = view?.series.find((s) => s.paging !== "");
  return `No alert has been raised${waiting ? `: ${waiting.paging}` : ""}.`;
};

type Which = "standing" | "open" | "all";

export class AlertsPage implements Page {
  readonly title = "Alerts";
  private which: Which = "all";

  constructor(private readonly root: HTMLElement, private readonly live: Live, private readonly desk: AlertDesk) {}

  close(): void {}

  draw(): void {
    const all = this.live.incidents();
    const chosen = {
      all,
      standing: all.filter((a) => a.ended === "standing"),
      // Ended alerts need no attention.
      open: all.filter((a) => a.ended === "standing" && a.acknowledged === null),
    };
    const names: [Which, string][] = [["all", "All"], ["standing", "Active"], ["open", "Not acknowledged"]];
    render(this.root, [
      h("div", { class: "toolbar" }, h("h1", {}, "Alerts"),
        h("div", { class: "ranges", role: "group", "aria-label": "Alerts shown" }, names.map(([which, name]) =>
          h("button", {
            key: which, type: "button", "aria-pressed": String(this.which === which),
            onclick: () => { this.which = which; this.live.changed(); },
          }, `${name} (${chosen[which].length})`)))),
      !this.live.alerts ? h("p", { class: "faint" }, "Waiting for the agent…")
        : chosen[this.which].length === 0
          ? h("p", { class: "faint" }, this.which === "all" ? noAlert(this.live.view) : "No such alert.")
          : alertList(chosen[this.which], this.desk, this.live.nowS),
    ]);
  }
}
