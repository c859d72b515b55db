/** What a trace says, computed for showing: passages before and after each step, costs, the debate. */
import type { components } from "../../api/schema";

export type Trace = components["schemas"]["TraceShape"];
export type TraceLine = components["schemas"]["TraceLine"];
export type Step = Trace["steps"][number];
export type Call = Trace["calls"][number];

/** Passages that went into a step and came out of it; null where the step does not handle passages. */
export interface Flow {
  before: { kind: "candidates"; lexical: number; vector: number } | { kind: "passages"; n: number } | null;
  after: { kind: "passages" | "citations" | "sentences"; n: number; of?: number } | null;
}

export function flows(steps: readonly Step[]): Flow[] {
  let passages: number | null = null;
  return steps.map(({ facts }) => {
    const number = (name: string) => (typeof facts[name] === "number" ? facts[name] : null);
    const [lexical, vector, found] = [number("lexical_candidates"), number("vector_candidates"), number("passages")];
    const [citations, sentences, supported] = [number("citations"), number("sentences"), number("supported")];
    const earlier: Flow["before"] = passages === null ? null : { kind: "passages", n: passages };
    if (found !== null) {
      passages = found;
      const before: Flow["before"] = lexical === null ? earlier : { kind: "candidates", lexical, vector: vector ?? 0 };
      return { before, after: { kind: "passages", n: found } };
    }
    if (citations !== null) return { before: earlier, after: { kind: "citations", n: citations } };
    if (sentences !== null) return { before: earlier, after: { kind: "sentences", n: supported ?? 0, of: sentences } };
    return { before: earlier, after: null };
  });
}

export interface ToolCall {
  name: string;
  /** null: planned, but no result is noted. */
  success: boolean | null;
}

export function toolCalls(steps: readonly Step[]): ToolCall[] {
  const calls = new Map<string, boolean | null>();
  for (const { facts } of steps) {
    const { tools } = facts;
    if (Array.isArray(tools)) for (const name of tools) if (typeof name === "string") calls.set(name, null);
    if (isRecord(tools)) for (const [name, success] of Object.entries(tools)) calls.set(name, success === true);
  }
  return [...calls].map(([name, success]) => ({ name, success }));
}

export interface Debate {
  rounds: number;
  calls: number;
  seconds: number;
  tokens: number;
  cost: number;
  models: string[];
  notes: string[];
  /** The answers of each round, as far as texts are kept. */
  turns: { affirmative: string; critical: string }[];
  final: string;
}

export function debateOf(value: Trace["debate"]): Debate | null {
  if (!isRecord(value)) return null;
  const number = (name: string) => (typeof value[name] === "number" ? value[name] : 0);
  const strings = (name: string) => {
    const list = value[name];
    return Array.isArray(list) ? list.filter((item): item is string => typeof item === "string") : [];
  };
  const [affirmative, critical] = [strings("affirmative_answers"), strings("critical_answers")];
  const rounds = Math.max(affirmative.length, critical.length);
  return {
    rounds: number("rounds"),
    calls: number("llm_calls"),
    seconds: number("elapsed"),
    tokens: number("tokens"),
    cost: number("cost"),
    models: strings("models"),
    notes: strings("notes"),
    turns: Array.from({ length: rounds }, (_, round) => ({
      affirmative: affirmative[round] ?? "",
      critical: critical[round] ?? "",
    })),
    final: typeof value.final_answer === "string" ? value.final_answer : "",
  };
}

export function usageOf(calls: readonly Call[]): { calls: number; input: number; output: number; cost: number } {
  const sum = (of: (call: Call) => number) => calls.reduce((total, call) => total + of(call), 0);
  return {
    calls: calls.length,
    input: sum((call) => call.input_tokens),
    output: sum((call) => call.output_tokens),
    cost: sum((call) => call.cost),
  };
}

/** The facts that are not shown elsewhere, in words. */
export function otherFacts(step: Step): [name: string, value: string][] {
  const elsewhere = [
    "lexical_candidates",
    "vector_candidates",
    "passages",
    "citations",
    "sentences",
    "supported",
    "tools",
  ];
  return Object.entries(step.facts)
    .filter(([name]) => !elsewhere.includes(name))
    .map(([name, value]) => [name.replaceAll("_", " "), typeof value === "string" ? value : JSON.stringify(value)]);
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
