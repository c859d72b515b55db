/** The addresses of the documents: the list, and one document with what is marked in it. */
import { integer, list, oneOf, queryState, text } from "../../state/query";
import type { components } from "../../api/schema";
import type { Span } from "../../parts/code-points";

export type Document = components["schemas"]["DocumentShape"];
export type PassageSpan = components["schemas"]["PassageSpanShape"];
export const SORTS = ["newest", "oldest", "title", "largest", "smallest"] as const;
export const PARTS = ["text", "passages", "who"] as const;

export const address = queryState({
  /** What the list is searched for, its branch and kind of files, and its order. */
  q: text(),
  branch: text(),
  type: text(),
  sort: oneOf(SORTS, "newest"),
  /** Row at the top of the list. */
  at: integer(0),
  show: oneOf(PARTS, "text"),
  /** Marked parts of the text, each `start-end` in code points. */
  quote: list(),
  context: list(),
  answer: list(),
  /** The passage that is shown. */
  passage: text(),
});

/** What the filters of the address select, as the service reads it. */
export function listQuery() {
  const { q, branch, type, sort } = address.read();
  return { q, category: branch, type: type ? [type] : [], sort };
}

export type ListState = ReturnType<typeof address.read>;

const KINDS = { quote: "quote", context: "context", answer: "answer" } as const;

/** The marked spans of the address; what is no span is left out. */
export function spansOf(state: { quote: string[]; context: string[]; answer: string[] }): Span[] {
  return Object.values(KINDS).flatMap((kind) => state[kind].flatMap((value) => spanOf(value, kind) ?? []));
}

export function spanOf(value: string, kind: string): Span | null {
  const match = /^(\d{1,9})-(\d{1,9})$/.exec(value);
  const [start, end] = [Number(match?.[1]), Number(match?.[2])];
  return match && start < end ? { start, end, kind } : null;
}
