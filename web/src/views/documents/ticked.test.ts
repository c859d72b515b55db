import { expect, test } from "vitest";
import { MOST, withTicked } from "./ticked";

const numbered = (count: number) => Array.from({ length: count }, (_, number) => `d${number}`);

test("ticks are added and taken away, each document once", () => {
  const two = withTicked(new Set(["a"]), ["b", "a"], true);
  expect([...two]).toEqual(["a", "b"]);
  expect([...withTicked(two, ["a", "x"], false)]).toEqual(["b"]);
});

test("more than one change may have is not ticked", () => {
  const full = withTicked(new Set(["first"]), numbered(MOST + 5), true);
  expect(full.size).toBe(MOST);
  expect(full.has("first")).toBe(true);
});
