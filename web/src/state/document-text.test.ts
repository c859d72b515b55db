import { expect, test } from "vitest";
import { joinParts, nextWindow, windowAround, type TextPart } from "./document-text";

const part = (start: number, end: number, passages: [string, number, number][] = []) =>
  ({
    start,
    end,
    characters: 1_000_000,
    text: "x".repeat(end - start),
    passages: passages.map(([chunk_id, from, to]) => ({ chunk_id, start: from, end: to })),
  }) as unknown as TextPart;

test("each further window is fetched alone, so that it never exceeds what the service gives at once", () => {
  const shown = part(300_000, 700_000);
  expect(nextWindow(shown, "after", 20_000)).toEqual({ start: 700_000, end: 720_000 });
  expect(nextWindow(shown, "before", 20_000)).toEqual({ start: 280_000, end: 300_000 });
  expect(nextWindow(part(5, 999_990), "before", 20_000)).toEqual({ start: 0, end: 5 });
  expect(nextWindow(part(5, 999_990), "after", 20_000)).toEqual({ start: 999_990, end: 1_000_000 });
});

test("windows are joined, and a passage on their border is there once", () => {
  const whole = joinParts(part(0, 10, [["a", 0, 4], ["b", 4, 10]]), part(10, 30, [["b", 8, 14], ["c", 14, 30]])); // prettier-ignore
  expect([whole.start, whole.end, whole.text.length]).toEqual([0, 30, 30]);
  expect(whole.passages).toMatchObject([
    { chunk_id: "a", start: 0, end: 4 },
    { chunk_id: "b", start: 4, end: 14 },
    { chunk_id: "c", start: 14, end: 30 },
  ]);
});

test("the first window holds the quotation, also when other marks are far away", () => {
  const quote = { start: 500_000, end: 500_100 };
  expect(windowAround(quote, [{ start: 499_000, end: 499_100 }], 4000)).toEqual({ start: 495_000, end: 504_100 });
  const far = windowAround(quote, [{ start: 10, end: 20 }, { start: 900_000, end: 900_010 }], 4000); // prettier-ignore
  expect(far.end - far.start).toBeLessThanOrEqual(200_000);
  expect(far.start).toBeLessThan(quote.start);
  expect(far.end).toBeGreaterThan(quote.end);
});
