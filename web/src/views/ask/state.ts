/** The address of the view: what is asked, of which part of the documents, and which source is open. */
import { categories, queryState, text } from "../../state/query";
import { isOwnAddress } from "../../state/router";
import type { Settings, Turn } from "./turn";

export const address = queryState({
  /** The question; one of a link from elsewhere is asked when the reader says so, under the reader's rights. */
  q: text(),
  /** The conversation. Under another key it is another conversation, so a link never shows someone's answers. */
  c: text(),
  scope: categories(),
  agent: text(),
  as_of: text(),
  /** The name of the only regulation to answer from. */
  regulation: text(),
  /** The open source: number of the turn, dot, number of the source. */
  source: text(),
});

/** No limit to what answers. */
export const ANYWHERE: Settings = { scope: [], agent: "", as_of: "", regulation: "" };

export function settingsNow(): Settings {
  const { scope, agent, as_of, regulation } = address.read();
  return { scope, agent, as_of, regulation };
}

/** The question of a link from elsewhere; "" where the page itself led to the question. */
export const linkedQuestion = (): string => (isOwnAddress() ? "" : address.read().q);

export function openSource(): { turn: number; number: number } | null {
  const match = /^(\d+)\.(\d+)$/.exec(address.read().source);
  return match ? { turn: Number(match[1]), number: Number(match[2]) } : null;
}

/** A link that asks again, without the conversation. */
export function linkToAsk(turn: Turn): string {
  const to = address.link({ q: turn.question, c: "", source: "", ...turn.settings }, "ask", []);
  return new URL(to, location.href).href;
}
