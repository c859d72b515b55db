/** Reads server-sent events from a stream of text. */
export interface ServerEvent {
  name: string;
  data: string;
}

const LINE_END = /\r\n|\n|\r/;

/** Splits a stream of text into events (HTML standard, 9.2.6); a last event without its blank line is dropped. */
export class EventParser {
  private rest = "";
  private name = "";
  private data: string[] = [];

  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    this.rest += text;
    for (;;) {
      const end = LINE_END.exec(this.rest);
      if (!end || (end[0] === "\r" && end.index === this.rest.length - 1)) return events;
      const line = this.rest.slice(0, end.index);
      this.rest = this.rest.slice(end.index + end[0].length);
      if (line) this.field(line);
      else if (this.data.length > 0 || this.name) {
        if (this.data.length > 0) events.push({ name: this.name || "message", data: this.data.join("\n") });
        this.name = "";
        this.data = [];
      }
    }
  }

  private field(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment keeps the connection open
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.name = value;
    else if (field === "data") this.data.push(value);
  }
}
