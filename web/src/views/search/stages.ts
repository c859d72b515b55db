/** What each stage of the search did with a hit: its score, its rank, and the move to the next stage. */
import type { components } from "../../api/schema";

export type Hit = components["schemas"]["Passage"];
export type Explanation = components["schemas"]["ExplanationShape"];
export type StageName = "lexical" | "vector" | "fused" | "articles" | "rerank";

export interface Stage {
  name: StageName;
  /** In [0, 1]; null where the stage did not judge the passage. */
  score: number | null;
  /** From 1; null where it is not in the list of the stage. */
  rank: number | null;
  /** Places gained since fusion (negative: lost). */
  move: number | null;
}

const SAME = 1e-9;

/** The stages of a hit at `position` (from 1) of the results. */
export function stagesOf(hit: Hit, position: number): Stage[] {
  const explained = hit.explanation;
  if (!explained) return [];
  const stages = stagesOfExplanation(explained);
  const ordered = explained.fused_rank === null ? null : explained.fused_rank - position;
  const articles = explained.fused === null || Math.abs(hit.hybrid_score - explained.fused) > SAME;
  const last: Stage[] = [];
  if (articles) last.push({ name: "articles", score: hit.hybrid_score, rank: null, move: null });
  last.push({ name: "rerank", score: hit.rerank_score > 0 ? hit.rerank_score : null, rank: position, move: ordered });
  return [...stages, ...last];
}

/** The first three stages, which also a passage has that is not among the results. */
export function stagesOfExplanation(explained: Explanation): Stage[] {
  return [
    { name: "lexical", score: explained.bm25_score, rank: explained.lexical_rank, move: null },
    { name: "vector", score: explained.cosine, rank: explained.vector_rank, move: null },
    { name: "fused", score: explained.fused, rank: explained.fused_rank, move: null },
  ];
}

/** The words of the query that do not occur in the passage. */
export function missingWords(query: string, matched: readonly string[]): string[] {
  const found = new Set(matched.map(fold));
  const words = query.split(/\s+/).map((word) => word.replace(/^[.,;:!?"'“”()[\]]+|[.,;:!?"'“”()[\]]+$/g, ""));
  return [...new Set(words)].filter((word) => word !== "" && !found.has(fold(word)));
}

/** Whether keywords found the passage although it has no word of the query: words that the lexicon added. */
export const foundByLexicon = (explained: Explanation): boolean =>
  explained.terms.length === 0 && explained.bm25 > 0 && explained.lexical_rank !== null;

const fold = (word: string) => word.normalize("NFC").toLocaleLowerCase();
