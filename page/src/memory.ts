// Settings that the browser keeps for the page. The page also works if the browser keeps nothing.
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
    // Full or forbidden: the value lasts until the page is closed.
  }
}
