/** One question to the agent of a public key or without a key, and what can go wrong with it. */
import type { components } from "../api/schema";
import { EventParser } from "../api/event-parser";
import type { Options } from "./options";

export type Answer = components["schemas"]["AgentAskResponse"];
export type Citation = Answer["citations"][number];
export type FailureKind =
  | "unauthorized"
  | "origin"
  | "forbidden"
  | "busy"
  | "unavailable"
  | "offline"
  | "unreachable"
  | "invalid"
  | "unfinished"
  | "interrupted"
  | "failed";

export class AskFailure extends Error {
  constructor(
    readonly kind: FailureKind,
    /** Seconds after which another attempt makes sense. */
    readonly seconds = 0,
  ) {
    super(kind);
  }
}

const KINDS: Record<number, FailureKind> = {
  400: "invalid",
  401: "unauthorized",
  403: "forbidden",
  404: "forbidden",
  413: "invalid",
  422: "invalid",
  429: "busy",
  502: "unavailable",
  503: "unavailable",
  504: "unavailable",
};

/** Called with the text and the citations of an answer while it is written. */
export type OnText = (text: string, citations: readonly Citation[]) => void;

/** The answer. Rejects with `AskFailure`, and with the signal's reason when it is aborted. */
export async function ask(options: Options, question: string, signal: AbortSignal, onText: OnText): Promise<Answer> {
  const response = await post(options, question, signal);
  if (!response.ok) throw new AskFailure(KINDS[response.status] ?? "failed", secondsOf(response));
  const answer = await read(response, signal, onText);
  if (answer.unfinished) throw new AskFailure("unfinished");
  return answer;
}

async function post({ script, key, agent }: Options, question: string, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(new URL(agent ? `agents/${encodeURIComponent(agent)}/ask` : "ask", script), {
      method: "POST",
      headers: {
        ...(key && { Authorization: `Bearer ${key}` }),
        "Content-Type": "application/json",
        Accept: "text/event-stream",
      },
      body: JSON.stringify({ question }),
      credentials: "omit",
      signal,
    });
  } catch {
    signal.throwIfAborted();
    throw new AskFailure(await whyNoResponse(script));
  }
}

/** A proxy may answer 200 with something else, and a connection may end within the body. */
async function read(response: Response, signal: AbortSignal, onText: OnText): Promise<Answer> {
  try {
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream"))
      return (await response.json()) as Answer; // from a service that does not stream
    return await streamed(response, onText);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof AskFailure ? error : new AskFailure(navigator.onLine ? "interrupted" : "offline");
  }
}

/** What the events carry. */
interface EventData {
  text?: string;
  citations?: Citation[];
}

async function streamed(response: Response, onText: OnText): Promise<Answer> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  let text = "";
  let citations: readonly Citation[] = [];
  while (reader) {
    const { value, done } = await reader.read();
    if (done) break;
    for (const event of parser.push(value)) {
      const data = JSON.parse(event.data) as EventData;
      if (event.name === "done") return data as Answer;
      if (event.name === "error") throw new AskFailure("failed");
      if (event.name === "citations") citations = data.citations ?? [];
      else if (event.name === "replace") text = data.text ?? "";
      else if (event.name === "token") text += data.text ?? "";
      else continue;
      onText(text, citations);
    }
  }
  throw new AskFailure("interrupted");
}

/** Browsers hide why a request failed. When the service still sends its script, it refuses this page. */
async function whyNoResponse(script: string): Promise<FailureKind> {
  if (!navigator.onLine) return "offline";
  try {
    await fetch(script, { mode: "no-cors", cache: "no-store", credentials: "omit" });
    return "origin";
  } catch {
    return "unreachable";
  }
}

function secondsOf(response: Response): number {
  const header = response.headers.get("Retry-After") ?? "";
  return /^\d+$/.test(header) ? Number(header) : 0;
}
