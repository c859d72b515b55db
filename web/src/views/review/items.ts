/** Items of the queue in the shape that the view shows; their `proposal` is an open object in the API. */
import type { components } from "../../api/schema";
import type { Statement } from "../../state/statements";

export type Item = components["schemas"]["ItemShape"];

export interface Deciding {
  item: Item;
  onDecided: () => void;
  /** The item was decided elsewhere, or its passages changed. */
  onStale: () => void;
}

export interface Answering extends Deciding {
  /** Passages that a search found and the reviewer added: the item is read again with them. */
  added: readonly string[];
  onAdd: (id: string) => void;
  loading: boolean;
}

export interface Passage {
  id: string;
  label: string;
  text: string;
  cited: boolean;
  /** The SHA-256 of the text; "" when the passage comes from a search. */
  hash: string;
}

export interface AnswerProposal {
  question: string;
  text: string;
  decision: string;
  reasons: Statement[];
  /** Why readers voted against the answer, in their words; only administrators get it. */
  feedback: string[];
  asOf: string;
  passages: Passage[];
  /** Passages of a decision. */
  chosen: string[];
}

export interface Alternative {
  path: string[];
  confidence: number;
}

export interface CategoryProposal {
  /** Empty when no category is proposed. */
  path: string[];
  reasons: Statement[];
  alternatives: Alternative[];
  disagreeing: boolean;
}

const words = (value: unknown): string => (typeof value === "string" ? value : "");
const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === "string") : [];
const rows = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value)
    ? value.filter((entry): entry is Record<string, unknown> => typeof entry === "object" && entry !== null)
    : [];

function reasonsOf(proposal: Item["proposal"]): Statement[] {
  return rows(proposal.reason_statements).map((row) => ({
    code: words(row.code),
    text: words(row.text),
    values: (row.values ?? {}) as Record<string, string>,
  }));
}

export function answerOf({ proposal }: Item): AnswerProposal {
  return {
    question: words(proposal.question),
    text: words(proposal.text),
    decision: words(proposal.decision),
    reasons: reasonsOf(proposal),
    feedback: strings(proposal.feedback),
    asOf: words(proposal.as_of),
    passages: rows(proposal.passages).map((row) => ({
      id: words(row.chunk_id),
      label: words(row.label),
      text: words(row.text),
      cited: row.cited === true,
      hash: words(row.content_hash),
    })),
    chosen: strings(proposal.chosen),
  };
}

export function categoryOf({ proposal }: Item): CategoryProposal {
  return {
    path: strings(proposal.path),
    reasons: reasonsOf(proposal),
    alternatives: rows(proposal.alternatives)
      .map((row) => ({ path: strings(row.path), confidence: typeof row.confidence === "number" ? row.confidence : 0 }))
      .filter((row) => row.path.length > 0),
    disagreeing: proposal.disagreeing === true,
  };
}

/** What the item is about, in the words of its reader. */
export const titleOf = (item: Item): string => (item.kind === "answer" ? answerOf(item).question : item.title);

/** What `approve` accepts: any answer, and a document with a proposed category. */
export const canApprove = (item: Item): boolean => item.kind === "answer" || categoryOf(item).path.length > 0;

/** The item `steps` away in the list; from an item that is not in it, the first one. */
export function neighbour(items: readonly Item[], id: string | undefined, steps: number): Item | undefined {
  const at = items.findIndex((item) => item.item_id === id);
  return at < 0 ? items[0] : items[at + steps];
}

/** The item to open after a decision: the next one, or the one before the last. */
export const following = (items: readonly Item[], id: string): Item | undefined =>
  neighbour(items, id, 1) ?? neighbour(items, id, -1);

/** What the service compares a decision with: the texts of these passages as the page shows them. */
export const hashesOf = (passages: readonly Passage[], ids: readonly string[]): Record<string, string> =>
  Object.fromEntries(passages.filter(({ id }) => ids.includes(id)).map(({ id, hash }) => [id, hash]));

/** The ids of passages with another hash than in `first`, to which new passages are added. */
export function changedSince(first: Map<string, string>, passages: readonly Passage[]): string[] {
  for (const { id, hash } of passages) if (!first.has(id)) first.set(id, hash);
  return passages.filter(({ id, hash }) => first.get(id) !== hash).map(({ id }) => id);
}
