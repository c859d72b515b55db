/** The address of the case memory: #/cases?status=archived&stale=1, #/cases?q=…, #/cases/CASE. */
import { oneOf, queryState, text } from "../../state/query";
import type { components } from "../../api/schema";

export const STATUSES = ["all", "active", "archived"] as const;
export const STALENESS = ["all", "stale", "current"] as const;
export const PAGE = 50;

export const address = queryState({
  status: oneOf(STATUSES, "all"),
  stale: oneOf(STALENESS, "all"),
  after: text(),
  /** A question whose similar cases are shown instead of the list. */
  q: text(),
});

export type ListedCase = components["schemas"]["ListedCaseShape"];
export type ShownCase = components["schemas"]["CaseShape"];

/** The filters as the service reads them. */
export function filtersOf({ status, stale }: { status: string; stale: string }) {
  return {
    status: status === "active" || status === "archived" ? status : undefined,
    stale: stale === "all" ? undefined : stale === "stale",
  } as const;
}

/** Document and position of a passage; null for an id of another form. */
export function placeOf(passage: string): { document: string; ordinal: number } | null {
  const match = /^(.+):(\d{1,9})$/.exec(passage);
  return match?.[1] && match[2] ? { document: match[1], ordinal: Number(match[2]) } : null;
}
