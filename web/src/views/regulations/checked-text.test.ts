import { expect, test } from "vitest";
import { isWrong, sentencesOf, type VerifiedCitation, type VerifiedQuotation } from "./checked-text";

const at = (text: string, found: string) => {
  const start = Array.from(text.slice(0, text.indexOf(found))).length;
  return { start, end: start + Array.from(found).length, text: found };
};
const citation = (text: string, found: string): VerifiedCitation => ({
  ...at(text, found),
  status: "exists",
  target: found,
  range: null,
  title: null,
  reason: "",
});
const quotation = (text: string, found: string): VerifiedQuotation => ({
  ...at(text, found),
  status: "verbatim",
  target: "학칙 제2조",
});
const texts = (text: string, citations: VerifiedCitation[] = [], quotations: VerifiedQuotation[] = []) =>
  sentencesOf(text, citations, quotations).map((sentence) => sentence.text.trim());

test("a text is cut after sentences and at line breaks, and not inside a date", () => {
  expect(texts("휴학은 된다. 학칙 제2조.  끝!\n\n2024. 3. 1. 개정\n")).toEqual([
    "휴학은 된다.",
    "학칙 제2조.",
    "끝!",
    "2024. 3. 1. 개정",
  ]);
  expect(texts("“그렇다.” 다음. (끝이다.) 또")).toEqual(["“그렇다.”", "다음.", "(끝이다.)", "또"]);
  expect(texts(" \n ")).toEqual([]);
});

test("a quotation of several sentences stays in one", () => {
  const text = "🙂 학칙 제2조는 “휴학은 된다. 복학도 된다.”이다. 그렇다.";
  expect(texts(text, [], [quotation(text, "휴학은 된다. 복학도 된다.")])).toEqual([
    "🙂 학칙 제2조는 “휴학은 된다. 복학도 된다.”이다.",
    "그렇다.",
  ]);
});

test("each sentence has its citations and quotations, with offsets in code points of the whole text", () => {
  const text = "🙂 처음. 🙂 학칙 제1조이다. 없다. 학칙 제2조는 “나의 글이다”이다.";
  const found = sentencesOf(
    text,
    [citation(text, "학칙 제1조"), citation(text, "학칙 제2조")],
    [quotation(text, "나의 글이다")],
  );
  expect(found.map(({ citations, quotations }) => [citations.length, quotations.length])).toEqual([
    [0, 0],
    [1, 0],
    [0, 0],
    [1, 1],
  ]);
  for (const { start, text: written } of found) {
    const points = Array.from(text);
    expect(points.slice(start, start + Array.from(written).length).join("")).toBe(written);
  }
});

test("what exists and is verbatim needs no look", () => {
  const text = "학칙 제1조";
  expect(isWrong(citation(text, text))).toBe(false);
  expect(isWrong({ ...citation(text, text), status: "unclear" })).toBe(true);
  expect(isWrong(quotation(text, text))).toBe(false);
  expect(isWrong({ ...quotation(text, text), status: "unchecked" })).toBe(true);
});
