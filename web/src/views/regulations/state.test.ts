import { expect, test } from "vitest";
import { navigate, startRouter } from "../../state/router";
import {
  asOfQuery,
  citesAnother,
  dayOf,
  daysOf,
  divisionsOf,
  linkToCited,
  linkToPlace,
  placeIn,
  targetsOf,
  type Citation,
} from "./state";

const provision = (label: string, ...headings: string[]) => ({ label, headings });
const edition = (effective_from: string | null) => ({ document_id: "d", effective_from, superseded_from: null });

test("provisions lie under their parts, chapters and sections in the order of the text", () => {
  const divisions = divisionsOf([
    provision("제1조", "제1편 총칙", "제1장 목적"),
    provision("제2조", "제1편 총칙", "제1장 목적", "제1절 범위"),
    provision("제3조", "제2편 학사", "제1장 목적"),
    provision("제4조", "제2편 학사", "제1장 목적"),
    provision("부칙"),
  ]);
  expect(divisions.map(({ title }) => title)).toEqual(["제1편 총칙", "제2편 학사", ""]);
  expect(divisions[2]?.provisions.map(({ label }) => label)).toEqual(["부칙"]);
  const [chapter] = divisions[0]?.children ?? [];
  expect(chapter?.provisions.map(({ label }) => label)).toEqual(["제1조"]);
  expect(chapter?.children[0]?.provisions.map(({ label }) => label)).toEqual(["제2조"]);
  expect(chapter?.children[0]?.place).toBe("제1편 총칙/제1장 목적/제1절 범위");
  expect(divisions[1]?.children[0]?.provisions.map(({ label }) => label)).toEqual(["제3조", "제4조"]);
});

test("only whole days are sent", () => {
  expect(dayOf("2024-02-29")).toBe("2024-02-29");
  for (const value of ["", "2024", "2024-02-30", "2024-13-01", "yesterday"]) expect(dayOf(value)).toBeNull();
  expect(asOfQuery("2024-03-01")).toEqual({ as_of: "2024-03-01" });
  expect(asOfQuery("2024-3")).toEqual({});
});

test("the days of editions, the newest first, with those that the address names", () => {
  const editions = [edition("2020-01-01"), edition(null), edition("2024-03-01"), edition("2020-01-01")];
  expect(daysOf(editions)).toEqual(["2024-03-01", "2020-01-01"]);
  expect(daysOf(editions, "2021-05-05", "nonsense", "")).toEqual(["2024-03-01", "2021-05-05", "2020-01-01"]);
});

test.each([
  ["학칙 제2조제1항", "#/regulations/학칙?at=제2조&asOf=2024-03-01"],
  ["학칙 제1조–제3조의2", "#/regulations/학칙?at=제1조&asOf=2024-03-01"],
  ["학칙 제3조의2제1항제2호나목", "#/regulations/학칙?at=제3조의2&asOf=2024-03-01"],
  ["교원 인사규정 별표 1–별표 3", "#/regulations/교원 인사규정?at=별표+1&asOf=2024-03-01"],
  ["학칙 부칙 제2조", "#/regulations/학칙?at=부칙&asOf=2024-03-01"],
  ["학칙 제1장", "#/regulations/학칙?asOf=2024-03-01"],
  ["학칙", "#/regulations/학칙?asOf=2024-03-01"],
])("a citation of %s leads to its place in the text", (target, link) => {
  expect(decodeURIComponent(linkToCited(target, "2024-03-01"))).toBe(link);
});

test("a citation of a part of its own provision cites no other", () => {
  const cited = (...targets: string[]) => ({ start: 0, end: 3, text: "제1항", kind: "internal", targets }) as Citation;
  expect(citesAnother(cited("학칙 제2조"), "학칙 제2조")).toBe(false);
  expect(citesAnother(cited(), "학칙 제2조")).toBe(true);
  expect(targetsOf(cited("학칙 제1조", "학칙 제2조", "학칙 제3조"), "학칙 제2조")).toEqual([
    "학칙 제1조",
    "학칙 제3조",
  ]);
});

test("addenda have addresses of their own, and links keep whether marks are shown", () => {
  expect(placeIn({ label: "제3조", title: "휴학" })).toBe("제3조");
  expect(placeIn({ label: "부칙", title: "2024. 3. 1." })).toBe("부칙 (2024. 3. 1.)");
  location.hash = "#/regulations/x?marks=1";
  startRouter();
  expect(linkToPlace("x", "제3조")).toContain("marks=1");
  navigate("#/regulations/x");
  expect(linkToPlace("x", "제3조")).not.toContain("marks");
});
