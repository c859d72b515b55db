/** The address of the evaluation: #/evaluation?set=…&after=…, #/evaluation/RUN?measure=…&words=…, #/evaluation/RUN?against=RUN. */
import { flag, integer, queryState, text } from "../../state/query";
import type { components } from "../../api/schema";

/** Runs of a page of the list, and the questions that are shown at first. */
export const PAGE = 50;

export const address = queryState({
  /** The set whose measures are plotted, as `setOf` writes it. */
  set: text(),
  after: text(),
  /** The run that a run is compared with. */
  against: text(),
  measure: text(),
  words: text(),
  faults: flag(),
  shown: integer(PAGE),
});

export type RunLine = components["schemas"]["RunLine"];
export type Run = components["schemas"]["RunShape"];
export type Row = components["schemas"]["RunRowShape"];

/** Runs with the same value are of one set and have the same measures. */
export const setOf = ({ kind, dataset }: Pick<RunLine, "kind" | "dataset">): string => `${kind} · ${dataset}`;
