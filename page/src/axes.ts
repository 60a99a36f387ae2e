// Axes that all charts share: binary sizes or the text of `valueLabel`, 24-hour clocks, the theme's colours.
import type uPlot from "uplot";
import { colour } from "./theme";

const kMiB = 1024 * 1024;

const two = (n: number): string => String(n).padStart(2, "0");

/** "08:30"; "08:30:15" if ticks are closer than a minute; "01-05" at the start of a day. */
function clockLabel(atS: number, stepS: number): string {
  const d = new Date(atS * 1000);
  if (d.getHours() + d.getMinutes() + d.getSeconds() === 0) return `${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  const clock = `${two(d.getHours())}:${two(d.getMinutes())}`;
  return stepS < 60 ? `${clock}:${two(d.getSeconds())}` : clock;
}

/** "0", "4 GiB", "512 MiB". */
function sizeLabel(bytes: number): string {
  if (bytes === 0) return "0";
  return bytes >= 1024 * kMiB ? `${+(bytes / kMiB / 1024).toFixed(2)} GiB` : `${+(bytes / kMiB).toFixed(1)} MiB`;
}

/** Powers of two of a MiB, so that ticks are whole numbers. */
const kSizes = Array.from({ length: 24 }, (_, i) => kMiB * 2 ** i);

const kFont = "12px system-ui, sans-serif";

/** `valueLabel`: for a scale that is not in bytes. `times`: whether the times are written below. */
export function axes(compact: boolean, valueLabel?: (value: number) => string, times = true): uPlot.Axis[] {
  const common: uPlot.Axis = {
    font: kFont,
    stroke: () => colour("faint"),
    grid: { stroke: () => colour("rule"), width: 1 },
    ticks: { show: false },
  };
  return [
    {
      ...common,
      space: 70,
      size: times ? 24 : 4,
      gap: 4,
      values: (_, splits, __, ___, increment) => splits.map((s) => (times ? clockLabel(s, increment) : null)),
    },
    {
      ...common,
      size: 62,
      gap: 6,
      space: compact ? 26 : 38,
      ...(valueLabel ? {} : { incrs: kSizes }),
      values: (_, splits) => splits.map(valueLabel ?? sizeLabel),
    },
  ];
}

/** The width of an element's content, but at least the width that a chart needs. */
export const widthOf = (element: HTMLElement): number => Math.max(160, Math.floor(element.clientWidth));
