// Figures as text for people, in the same words as src/core/format.cpp, so that the page, the terminal and a log show
// the same ETA. Pure; never "NaN" or "Infinity".
import type { Interval, Time } from "./types";

const kMiB = 1024 * 1024;
const kGiB = 1024 * kMiB;
const kYear = 365.25 * 86400;

const finite = (value: number): number => (Number.isFinite(value) ? value : 0);

/** Foreign times have up to nine decimals; Date reads three. Seconds since 1970; NaN if it is not a time. */
export function seconds(time: Time): number {
  return Date.parse(time.replace(/(\.\d{3})\d+/, "$1")) / 1000;
}

/** "12.3 GiB" from 1 GiB on, otherwise "512 MiB". */
export function bytes(value: number): string {
  const v = finite(value);
  return Math.abs(v) >= kGiB ? `${(v / kGiB).toFixed(1)} GiB` : `${(v / kMiB).toFixed(0)} MiB`;
}

/** "12.3 GiB", "45.6 MiB", "7.8 KiB", "90 bytes": for sizes of different magnitudes next to each other. */
export function size(value: number): string {
  let v = Math.abs(Math.trunc(finite(value)));
  const sign = value < 0 && v > 0 ? "-" : "";
  if (v < 1024) return `${sign}${v} ${v === 1 ? "byte" : "bytes"}`;
  let unit = 0;
  for (v /= 1024; v >= 1023.95 && unit < 3; v /= 1024) ++unit;
  return `${sign}${v.toFixed(1)} ${["KiB", "MiB", "GiB", "TiB"][unit]}`;
}

/** "12.3/24.0 GiB": both in the unit of the larger one. */
export function bytesOf(used: number, capacity: number): string {
  return finite(capacity) >= kGiB
    ? `${(finite(used) / kGiB).toFixed(1)}/${(capacity / kGiB).toFixed(1)} GiB`
    : `${(finite(used) / kMiB).toFixed(0)}/${(finite(capacity) / kMiB).toFixed(0)} MiB`;
}

/** In GiB from 10 GiB/min on, as when a model loads. */
const rateUnit = (bytesPerS: number): [number, string] => (Math.abs(finite(bytesPerS)) * 60 >= 10 * kGiB ? [kGiB, "GiB/min"] : [kMiB, "MiB/min"]);

function rateDigits(bytesPerS: number, unit: number, sign: boolean): string {
  const value = (finite(bytesPerS) * 60) / unit;
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 1 ? 1 : 2;
  if (size < 10 ** -digits / 2) return "0";
  return (sign && value > 0 ? "+" : "") + value.toFixed(digits);
}

/** "+12.4 MiB/min", "+17.0 GiB/min" */
export function rate(bytesPerS: number): string {
  const [unit, name] = rateUnit(bytesPerS);
  return `${rateDigits(bytesPerS, unit, true)} ${name}`;
}

/** "+50.0 MiB/min (48.0 to 52.3)" */
export function rateInterval(i: Interval): string {
  const [unit] = rateUnit(i.mid);
  const low = rateDigits(i.low, unit, false);
  const high = rateDigits(i.high, unit, false);
  return low === high ? rate(i.mid) : `${rate(i.mid)} (${low} to ${high})`;
}

const two = (n: number): string => String(n).padStart(2, "0");

/** "20ms", "45s", "38m", "1h 05m", "3d 04h", "over 10 years". */
export function duration(value: number): string {
  const s = Number.isNaN(value) ? 0 : Math.max(0, value);
  if (s >= 10 * kYear) return "over 10 years";
  if (s >= 0.0005 && s < 0.0995) return `${(s * 1000).toFixed(0)}ms`;
  if (s < 9.95 && Math.abs(s - Math.round(s)) >= 0.05) return `${s.toFixed(1)}s`;
  if (s < 59.5) return `${s.toFixed(0)}s`;
  const minutes = Math.round(s / 60);
  if (minutes < 60) return `${minutes}m`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)}h ${two(minutes % 60)}m`;
  const hours = Math.round(s / 3600);
  return `${Math.floor(hours / 24)}d ${two(hours % 24)}h`;
}

/** "0h 47m (38m–1h 05m)": the hour digit shows at once that it is not days. */
export function eta(i: Interval): string {
  let mid = duration(i.mid);
  if (/^\d+m$/.test(mid)) mid = `0h ${two(parseInt(mid, 10))}m`;
  const low = duration(i.low);
  const high = duration(i.high);
  return low === high ? mid : `${mid} (${low}–${high})`;
}

/** 0.97 -> "97 %"; "under 1 %" and "over 99 %" instead of a misleading 0 or 100. */
export function percent(ratio: number): string {
  const p = finite(ratio) * 100;
  if (p > 0 && p < 1) return "under 1 %";
  if (p > 99 && p < 100) return "over 99 %";
  return `${p.toFixed(0)} %`;
}

const clock = (at: Date): string => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
const dateAndClock = (at: Date): string => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(at)}`;

/** The time of day, preceded by the date if it is not today: in the reader's time zone. */
export function moment(atS: number, nowS: number): string {
  const at = new Date(atS * 1000);
  return at.toDateString() === new Date(nowS * 1000).toDateString() ? clock(at) : dateAndClock(at);
}

/** "UTC+02:00": the reader's time zone at that time. The header shows it once, for all times of the page. */
export function zone(atS: number): string {
  const minutes = -new Date(atS * 1000).getTimezoneOffset();
  const size = Math.abs(minutes);
  return minutes === 0 ? "UTC" : `UTC${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/** A sentence from the agent, with its UTC times converted to the page's zone, and made printable. */
export function inLocalTime(text: string): string {
  return printable(text).replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (utc) => dateAndClock(new Date(utc)));
}

/** Control and bidirectional characters in foreign texts (commands, names) are shown as '?'. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "?");
}
