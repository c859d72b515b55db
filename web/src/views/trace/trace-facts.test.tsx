import { expect, test } from "vitest";
import { mount } from "../../test/setup";
import { DebateColumns } from "./DebateColumns";
import { debateOf, flows, otherFacts, placed, spanOf, toolCalls, usageOf, type Call, type Step } from "./trace-facts";
import { Waterfall } from "./Waterfall";

const step = (name: string, seconds: number, facts: Step["facts"] = {}, outcome = "done"): Step => ({
  name,
  seconds,
  budget: 1,
  outcome,
  facts,
});
const steps = [
  step("plan", 0.1, { tools: ["search", "sum"], strategy: "rules" }),
  step("retrieve", 0.3, { lexical_candidates: 98, vector_candidates: 2, passages: 10 }),
  step("tools", 0.1, { tools: { search: true, sum: false } }),
  step("check", 1.5, { sentences: 4, supported: 3 }, "timeout"),
  step("cite", 0.1, { citations: 2 }),
];

test("steps follow each other, and the width holds all of them", () => {
  expect(placed(steps).map((placedStep) => Math.round(placedStep.from * 10) / 10)).toEqual([0, 0.1, 0.4, 0.5, 2]);
  expect(spanOf({ steps, seconds: 1 })).toBeCloseTo(2.1);
  expect(spanOf({ steps, seconds: 9 })).toBe(9);
});

test("passages before and after each step", () => {
  expect(flows(steps)).toEqual([
    { before: null, after: null },
    { before: { kind: "candidates", lexical: 98, vector: 2 }, after: { kind: "passages", n: 10 } },
    { before: { kind: "passages", n: 10 }, after: null },
    { before: { kind: "passages", n: 10 }, after: { kind: "sentences", n: 3, of: 4 } },
    { before: { kind: "passages", n: 10 }, after: { kind: "citations", n: 2 } },
  ]);
});

test("planned tools are called, worked or failed", () => {
  expect(toolCalls([...steps, step("plan", 0, { tools: ["late"] })])).toEqual([
    { name: "search", success: true },
    { name: "sum", success: false },
    { name: "late", success: null },
  ]);
  expect(otherFacts(step("plan", 0, { tools: [], way_to_answer: "quote", n: 2 }))).toEqual([
    ["way to answer", "quote"],
    ["n", "2"],
  ]);
});

test("cost and tokens are those of all calls", () => {
  const call = { step: "answer", model: "m", seconds: 1, error: "", prompt: "", reply: "" };
  const calls: Call[] = [
    { ...call, input_tokens: 10, output_tokens: 2, cost: 0.5 },
    { ...call, input_tokens: 5, output_tokens: 1, cost: 0.25 },
  ];
  expect(usageOf(calls)).toEqual({ calls: 2, input: 15, output: 3, cost: 0.75 });
});

test("a debate has a column for each side, and says when a side was silent", () => {
  const debate = debateOf({
    rounds: 2,
    llm_calls: 5,
    elapsed: 3,
    affirmative_answers: ["26 days.", "Still 26."],
    critical_answers: ["Only full-time."],
    final_answer: "26 days for full-time employees.",
  });
  const shown = mount(debate && <DebateColumns debate={debate} />);
  expect(shown.querySelectorAll("h4")).toHaveLength(4);
  expect(shown.textContent).toContain("This side gave no answer in this round.");
  expect(shown.textContent).toContain("26 days for full-time employees.");
  expect(debateOf(null)).toBeNull();
});

test("the waterfall says in words what its bars show", () => {
  const trace = { steps, seconds: 2 } as Parameters<typeof Waterfall>[0]["trace"];
  const text = mount(<Waterfall trace={trace} />).textContent;
  expect(text).toContain("300 ms of 1.0 s (30%)");
  expect(text).toContain("98 lexical and 2 vector candidates → 10 passages");
  expect(text).toContain("Out of time");
});
