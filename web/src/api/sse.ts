/** Server-sent events of a POST request, which the browser's EventSource cannot send. */
import { send } from "./client";
import { EventParser, type ServerEvent } from "./event-parser";
import { isAbort, Problem } from "./problem";

/** The events of a POST request as they come. Throws `Problem`; an abort as itself. */
export async function* eventsOf(url: string, body: unknown, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const response = await send("post", url, {
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
    signal,
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  const parser = new EventParser();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield* parser.push(value);
    }
  } catch (error) {
    if (isAbort(error) || signal.aborted) throw new DOMException("stopped", "AbortError");
    throw new Problem("unreachable", "");
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
