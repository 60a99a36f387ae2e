// What the browser keeps for the page. Where it keeps nothing (blocked by its owner) the page works all the same.
const storage = (kind: "localStorage" | "sessionStorage"): Storage | null => {
  try {
    return window[kind];
  } catch {
    return null;
  }
};

export function recall(kind: "localStorage" | "sessionStorage", key: string): string {
  return storage(kind)?.getItem(key) ?? "";
}

export function keep(kind: "localStorage" | "sessionStorage", key: string, value: string): void {
  try {
    storage(kind)?.setItem(key, value);
  } catch {
    // Full, or forbidden: it holds until the page is closed.
  }
}
