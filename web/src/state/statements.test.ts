import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { language } from "../text/language";
import { partNames } from "../text/part-names";
import { korean, sayStatement } from "./statements";

const SEARCHED = { code: "searched", text: "Searched: 5,040 passages.", values: { passages: "5,040" } };

beforeEach(() => (korean.value = { searched: "볼 수 있는 구절 {passages}개를 찾아보았습니다." }));
afterEach(() => {
  language.value = "en";
  vi.unstubAllGlobals();
});

test("a statement is said in the language of the page", () => {
  expect(sayStatement(SEARCHED)).toEqual({ text: SEARCHED.text, lang: "en" });
  language.value = "ko";
  expect(sayStatement(SEARCHED)).toEqual({ text: "볼 수 있는 구절 5,040개를 찾아보았습니다.", lang: "ko" });
});

test("the Korean texts are fetched once, when the first statement is shown, and again after a failure", async () => {
  korean.value = null;
  language.value = "ko";
  const fetched = vi.fn().mockResolvedValueOnce(new Response("{}", { status: 503 }));
  vi.stubGlobal("fetch", fetched);
  expect(sayStatement(SEARCHED)).toEqual({ text: SEARCHED.text, lang: "en" });
  sayStatement(SEARCHED);
  expect(fetched).toHaveBeenCalledTimes(1);
  await vi.waitFor(() => {
    sayStatement(SEARCHED);
    expect(fetched).toHaveBeenCalledTimes(2);
  });
  fetched.mockClear();
  fetched.mockResolvedValueOnce(Response.json({ searched: "{passages}개" }));
  await vi.waitFor(() => {
    expect(sayStatement(SEARCHED).text).toBe("5,040개");
  });
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
