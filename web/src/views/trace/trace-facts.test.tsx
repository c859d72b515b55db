import { expect, test } from "vitest";
import { mount } from "../../test/setup";
import { DebateColumns } from "./DebateColumns";
import { Replayed, verdictOf, type Comparison } from "./Replayed";
import { SavedBundle } from "./SavedBundle";
import { placed, spanOf } from "./timeline";
import { debateOf, flows, otherFacts, toolCalls, usageOf, type Call, type Step, type Trace } from "./trace-facts";
import { Waterfall } from "./Waterfall";

const step = (name: string, seconds: number, facts: Step["facts"] = {}, outcome = "done"): Step => ({
  name,
  seconds,
  budget: 1,
  outcome,
  facts,
  started: null,
});
const steps = [
  step("plan", 0.1, { tools: ["search", "sum"], strategy: "rules" }),
  step("retrieve", 0.3, { lexical_candidates: 98, vector_candidates: 2, passages: 10 }),
  step("tools", 0.1, { tools: { search: true, sum: false } }),
  step("check", 1.5, { sentences: 4, supported: 3 }, "timeout"),
  step("cite", 0.1, { citations: 2 }),
];

/** A trace with these steps and calls; the waterfall reads nothing else. */
const traceOf = (shown: Step[], calls: Call[] = [], seconds = 0) =>
  ({ steps: shown, calls, seconds }) as unknown as Trace;

const call: Call = {
  step: "debate",
  model: "m",
  seconds: 1,
  started: null,
  input_tokens: 0,
  output_tokens: 0,
  cost: 0,
  error: "",
  prompt: "",
  reply: "",
};

test("without start times, steps follow each other, and the width holds all of them", () => {
  const starts = placed(traceOf(steps, [call])).map(({ from }) => Math.round(from * 10) / 10);
  expect(starts).toEqual([0, 0.1, 0.4, 0.5, 2]);
  expect(placed(traceOf(steps, [call])).every(({ lanes }) => lanes.length === 0)).toBe(true);
  expect(spanOf(traceOf(steps, [], 1))).toBeCloseTo(2.1);
  expect(spanOf(traceOf(steps, [], 9))).toBe(9);
});

test("calls are in the step in which they began, those at the same time in different lanes", () => {
  const timed = steps.map((part, index) => ({ ...part, seconds: 2, budget: 2.5, started: 2 * index }));
  const at = (started: number, seconds: number, error = ""): Call => ({ ...call, started, seconds, error });
  const trace = traceOf(timed, [at(4, 0.5), at(4, 0.8, "refused"), at(4.9, 1), at(7, 1), call], 10);
  const lanes = placed(trace).map((part) => part.lanes.map((lane) => lane.map(({ number }) => number)));
  expect(lanes).toEqual([[], [], [[1, 3], [2]], [[4]], []]);
  const container = mount(<Waterfall trace={trace} />);
  const [, , debated] = [...container.querySelectorAll("li")];
  const widths = [...(debated?.querySelectorAll<HTMLElement>("[style]") ?? [])].map(({ style }) => style.width);
  expect(widths.slice(0, 5)).toEqual(["25%", "20%", "5%", "10%", "8%"]);
  expect(debated?.textContent).toContain("3 model calls, up to 2 at the same time");
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

test("a replay says what differs and why, with titles instead of ids", () => {
  const [known, deleted] = ["0b1f6f0e-0000-4000-8000-000000000001", "1c2f6f0e-0000-4000-8000-000000000002"];
  const replayed: Comparison = {
    trace_id: known,
    answered_at: "2026-11-01T09:00:00+00:00",
    replayed_at: "2026-11-02T09:00:00+00:00",
    same: false,
    explained: true,
    aspects: [
      { name: "text", same: false, then: "eb5d", now: "77aa" },
      { name: "decision", same: true, then: "review", now: "review" },
    ],
    reasons: [{ code: "x", text: `Changed: ${known}, ${deleted}.`, values: {} }],
    titles: { [known]: "Leave" },
    notes: [],
    record: "altered",
    earlier_text: "",
    text: "Nine days.",
    citations: [],
  };
  expect(verdictOf(replayed)).toBe("replay.explained");
  expect(verdictOf({ same: true, explained: true })).toBe("replay.same");
  expect(verdictOf({ same: false, explained: false })).toBe("replay.unexplained");
  const shown = mount(<Replayed replayed={replayed} />).textContent;
  for (const words of [
    "Changed: Leave, deleted document 1c2f6f0e.",
    "Text (hash) Differs",
    "Judgement Same",
    "Nine days.",
  ])
    expect(shown).toContain(words);
  expect(shown).toContain("was changed: the audit log has another one");
});

test("a file says what it contains and what is left out", () => {
  const saved = {
    name: "answer-0b1f6f0e.json",
    public_key: "6d5a",
    citations: [1, 2, 3],
    passages: [1],
    left_out: ["question", "citation 2"],
  };
  const shown = mount(<SavedBundle saved={saved} />).textContent;
  expect(shown).toContain("answer, line of the audit log, 3 citations (2 with text), 1 passage");
  expect(shown).toContain("you may not see it: question.");
  expect(shown).toContain("dtrag verify answer-0b1f6f0e.json --key 6d5a");
});

test("the waterfall says in words what its bars show", () => {
  const text = mount(<Waterfall trace={traceOf(steps, [], 2)} />).textContent;
  expect(text).toContain("300 ms of 1.0 s (30%)");
  expect(text).toContain("98 lexical and 2 vector candidates → 10 passages");
  expect(text).toContain("Out of time");
});
