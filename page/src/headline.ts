// What the whole machine is like, in one sentence.
import { printable } from "./format";
import { etaWords } from "./parts";
import type { Series } from "./types";
import { deviceShort, toneOf } from "./words";

export const kRank = { critical: 3, warning: 2, watch: 1, ok: 0 };

/** The whole machine in one sentence: the first thing on the page, and what a screen reader hears when it changes. */
export function headline(devices: Series[], nowS: number): { tone: string; text: string } {
  if (devices.length === 0) return { tone: "faint", text: "No GPU is being watched." };
  const leaking = devices.filter((d) => d.verdict.finding.leak)
    .sort((a, b) => kRank[b.verdict.severity] - kRank[a.verdict.severity] ||
                    (a.verdict.finding.oom_in_s?.mid ?? Infinity) - (b.verdict.finding.oom_in_s?.mid ?? Infinity));
  const worst = leaking[0];
  if (!worst) {
    const growing = devices.filter((d) => toneOf(d.verdict) === "notice").map((d) => deviceShort(d.device));
    if (growing.length > 0)
      return { tone: "notice", text: `No leak so far; ${growing.join(", ")} ${growing.length > 1 ? "grow" : "grows"}, not yet decidable.` };
    // A GPU that has been seen too briefly is no healthy one.
    const young = devices.filter((d) => d.verdict.finding.state === "too_short");
    if (young.length === devices.length)
      return { tone: "faint", text: "Not known yet whether anything leaks: too few samples so far." };
    if (young.length > 0)
      return { tone: "ok", text: `Nothing leaks so far; not known yet of ${young.map((d) => deviceShort(d.device)).join(", ")}.` };
    return { tone: "ok", text: devices.length === 1 ? "Nothing leaks." : `Nothing leaks on ${devices.length} GPUs.` };
  }
  const v = worst.verdict;
  const who = v.suspect ? (v.suspect.pid === 0 ? ": no visible process explains it" : `: pid ${v.suspect.pid} ${printable(v.suspect.command)}`) : "";
  const end = etaWords(v, nowS);
  const more = leaking.length > 1 ? ` ${leaking.length - 1} more GPU${leaking.length > 2 ? "s leak" : " leaks"}.` : "";
  return { tone: toneOf(v), text: `${deviceShort(worst.device)} leaks${who}${end ? `; ${end}` : ""}.${more}` };
}
