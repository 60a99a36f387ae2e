// Light and dark: the system's theme, unless the reader chose one. Charts use the style sheet's custom properties.
import { keep, recall } from "./memory";

type Choice = "auto" | "light" | "dark";

const kKey = "vramtrack.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

const known = recall("localStorage", kKey);
let choice: Choice = known === "light" || known === "dark" ? known : "auto";

export const theme = (): "light" | "dark" =>
  choice === "auto" ? (system.matches ? "dark" : "light") : choice;

export function apply(): void {
  document.documentElement.dataset.theme = theme();
  colours.clear();
  for (const listener of listeners) listener();
}

/** Switches to the other theme; the choice survives a reload. */
export function toggle(): void {
  choice = theme() === "dark" ? "light" : "dark";
  keep("localStorage", kKey, choice);
  apply();
}

export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const colours = new Map<string, string>();

/** The value of the custom property `--name`. */
export function colour(name: string): string {
  let value = colours.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, value);
  }
  return value;
}

system.addEventListener("change", apply);
