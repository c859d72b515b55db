/** The address of the case memory: #/cases?status=archived&stale=1, #/cases?q=…, #/cases/CASE. */
import { oneOf, queryState, text } from "../../state/query";
import type { components } from "../../api/schema";

export const METHODS = ["semantic", "cosine", "jaccard", "euclidean"] as const;
export const STATUSES = ["all", "active", "archived"] as const;
export const STALENESS = ["all", "stale", "current"] as const;
export const PAGE = 50;

export const address = queryState({
  status: oneOf(STATUSES, "all"),
  stale: oneOf(STALENESS, "all"),
  after: text(),
  /** A question whose similar cases are shown instead of the list. */
  q: text(),
  method: oneOf(METHODS, "semantic"),
});

export type ListedCase = components["schemas"]["ListedCaseShape"];
/** A case by its id; `stale` is null when the service was not asked about its passages. */
export type ShownCase = Omit<ListedCase, "stale"> & { stale: boolean | null };

/** The filters as the service reads them. */
export function filtersOf({ status, stale }: { status: string; stale: string }) {
  return {
    status: status === "active" || status === "archived" ? status : undefined,
    stale: stale === "all" ? undefined : stale === "stale",
  } as const;
}

/** Where a list that begins near the case has it among the first: before its id comes its id without the last letter. */
export const justBefore = (id: string): string | undefined => [...id].slice(0, -1).join("") || undefined;

/** Document and position of a passage; null for an id of another form. */
export function placeOf(passage: string): { document: string; ordinal: number } | null {
  const match = /^(.+):(\d{1,9})$/.exec(passage);
  return match?.[1] && match[2] ? { document: match[1], ordinal: Number(match[2]) } : null;
}
