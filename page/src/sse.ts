// Parses server-sent events (HTML standard, 9.2.6): EventSource cannot send a token. Pure except for its state.

export interface ServerEvent {
  event: string;
  data: string;
}

export class EventParser {
  private rest = "";
  private name = "";
  private lines: string[] = [];

  /** The events that `text` completes. */
  push(text: string): ServerEvent[] {
    const out: ServerEvent[] = [];
    this.rest += text;
    let from = 0;
    for (let end = this.rest.indexOf("\n"); end >= 0; end = this.rest.indexOf("\n", from)) {
      const line = this.rest.slice(from, end).replace(/\r$/, "");
      from = end + 1;
      if (line === "") {
        if (this.lines.length > 0) out.push({ event: this.name || "message", data: this.lines.join("\n") });
        this.name = "";
        this.lines = [];
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") this.name = value;
      else if (field === "data") this.lines.push(value);
    }
    this.rest = this.rest.slice(from);
    return out;
  }
}
