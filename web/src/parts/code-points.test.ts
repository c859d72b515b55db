import { expect, test } from "vitest";
import { pointsIn, segments, slicePoints } from "./code-points";

const text = "😀가 나👩‍👧x";

test("offsets are code points", () => {
  expect(slicePoints(text, 1, 2)).toBe("가");
  expect(slicePoints(text, 3, 5)).toBe("나👩");
  expect(pointsIn(text)).toBe(Array.from(text).length);
});

test("pieces give the text again, and each knows its spans", () => {
  const pieces = segments(text, [
    { start: 1, end: 4, kind: "quote" },
    { start: 3, end: 5, kind: "answer" },
    { start: 90, end: 99, kind: "quote" },
  ]);
  expect(pieces.map((piece) => piece.text).join("")).toBe(text);
  const quoted = pieces.filter((piece) => piece.kinds.includes("quote")).map((piece) => piece.text);
  expect(quoted.join("")).toBe("가 나");
  expect(pieces.find((piece) => piece.start === 3)?.kinds).toEqual(["quote", "answer"]);
});

test("a part of a document keeps the offsets of the document", () => {
  const pieces = segments("나x", [{ start: 4, end: 5, kind: "quote" }], 3);
  expect(pieces).toEqual([
    { text: "나", start: 3, kinds: [] },
    { text: "x", start: 4, kinds: ["quote"] },
  ]);
});
