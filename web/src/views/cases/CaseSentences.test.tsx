import { expect, test } from "vitest";
import { mount } from "../../test/setup";
import { CaseSentences } from "./CaseSentences";
import type { ShownCase } from "./state";

const CASE: ShownCase = {
  case_id: "answer-1",
  query: "How long is the leave?",
  category_path: ["HR"],
  content: "Leave",
  quality_score: 0.5,
  metadata: {},
  usage_count: 0,
  success_rate: 0,
  upvotes: 0,
  downvotes: 0,
  passages: ["d:0"],
  origin: "answer",
  status: "active",
  as_of: null,
  created_at: "2026-03-02",
  updated_at: "2026-03-02",
  stale: false,
  stale_passages: [],
  reuse: "reused",
  supporters: 0,
  supported_at: null,
  right: 0,
  wrong: 0,
};

function sentences(more: Partial<ShownCase>): string[] {
  mount(<CaseSentences shown={{ ...CASE, ...more }} />);
  return [...document.querySelectorAll("li")].map((item) => item.textContent.trim());
}

test("a new case is used, has no confirmation yet, and says where it comes from", () => {
  expect(sentences({})).toEqual([
    "When this is asked again, Ask says that it was answered before, and prefers the passages below.",
    "No other person has confirmed it yet.",
    "It was made from an answer on Mar 2, 2026.",
  ]);
});

test("votes, later answers and the day of the texts are named with their numbers", () => {
  const voted = { supporters: 3, supported_at: "2026-04-05", downvotes: 1, right: 7, wrong: 2 };
  expect(sentences({ ...voted, origin: "review", as_of: "2024-01-01" }).slice(1)).toEqual([
    "3 people confirmed it, the last on Apr 5, 2026. 1 vote says that it is wrong.",
    "Later votes and answers agreed 7 of 9 times.",
    "A reviewer decided it on Mar 2, 2026. It is about the texts of Jan 1, 2024.",
  ]);
});

test.each([
  ["archived", "restore it to use it again"],
  ["stale", "has changed or is gone"],
  ["no_passages", "It quotes no passage."],
  ["collection", "Too many of all remembered answers were wrong."],
  ["wrong", "It was wrong more often than right"],
  ["unconfirmed", "no other person has confirmed them"],
  ["thumbs_down", "A person found it wrong. Decide it in Review"],
  ["quality", "More votes are against it than for it."],
] as const)("a case that is not used because of %s says so and what to do", (reuse, reason) => {
  const [first] = sentences({ reuse });
  expect(first).toContain("It is not used at the moment.");
  expect(first).toContain(reason);
  expect(document.querySelector("a")?.getAttribute("href") ?? null).toBe(reuse === "thumbs_down" ? "#/review" : null);
});
