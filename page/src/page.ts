// A page of the dashboard; main.ts shows one at a time.
export interface Page {
  /** For the window's title. */
  readonly title: string;
  /** Shows the state as it is now; called at most five times a second. */
  draw(): void;
  /** Ends what the page has begun; it is not drawn again. */
  close(): void;
  /** A key that no field of input took; true when it meant something here. */
  /** The GPU that d and P open, where no card has the focus. */
  chosen?(): string | undefined;
  key?(event: KeyboardEvent): boolean;
}
