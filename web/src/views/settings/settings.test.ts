import { expect, test } from "vitest";
import { matching } from "./matching";
import { todo } from "./todo";

const row = (name: string, description: string, isDefault = true) => ({
  name,
  environment: `DTRAG_${name.toUpperCase()}`,
  value: "x",
  default: "x",
  is_default: isDefault,
  secret: false,
  description,
  change: null,
  fixed: false,
  changed_by: null,
  changed_at: null,
});
const ROWS = [row("port", "Port of the service."), row("llm", "Language model.", false)];

test("all words must occur, in any case", () => {
  expect(matching(ROWS, "PORT service", false)).toEqual([ROWS[0]]);
  expect(matching(ROWS, "port model", false)).toEqual([]);
  expect(matching(ROWS, " ", false)).toEqual(ROWS);
});

test("only changed ones", () => {
  expect(matching(ROWS, "", true)).toEqual([ROWS[1]]);
});

test("each part that can fail says what to do", () => {
  const parts = ["database", "index", "filter", "embedder", "language model", "disk", "case memory"];
  for (const part of parts) expect(todo(part)).toMatch(/\.$/);
  expect(todo("part of a newer service")).toBeUndefined();
});
