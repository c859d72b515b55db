import { expect, test } from "vitest";
import { filled } from "./fill";

test.each([
  ["{name}을(를) 만들었습니다", "관리자 키", "관리자 키를 만들었습니다"],
  ["‘{name}’이(가) 없습니다", "학칙", "‘학칙’이 없습니다"],
  ["{name}(으)로 변경", "사내 안내서", "사내 안내서로 변경"],
  ["{name}(으)로 변경", "서울", "서울로 변경"],
  ["{name}(으)로 변경", "규정집", "규정집으로 변경"],
  ["버전 {name}은(는)", "2.0.0", "버전 2.0.0은"],
  ["버전 {name}은(는)", "1.2", "버전 1.2는"],
  ["버전 {name}(으)로", "1.1", "버전 1.1로"],
  ["키({name})과(와)", "관리: 운영까지", "키(관리: 운영까지)와"],
  ["{name}이(가) 답했습니다", "llama", "llama이(가) 답했습니다"],
])("%s with %s", (text, name, expected) => {
  expect(filled(text, { name }, "ko")).toBe(expected);
});

test("a number has the unit after it", () => {
  expect(filled("{n|개 문서|개 문서}", { n: 2 }, "ko")).toBe("개 문서");
  expect(filled("{n} {n|document|documents}", { n: 1200 }, "en")).toBe("1,200 documents");
});
