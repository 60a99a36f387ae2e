// A page of the dashboard; main.ts shows one at a time.
export interface Page {
  /** For the window's title. */
  readonly title: string;
  /** Shows the current state; called at most five times per second. */
  draw(): void;
  /** Ends everything the page has begun; it is not drawn again. */
  close(): void;
  /** Handles a key that no input field took; returns whether it has a meaning here. */
  /** The GPU that d and P open if no card has the focus. */
  chosen?(): string | undefined;
  key?(event: KeyboardEvent): boolean;
}
