/** A question with its answer, as the view holds it. */
import type { Problem } from "../../api/problem";
import type { components } from "../../api/schema";

export interface Settings {
  scope: string[][];
  agent: string;
  as_of: string;
  regulation: string;
}

export type Source = components["schemas"]["SourceShape"];
export type EarlierQuestion = components["schemas"]["EarlierQuestionShape"];
export type Answer = components["schemas"]["ChatResponse"];

export interface Turn {
  id: number;
  question: string;
  settings: Settings;
  /** `stored`: from an earlier visit, with its text but without its sources. */
  state: "running" | "done" | "stopped" | "failed" | "stored" | "withheld";
  /** The text so far. */
  text: string;
  /** The step that ended last. */
  step: string;
  sources: readonly Source[];
  answer: Answer | null;
  /** The id of its trace, by which it is rated; "" before there is an answer, and when the service does not know it. */
  traceId: string;
  /** What this caller said of the answer. */
  vote: Vote;
  problem: Problem | null;
}

export interface Vote {
  thumbs: "up" | "down" | null;
  reason: string;
}
