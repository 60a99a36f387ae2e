// ProcessList: the processes of one device or of all, sorted and filtered as in `vramtrack top`, with the same keys.
import { bytes, moment, printable, rate, seconds } from "./format";
import type { Live } from "./live";
import { badge, gpuLink, verdictBadge } from "./parts";
import type { Series } from "./types";
import { h, type Node_ } from "./vdom";
import { commandOf, deviceShort, ratioOrDash } from "./words";

const place = (s: Series): string =>
  [s.process?.pod, s.process?.container, s.process?.slurm_job ? `job ${s.process.slurm_job}` : ""]
    .filter((t): t is string => Boolean(t)).map(printable).join(", ");

type Order = (a: Series, b: Series) => number;
const most = (of: (s: Series) => number | null | undefined): Order => (a, b) => (of(b) ?? -1) - (of(a) ?? -1);
const userOf = (s: Series): string => s.process?.user ?? "";

/** In the order of the key s, as in top. */
const kSorts = ["severity", "memory", "growth", "GPU use", "CPU use", "start", "user", "pid"] as const;
type Sort = (typeof kSorts)[number];

function orders(live: Live): Record<Sort, Order> {
  const memory: Order = (a, b) => live.bytesOf(b) - live.bytesOf(a);
  return {
    severity: (a, b) => b.told.concern - a.told.concern || memory(a, b),
    memory,
    growth: most((s) => (s.verdict.finding.state === "too_short" ? 0 : s.verdict.finding.growth_bytes_per_s.mid)),
    "GPU use": most((s) => s.load?.gpu_ratio),
    "CPU use": most((s) => s.load?.cpu_ratio),
    start: most((s) => (s.first ? seconds(s.first) : 0)),
    user: (a, b) => userOf(a).localeCompare(userOf(b)),
    pid: (a, b) => a.pid - b.pid,
  };
}

/** All words occur in pid, user, command, framework, container, pod or job, ignoring case. */
function passes(s: Series, filter: string): boolean {
  const p = s.process;
  const all = [s.pid, p?.user, p?.command, p?.name, p?.framework, p?.container, p?.pod, p?.slurm_job].join("\n").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

export interface ListOptions {
  withDevice: boolean;
  /** Rows shown until all are requested. */
  few: number;
  swatch?: (key: string) => string;
}

export class ProcessList {
  private sort: Sort = "severity";
  private reversed = false;
  private filter = "";
  private all = false;

  constructor(private readonly live: Live) {}

  /** s, S and / as in top. */
  key(event: KeyboardEvent): boolean {
    if (event.key === "s") this.order(kSorts[(kSorts.indexOf(this.sort) + 1) % kSorts.length]!);
    else if (event.key === "S") this.order(this.sort);
    else if (event.key === "/") document.querySelector<HTMLInputElement>("#process-filter")?.focus();
    else return false;
    return true;
  }

  node(rows: Series[], options: ListOptions): Node_ {
    if (rows.length === 0) return h("p", { class: "faint" }, "No process is visible here.");
    const order = orders(this.live)[this.sort];
    const passing = rows.filter((s) => passes(s, this.filter))
      .sort((a, b) => (this.reversed ? -1 : 1) * order(a, b) || (a.key < b.key ? -1 : 1));
    const shown = passing.slice(0, this.all ? undefined : options.few);
    return h("div", {},
      h("div", { class: "sorting" },
        h("label", { for: "process-filter" }, "Filter"),
        h("input", {
          id: "process-filter", type: "search", autocomplete: "off", placeholder: "pid, user, command",
          oninput: (event: Event) => { this.filter = (event.target as HTMLInputElement).value; this.live.changed(); },
          onkeydown: (event: KeyboardEvent) => {
            if (event.key === "Enter" || event.key === "Escape") (event.target as HTMLInputElement).blur();
          },
        }),
        h("span", { class: "faint" }, `by ${this.sort}${this.reversed ? ", reversed" : ""}`)),
      passing.length === 0 ? h("p", { class: "faint" }, "No process matches the filter.") : this.table(shown, options),
      passing.length > shown.length
        ? h("button", { type: "button", class: "more", onclick: () => { this.all = true; this.live.changed(); } },
            `Show all ${passing.length} processes`) : null);
  }

  private order(sort: Sort): void {
    this.reversed = sort === this.sort && !this.reversed;
    this.sort = sort;
    this.live.changed();
  }

  private head(text: string, sort: Sort | null, cls = ""): Node_ {
    const chosen = sort !== null && sort === this.sort;
    const direction = chosen ? (this.reversed ? "ascending" : "descending") : undefined;
    return h("th", { scope: "col", class: cls, key: text, "aria-sort": direction },
      sort === null ? text : h("button", { type: "button", class: "plain sort", onclick: () => this.order(sort) }, text));
  }

  private table(shown: Series[], options: ListOptions): Node_ {
    const { live } = this;
    const where = shown.some((s) => place(s) !== "");
    const loads = shown.some((s) => s.load);
    const cell = (label: string, cls: string, ...content: (Node_ | string | null)[]): Node_ =>
      h("td", { key: label, class: cls, "data-label": label }, content);
    return h("table", { class: "processes" },
      h("thead", {}, h("tr", {},
        this.head("Process", "pid"), options.withDevice && this.head("GPU", null), this.head("User", "user", "wide"),
        this.head("Framework", null, "wide"), this.head("Memory", "memory", "number"),
        this.head("Growth", "growth", "number"), this.head("Verdict", "severity"),
        loads && this.head("GPU %", "GPU use", "number wide"), loads && this.head("CPU %", "CPU use", "number wide"),
        loads && this.head("Host", null, "number wide"), this.head("Since", "start", "wide"),
        where && this.head("Container, job", null, "wide"))),
      h("tbody", {}, shown.map((s) => {
        const f = s.verdict.finding;
        const command = commandOf(s);
        return h("tr", { key: s.key },
          cell("Process", "command",
            options.swatch ? h("span", { class: "swatch", css: { background: options.swatch(s.key) }, "aria-hidden": "true" }) : null,
            h("span", { class: "pid" }, String(s.pid)), " ",
            h("span", { class: "text", title: command }, command),
            s.process?.command_hidden ? h("span", { class: "faint", title: "Only its owner and root can see the command line" }, " (hidden)") : null),
          options.withDevice ? cell("GPU", "", h("a", { href: gpuLink(s.device.id) }, deviceShort(s.device))) : null,
          cell("User", "wide", printable(userOf(s)) || "?"),
          cell("Framework", "wide", printable(s.process?.framework || s.verdict.framework || "") || "–"),
          cell("Memory", "number", bytes(live.bytesOf(s))),
          cell("Growth", "number", f.state === "too_short" ? "–" : rate(f.growth_bytes_per_s.mid)),
          cell("Verdict", "", verdictBadge(s.told),
            s.stall && !s.ended
              ? h("span", { class: "stall", title: s.stall.evidence.map(printable).join("\n") }, " ",
                  badge(s.told.stall_tone ?? "plain", printable(s.told.stall ?? ""))) : null),
          loads ? cell("GPU %", "number wide", ratioOrDash(s.load?.gpu_ratio)) : null,
          loads ? cell("CPU %", "number wide", ratioOrDash(s.load?.cpu_ratio)) : null,
          loads ? cell("Host", "number wide", s.load?.host_bytes ? bytes(s.load.host_bytes) : "–") : null,
          cell("Since", "wide", s.first ? moment(seconds(s.first), live.nowS) : "?"),
          where ? cell("Container, job", "wide", place(s)) : null);
      })));
  }
}
