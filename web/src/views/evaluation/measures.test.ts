import { expect, test } from "vitest";
import { EXAMPLE, judgedOf } from "./judged";
import { compareRuns, directionOf, shortfallOf, valueOf, valueOver, worstFirst } from "./measures";
import { pointsOf } from "./points";
import type { Row, RunLine } from "./state";

const row = (id: string, ratios: Row["ratios"]): Row => ({ id, question: `Question ${id}?`, ratios, details: {} });
const ALL = { measure: "", words: "", faults: false };

test("a value is numerator by denominator, and none where the question does not count", () => {
  expect(valueOf(row("1", { precision: [1, 4] }), "precision")).toBe(0.25);
  expect(valueOf(row("1", { precision: [0, 0] }), "precision")).toBeNull();
  expect(valueOf(row("1", {}), "precision")).toBeNull();
});

test("over questions the sums are divided, so a question with more quotations weighs more", () => {
  expect(valueOver([row("1", { precision: [1, 4] }), row("2", { precision: [1, 1] })], "precision")).toBe(0.4);
  expect(valueOver([], "precision")).toBeNull();
});

test("a measure of which less is better falls short by its value, a neutral one never", () => {
  expect(["sufficient", "answer.wrong", "sentences"].map(directionOf)).toEqual(["more", "less", "neither"]);
  expect(shortfallOf(row("1", { "answer.wrong": [1, 1] }))).toBe(1);
  expect(shortfallOf(row("1", { sufficient: [1, 1], sentences: [9, 1] }))).toBe(0);
  expect(shortfallOf(row("1", { sentences: [9, 1] }))).toBeNull();
});

test("the worst questions come first, unjudged ones last, and filters narrow them", () => {
  const rows = [
    row("good", { sufficient: [1, 1] }),
    row("unjudged", { sufficient: [0, 0] }),
    row("bad", { sufficient: [0, 1], "answer.wrong": [1, 1] }),
    row("half", { sufficient: [0, 1], "answer.wrong": [0, 1] }),
  ];
  const ids = (filter: Partial<typeof ALL>) => worstFirst(rows, { ...ALL, ...filter }).map(({ id }) => id);
  expect(ids({})).toEqual(["bad", "half", "good", "unjudged"]);
  expect(ids({ faults: true })).toEqual(["bad", "half"]);
  expect(ids({ measure: "answer.wrong" })).toEqual(["bad", "half"]);
  expect(ids({ words: "QUESTION GOOD" })).toEqual(["good"]);
});

test("two runs are compared over their common questions, those that got worse first", () => {
  const before = [
    row("a", { sufficient: [1, 1], "answer.wrong": [0, 1] }),
    row("b", { sufficient: [0, 1], "answer.wrong": [1, 1] }),
    row("c", { sufficient: [1, 1], "answer.wrong": [0, 1] }),
    row("only before", { sufficient: [1, 1] }),
  ];
  const now = [
    row("b", { sufficient: [1, 1], "answer.wrong": [0, 1] }),
    row("a", { sufficient: [0, 1], "answer.wrong": [1, 1] }),
    row("c", { sufficient: [0, 1], "answer.wrong": [0, 1] }),
    row("only now", { sufficient: [0, 1] }),
  ];
  const comparison = compareRuns({ rows: now }, { rows: before });
  expect(comparison.matched).toBe(3);
  expect(comparison.unmatched).toBe(2);
  expect(comparison.changed.map((each) => [each.now.id, each.gain])).toEqual([
    ["a", -2],
    ["c", -1],
    ["b", 2],
  ]);
  expect(comparison.measures.map(({ measure, verdict }) => [measure, verdict])).toEqual([
    ["sufficient", "worse"],
    ["answer.wrong", "same"],
  ]);
  expect(comparison.measures[0]?.difference).toBeCloseTo(-1 / 3);
});

test("judged questions are read from lines or a list, and the first mistake is named", () => {
  expect(judgedOf(EXAMPLE)).toMatchObject({ questions: [{ id: "1" }, { id: "2", answerable: false }], mistake: 0 });
  expect(judgedOf('\uFEFF{"id": "1"}\r\n\n{"id": "2"}\n').questions).toEqual([{ id: "1" }, { id: "2" }]);
  expect(judgedOf('[{"id": "1"}, {"id": "2"}]').questions).toHaveLength(2);
  expect(judgedOf('{"id": "1"}\n\n{"id": "2"').mistake).toBe(3);
  expect(judgedOf('{"id": "1"}\n"2"').mistake).toBe(2);
  expect(judgedOf('[{"id": "1"}, 2]').mistake).toBe(2);
  expect(judgedOf("[1").mistake).toBe(1);
  expect(judgedOf(" ")).toEqual({ questions: [], mistake: 0 });
});

test("runs without a common question have no comparison", () => {
  const comparison = compareRuns({ rows: [row("a", {})] }, { rows: [row("b", {})] });
  expect(comparison).toEqual({ measures: [], changed: [], matched: 0, unmatched: 2 });
});

test("points of a plot go from the oldest to the newest run within the plot", () => {
  const run = (day: number, value: number): RunLine => ({
    run_id: String(day),
    created_at: `2026-11-0${day}T00:00:00+00:00`,
    kind: "answers",
    dataset: "samples",
    version: "1.0",
    settings: {},
    questions: 3,
    measures: { sufficient: { value, low: value - 0.1, high: value + 0.1 }, wrong: null },
  });
  const plot = pointsOf([run(3, 0.8), run(1, 0.4), run(2, 0.6)], "sufficient");
  expect(plot.points.map(({ run: { run_id } }) => run_id)).toEqual(["1", "2", "3"]);
  expect(plot.points.map(({ x }) => x)).toEqual([0, 0.5, 1]);
  expect(plot.bottom).toBeCloseTo(0.3);
  expect(plot.top).toBeCloseTo(0.9);
  for (const { y, low, high } of plot.points) {
    expect(low).toBeLessThan(y);
    expect(high).toBeGreaterThan(y);
  }
  expect(pointsOf([run(1, 0.4)], "sufficient").points.map(({ x }) => x)).toEqual([0.5]);
  expect(pointsOf([run(1, 0.4)], "answer.wrong").points).toEqual([]);
});
