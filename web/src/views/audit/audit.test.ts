import { expect, test } from "vitest";
import { isFiltered, isReversed, NO_FILTERS, parametersOf } from "./state";

test("empty fields are not sent", () => {
  expect(parametersOf(NO_FILTERS)).toEqual({ limit: 100 });
  expect(isFiltered(NO_FILTERS)).toBe(false);
});

test("days begin and end in the zone of the browser", () => {
  const { since, until } = parametersOf({ ...NO_FILTERS, since: "2030-01-31", until: "2030-01-31" });
  expect(new Date(until ?? "").getTime() - new Date(since ?? "").getTime()).toBe(24 * 3600 * 1000 - 1);
});

test("a page of older lines is no filter", () => {
  expect(isFiltered({ ...NO_FILTERS, before: 5 })).toBe(false);
  expect(isFiltered({ ...NO_FILTERS, actor: "HR desk", before: 5 })).toBe(false);
  expect(isFiltered({ ...NO_FILTERS, actor: "HR desk" })).toBe(true);
});

test("a day that is none is left out", () => {
  expect(parametersOf({ ...NO_FILTERS, since: "yesterday" }).since).toBeUndefined();
});

test("a range whose first day is after the last one is reversed; one day is a range", () => {
  expect(isReversed({ since: "2030-02-01", until: "2030-01-31" })).toBe(true);
  expect(isReversed({ since: "2030-01-31", until: "2030-01-31" })).toBe(false);
  expect(isReversed({ since: "2030-01-31", until: "" })).toBe(false);
});
