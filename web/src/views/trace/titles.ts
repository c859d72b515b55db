/** What an answer is called where its question is not stored, and what a document is called that is gone. */
import { t } from "./text";
import type { Trace, TraceLine } from "./trace-facts";

const NAMED = 2;

/** The question, or else the documents that the answer cites. */
export function titleOf({ question, titles }: Pick<TraceLine, "question" | "titles">): string {
  if (question || titles.length === 0) return question || t("trace.noCitations");
  const named = titles.slice(0, NAMED).map((title) => title ?? t("documents.gone"));
  return named.join(", ") + (titles.length > NAMED ? ` +${titles.length - NAMED}` : "");
}

/** The same of a whole trace. */
export function titleOfTrace({ question, passages, titles }: Pick<Trace, "question" | "passages" | "titles">): string {
  const cited = new Set(passages.flatMap((each) => (each.cited ? [each.document_id] : [])));
  return titleOf({ question, titles: [...cited].map((id) => titles[id] ?? null) });
}

export const deletedName = (id: string): string => `${t("documents.gone")} ${id.slice(0, 8)}`;
