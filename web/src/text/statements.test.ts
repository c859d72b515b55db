import { afterEach, expect, test } from "vitest";
import { language } from "./language";
import { partNames } from "./part-names";
import { sayStatement } from "./statements";

const SEARCHED = { code: "searched", text: "Searched: 5,040 passages.", values: { passages: "5,040" } };

afterEach(() => (language.value = "en"));

test("a statement is said in the language of the page", () => {
  expect(sayStatement(SEARCHED)).toEqual({ text: SEARCHED.text, lang: "en" });
  language.value = "ko";
  expect(sayStatement(SEARCHED)).toEqual({ text: "볼 수 있는 구절 5,040개를 찾아보았습니다.", lang: "ko" });
});

test("a code of a newer service, and a note in the language of the question, stay as they are", () => {
  language.value = "ko";
  expect(sayStatement({ ...SEARCHED, code: "newer" })).toEqual({ text: SEARCHED.text, lang: "en" });
  expect(sayStatement({ code: "", text: "학칙 제3조: 바뀝니다.", values: {} }).lang).toBe("ko");
});

test("parts that were left out have names in both languages", () => {
  expect(partNames(["llm", "vector", "other"])).toBe("language model, search by meaning, other");
  language.value = "ko";
  expect(partNames(["llm"])).toBe("언어 모델");
});
