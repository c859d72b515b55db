import { expect, test } from "vitest";
import { blocksOf } from "./blocks";
import { spanOf, spansOf, type PassageSpan } from "./state";

const passage = (ordinal: number, start: number, end: number): PassageSpan => ({
  chunk_id: `d:${ordinal}`,
  ordinal,
  start,
  end,
  breadcrumb: [],
  page: null,
  metadata: {},
});

test("blocks joined are the text, with passages that overlap and text between them", () => {
  const text = "😀제목 본문입니다 끝";
  const blocks = blocksOf(text, 10, 21, [passage(1, 16, 19), passage(0, 14, 17)]);
  expect(blocks.map((block) => block.text).join("")).toBe(text);
  expect(blocks.map((block) => [block.start, block.passage?.ordinal])).toEqual([
    [10, undefined],
    [14, 0],
    [17, 1],
    [19, undefined],
  ]);
});

test("a passage that begins before the part, or ends after it, is cut to it", () => {
  expect(blocksOf("abc", 5, 8, [passage(0, 0, 6), passage(1, 6, 90)]).map((block) => block.text)).toEqual(["a", "bc"]);
});

test("marked parts of an address: what is no span is left out", () => {
  const state = { quote: ["3-9", "9-3", "x"], context: ["0-2"], answer: [] };
  expect(spansOf(state)).toEqual([
    { start: 3, end: 9, kind: "quote" },
    { start: 0, end: 2, kind: "context" },
  ]);
  expect(spanOf("1-1", "quote")).toBeNull();
});
