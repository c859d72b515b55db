import { beforeEach, expect, test } from "vitest";
import { navigate } from "../../state/router";
import { mount } from "../../test/setup";
import { BookGroups } from "./BookGroups";

const row = (name: string, ...headings: string[]) => ({
  name,
  headings,
  code: "",
  document_id: name,
  articles: 1,
  appendices: 0,
  addenda: 0,
});
const ROWS = [
  row("구매규정", "제10편 재무"),
  row("연구규정", "제2편 행정", "제1장 일반"),
  row("학칙", "제2편 행정"),
  row("정관"),
];
const summaries = (list: HTMLElement) =>
  [...list.querySelectorAll("summary span[lang]")].map((name) => name.textContent);

beforeEach(() => navigate("#/regulations"));

test("regulations are folded below the headings of their book, in its order; others stay in the list", () => {
  const list = mount(<BookGroups rows={ROWS} />);
  expect(summaries(list)).toEqual(["제2편 행정", "제10편 재무"]);
  expect([...list.querySelectorAll("li a")].map((link) => link.textContent)).toEqual(["정관"]);
});

test("a search opens the groups", () => {
  navigate("#/regulations?find=규정");
  const list = mount(<BookGroups rows={ROWS.slice(0, 3)} />);
  expect(summaries(list)).toEqual(["제2편 행정", "제1장 일반", "제10편 재무"]);
  expect([...list.querySelectorAll("li a")].map((link) => link.textContent)).toEqual(["연구규정", "학칙", "구매규정"]);
});
