/** Values of single questions: which are worst, and what differs between two runs. No resampling happens here. */
import type { Row, Run } from "./state";

/** As in dtrag.core.evaluation_run. */
const LOWER_IS_BETTER = new Set([
  ...["answer.wrong", "review.wrong", "abstain.wrong", "unanswerable.marked", "unanswerable.answered"],
  ...["declined_wrongly", "refused_wrongly", "answered_unanswerable", "degraded", "unfinished"],
  ...["repeat misled", "other misled", "other shown"],
]);
const NEUTRAL = new Set(["sentences", "answer.share", "review.share", "abstain.share", "repeat shown"]);
const SAME = 1e-9;

export type Direction = "more" | "less" | "neither";

export function directionOf(measure: string): Direction {
  if (NEUTRAL.has(measure)) return "neither";
  return LOWER_IS_BETTER.has(measure) ? "less" : "more";
}

/** The value of a measure for one question; null where the question does not count for it. */
export function valueOf({ ratios }: Pick<Row, "ratios">, measure: string): number | null {
  const [numerator, denominator] = ratios[measure] ?? [0, 0];
  return denominator ? numerator / denominator : null;
}

/** The value of a measure over questions: the sum of the numerators by that of the denominators. */
export function valueOver(rows: readonly Row[], measure: string): number | null {
  let [numerator, denominator] = [0, 0];
  for (const { ratios } of rows) {
    const [above, below] = ratios[measure] ?? [0, 0];
    numerator += above;
    denominator += below;
  }
  return denominator ? numerator / denominator : null;
}

/** How far a question is from the best value: 0 is perfect, 1 the worst; null where nothing is judged. */
export function shortfallOf(row: Row, measure = ""): number | null {
  const names = measure ? [measure] : Object.keys(row.ratios);
  const parts = names.flatMap((name) => {
    const value = valueOf(row, name);
    const direction = directionOf(name);
    if (value === null || direction === "neither") return [];
    return [Math.min(1, Math.max(0, direction === "less" ? value : 1 - value))];
  });
  return parts.length ? parts.reduce((sum, part) => sum + part, 0) / parts.length : null;
}

export interface Filter {
  measure: string;
  words: string;
  faults: boolean;
}

/** The questions that match, the worst first. With a measure: those that count for it. */
export function worstFirst(rows: readonly Row[], { measure, words, faults }: Filter): Row[] {
  const searched = words.trim().toLowerCase();
  return rows
    .map((row) => ({ row, shortfall: shortfallOf(row, measure) }))
    .filter(({ row }) => !measure || valueOf(row, measure) !== null)
    .filter(({ row }) => !searched || `${row.id} ${row.question}`.toLowerCase().includes(searched))
    .filter(({ shortfall }) => !faults || (shortfall ?? 0) > SAME)
    .sort((one, other) => (other.shortfall ?? -1) - (one.shortfall ?? -1))
    .map(({ row }) => row);
}

export interface Change {
  measure: string;
  before: number;
  now: number;
  difference: number;
  verdict: "better" | "worse" | "same" | "different";
}

function changeOf(measure: string, before: number | null, now: number | null): Change[] {
  if (before === null || now === null) return [];
  const difference = now - before;
  return [{ measure, before, now, difference, verdict: verdictOf(measure, difference) }];
}

function verdictOf(measure: string, difference: number): Change["verdict"] {
  const direction = directionOf(measure);
  if (Math.abs(difference) <= SAME) return "same";
  if (direction === "neither") return "different";
  return difference > 0 === (direction === "more") ? "better" : "worse";
}

export interface ChangedQuestion {
  now: Row;
  before: Row;
  changes: Change[];
  /** The sum of the differences; negative when the question got worse. */
  gain: number;
}

export interface Comparison {
  measures: Change[];
  /** Questions with another value of a measure, those that got worse first. */
  changed: ChangedQuestion[];
  /** Questions of both runs, and those of only one. */
  matched: number;
  unmatched: number;
}

/** The run against an earlier one, over the questions with the same id and text. */
export function compareRuns(run: Pick<Run, "rows">, against: Pick<Run, "rows">): Comparison {
  const key = (row: Row) => JSON.stringify([row.id, row.question]);
  const earlier = new Map(against.rows.map((row) => [key(row), row]));
  const pairs = run.rows.flatMap((now) => {
    const before = earlier.get(key(now));
    return before ? [{ now, before }] : [];
  });
  const names = [...new Set(pairs.flatMap(({ now }) => Object.keys(now.ratios)))];
  const [rows, others] = [pairs.map(({ now }) => now), pairs.map(({ before }) => before)];
  const changed = pairs
    .map(({ now, before }) => {
      const changes = names
        .flatMap((name) => changeOf(name, valueOf(before, name), valueOf(now, name)))
        .filter(({ verdict }) => verdict !== "same");
      return { now, before, changes, gain: gainOf(changes) };
    })
    .filter(({ changes }) => changes.length > 0)
    .sort((one, other) => one.gain - other.gain);
  return {
    measures: names.flatMap((name) => changeOf(name, valueOver(others, name), valueOver(rows, name))),
    changed,
    matched: pairs.length,
    unmatched: run.rows.length + against.rows.length - 2 * pairs.length,
  };
}

function gainOf(changes: readonly Change[]): number {
  let gain = 0;
  for (const { difference, verdict } of changes) {
    if (verdict === "better") gain += Math.abs(difference);
    if (verdict === "worse") gain -= Math.abs(difference);
  }
  return gain;
}
