import { expect, test } from "vitest";
import { declinedFrom } from "./declined";

const START = "Too little evidence: at best a passage holds 23% of what the question asks about. ";

test("the reason of a declined answer in parts", () => {
  const reason = `${START}Searched: 5,040 passages that you may see. Nowhere in them: "dental", "offer". Say it in other words, or add documents that tell of it. Nearest headings: Leave, Unpaid leave; 학칙 제12조(휴학기간).`;
  expect(declinedFrom(reason)).toEqual({
    searched: "5,040",
    unknown: ["dental", "offer"],
    nearest: ["Leave, Unpaid leave", "학칙 제12조(휴학기간)"],
  });
});

test("a reason without these sentences says nothing", () => {
  expect(declinedFrom("The time limit was reached.")).toEqual({ searched: "", unknown: [], nearest: [] });
});
